use super::*;
use crate::operators::testing::{Harness, random_events, schema};

const COLUMNS: &str = "tag STRING NOT NULL, id INT";

fn spec(upsert_key: Option<Vec<usize>>) -> SinkUpsertMaterializerSpec {
    SinkUpsertMaterializerSpec {
        schema: schema(COLUMNS),
        primary_key: vec![0],
        upsert_key,
        ttl_ms: None,
    }
}

fn deduplicate(upsert_key: Option<Vec<usize>>) -> Harness {
    Harness::new(COLUMNS, COLUMNS, move |context| {
        SinkUpsertMaterializer::new(&spec(upsert_key.clone()), context)
    })
}

fn compacting(strategy: ConflictStrategy) -> Harness {
    Harness::new(COLUMNS, COLUMNS, move |context| {
        WatermarkCompactingSinkMaterializer::new(&spec(Some(vec![1])), strategy, context)
    })
}

#[test]
fn the_earlier_row_of_a_shared_key_comes_back() {
    deduplicate(Some(vec![1])).check(
        "+I|red|1
         +I|red|2
         -U|red|2
         +U|blue|2
         -D|blue|2
         +I|red|3
         -D|red|3
         +I|red|4
         -D|red|1
         -D|green|7",
        "+I[red, 1]
         +U[red, 2]
         +U[red, 1]
         +I[blue, 2]
         -D[blue, 2]
         +U[red, 3]
         +U[red, 1]
         +U[red, 4]",
    );
}

#[test]
fn without_an_upsert_key_equal_rows_are_counted() {
    deduplicate(None).check(
        "+I|a|1
         +I|a|1
         -D|a|1
         +I|b|\\N
         -D|b|\\N
         -D|a|1
         -D|a|1",
        "+I[a, 1]
         +U[a, 1]
         +I[b, null]
         -D[b, null]
         -D[a, 1]",
    );
}

const CONFLICTS: &str = "+I|x|1
    @wm 1
    +I|y|2
    @wm 2
    +I|x|3
    @wm 3
    -D|x|1
    +I|x|4
    -D|x|3
    @wm 5
    -D|y|2
    +U|z|2
    +I|z|5
    -U|z|5
    @wm 6";

#[test]
fn the_first_row_stays_and_withdrawals_are_awaited() {
    compacting(ConflictStrategy::Nothing).check(
        CONFLICTS,
        "+I[x, 1]
         +I[y, 2]
         +U[x, 4]
         -D[y, 2]
         +I[z, 2]",
    );
}

#[test]
fn a_second_row_ends_the_job() {
    compacting(ConflictStrategy::Error).check(
        CONFLICTS,
        "+I[x, 1]
         +I[y, 2]
         ERROR Primary key constraint violation: multiple distinct records with the same primary key detected. Conflicting key: [tag=x]. Use ON CONFLICT DO NOTHING to keep the first record.",
    );
}

#[test]
fn no_row_is_lost_by_copies_of_changes() {
    for seed in 0..3 {
        let script = random_events(seed, 120, |dice, _| {
            let kind = ["+I", "-D", "-U", "+U"][usize::try_from(dice.below(4)).unwrap()];
            format!("{kind}|t{}|{}", dice.below(6), dice.below(5))
        });
        for upsert_key in [None, Some(vec![1])] {
            deduplicate(upsert_key).check_copies(&script, 12);
        }
        compacting(ConflictStrategy::Nothing).check_copies(&script, 12);
    }
}
