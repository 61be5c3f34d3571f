//! Every example in the descriptions of the functions gives the result that stands beside it.

use ebbflow::functions::FunctionRegistry;
use ebbflow::testing::transcript;

#[test]
fn examples_give_their_results() {
    let registry = FunctionRegistry::builtin();
    let examples: Vec<_> = registry
        .entries()
        .filter(|entry| !entry.doc.example.is_empty())
        .collect();
    let script: String = examples
        .iter()
        .map(|entry| format!("SELECT {} AS r;\n", entry.doc.example))
        .collect();
    let transcript = transcript::run(&script, &[]);
    let mut outcomes = transcript.split("> SELECT ").skip(1);
    let mut wrong = Vec::new();
    for entry in examples {
        let outcome = outcomes.next().unwrap_or_default();
        let expected = format!("\n+I[{}]\n", entry.doc.result);
        if !outcome.contains(&expected) {
            wrong.push(format!("{}:{expected}but\n{outcome}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn scalar_functions_are_described() {
    for entry in FunctionRegistry::builtin().entries() {
        assert!(!entry.doc.summary.is_empty(), "{} says nothing", entry.name);
        assert!(
            entry.doc.summary.ends_with('.'),
            "{}: a summary is a sentence",
            entry.name
        );
        assert!(
            !entry.doc.signature.is_empty(),
            "{} has no form",
            entry.name
        );
    }
}
