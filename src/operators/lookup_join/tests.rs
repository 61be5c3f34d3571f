use std::sync::Mutex;

use arrow::array::{AsArray, Int32Array, StringArray};
use arrow::datatypes::Int32Type;

use super::*;
use crate::operators::testing::{Harness, schema};
use crate::types::TypeKind;

/// Holds the rows `(k, "k-0"), .. (k, "k-(k-1)")` for every k up to 3; notes what was asked for.
#[derive(Debug, Default)]
struct Table(Arc<Mutex<Vec<Vec<i32>>>>);

struct Lookups(Arc<Mutex<Vec<Vec<i32>>>>);

impl LookupSource for Table {
    fn open(&self, keys: &[usize], projection: &[usize]) -> Result<Box<dyn Lookup>> {
        assert_eq!((keys, projection), (&[0][..], &[0, 1][..]));
        Ok(Box::new(Lookups(Arc::clone(&self.0))))
    }
}

impl Lookup for Lookups {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, _: i64) -> Result<LookedUp> {
        let keys = keys[0].as_primitive::<Int32Type>().values();
        assert_eq!(keys.len(), len);
        self.0.lock().unwrap().push(keys.to_vec());
        let (mut by, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (i, key) in (0..).zip(keys) {
            for n in 0..if *key <= 3 { *key } else { 0 } {
                by.push(i);
                numbers.push(*key);
                texts.push(format!("{key}-{n}"));
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(numbers)),
            Arc::new(StringArray::from(texts)),
        ];
        Ok(LookedUp {
            keys: UInt32Array::from(by),
            rows: RecordBatch::try_new(schema("k INT, t STRING").to_arrow(), columns)?,
        })
    }
}

fn spec(join_type: JoinType, source: Table) -> LookupJoinSpec {
    let (input, table) = (schema("id INT, x INT"), schema("k INT, t STRING"));
    LookupJoinSpec {
        join_type,
        source: Arc::new(source),
        keys: vec![(0, Expr::column(1, TypeKind::Int.nullable()))],
        projection: vec![0, 1],
        condition: None,
        cache: None,
        output: input.join(&table),
        input,
        table,
    }
}

fn harness(spec: LookupJoinSpec, conditional: bool) -> Harness {
    let output = spec.output.clone();
    let mut harness = Harness::new("id INT, x INT", "x INT", move |context| {
        let mut join = LookupJoin::new(&spec, context)?;
        join.condition = conditional.then(|| JoinCondition::on_ints(0, 0, |id, k| id < k));
        Ok(join)
    });
    harness.output = output;
    harness
}

const SCRIPT: &str = "+I|1|2
    -U|2|\\N
    +U|3|9
    -D|2|3";

#[test]
fn a_row_is_joined_with_what_the_table_holds() {
    harness(spec(JoinType::Inner, Table::default()), false).check(
        SCRIPT,
        "+I[1, 2, 2, 2-0]
        +I[1, 2, 2, 2-1]
        -D[2, 3, 3, 3-0]
        -D[2, 3, 3, 3-1]
        -D[2, 3, 3, 3-2]",
    );
    harness(spec(JoinType::Left, Table::default()), false).check(
        SCRIPT,
        "+I[1, 2, 2, 2-0]
        +I[1, 2, 2, 2-1]
        -U[2, null, null, null]
        +U[3, 9, null, null]
        -D[2, 3, 3, 3-0]
        -D[2, 3, 3, 3-1]
        -D[2, 3, 3, 3-2]",
    );
}

#[test]
fn rows_that_fail_the_condition_are_as_good_as_missing() {
    harness(spec(JoinType::Left, Table::default()), true).check(
        "+I|1|2
        +I|2|2",
        "+I[1, 2, 2, 2-0]
        +I[1, 2, 2, 2-1]
        +I[2, 2, null, null]",
    );
}

/// The keys that are asked for, batch by batch.
fn asked(cache: LookupCache, script: &str) -> Vec<Vec<i32>> {
    let table = Table::default();
    let log = Arc::clone(&table.0);
    let mut spec = spec(JoinType::Left, table);
    spec.cache = Some(cache);
    let cached = harness(spec.clone(), false).run(script);
    spec.cache = None;
    let asked = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(cached, harness(spec, false).run(script), "the same result");
    asked
}

#[test]
fn a_cache_asks_for_a_key_once() {
    let cache = LookupCache {
        max_rows: 100,
        expire_after_write_ms: Some(5000),
        expire_after_access_ms: None,
        cache_missing_key: true,
    };
    let script = "+I|1|2\n+I|1|9\n+I|1|2\n@time 10\n+I|1|9\n+I|1|3\n@time 5000\n+I|1|2\n+I|1|3";
    assert_eq!(asked(cache, script), [vec![2, 9], vec![3], vec![2]]);
    let forgets_missing = LookupCache {
        cache_missing_key: false,
        ..cache
    };
    assert_eq!(
        asked(forgets_missing, "+I|1|9\n@time 1\n+I|1|9\n+I|1|2"),
        [vec![9], vec![9, 2]]
    );
    let small = LookupCache {
        max_rows: 3,
        ..cache
    };
    assert_eq!(
        asked(
            small,
            "+I|1|2\n@time 1\n+I|1|3\n@time 2\n+I|1|3\n@time 3\n+I|1|2"
        ),
        [vec![2], vec![3], vec![2]]
    );
}
