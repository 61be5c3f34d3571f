use indexmap::IndexMap;

use super::*;

fn parts(name: &str) -> Vec<String> {
    name.split('.').map(str::to_string).collect()
}

#[test]
fn names_resolve_from_where_the_session_is() {
    let mut catalogs = Catalogs::default();
    let options = IndexMap::from([("type".to_string(), "generic_in_memory".to_string())]);
    catalogs.create_catalog("c", options, None).expect("new");
    catalogs.use_catalog("c").expect("there");
    let path = catalogs.resolve(&parts("t")).expect("one part");
    assert_eq!(path.to_string(), "c.default.t");
    let path = catalogs.resolve(&parts("d.t")).expect("two parts");
    assert_eq!(path.to_string(), "c.d.t");
    assert!(catalogs.resolve(&parts("a.b.c.d")).is_err());
}

#[test]
fn what_is_in_use_stays() {
    let mut catalogs = Catalogs::default();
    assert!(catalogs.drop_catalog(DEFAULT_CATALOG).is_err());
    assert!(
        catalogs
            .drop_database(DEFAULT_CATALOG, DEFAULT_DATABASE, true)
            .is_err()
    );
}

#[test]
fn functions_are_found_in_any_case() {
    let mut catalogs = Catalogs::default();
    let definition = FunctionDefinition {
        class: "x.F".into(),
        language: "JAVA".into(),
    };
    let path = catalogs.resolve_function(&parts("Fun")).expect("one part");
    catalogs
        .put_function(FunctionScope::Permanent(path), definition.clone())
        .expect("the database is there");
    assert_eq!(catalogs.find_function(&parts("FUN")), Some(&definition));
    assert_eq!(catalogs.find_function(&parts("other.fun")), None);
}
