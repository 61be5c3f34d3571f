use std::sync::Mutex;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::Int32Type;

use super::*;
use crate::connectors::lookup::LookedUp;
use crate::operators::join::condition::JoinCondition;
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

fn spec(join_type: JoinType, source: impl LookupSource + 'static) -> LookupJoinSpec {
    let (input, right) = (schema("id INT, x INT"), schema("k INT, t STRING"));
    LookupJoinSpec {
        join_type,
        table: LookupTable {
            source: Arc::new(source),
            keys: vec![(0, Expr::column(1, TypeKind::Int.nullable()))],
            projection: vec![0, 1],
            columns: right.clone(),
            filter: None,
            computed: None,
            cache: None,
            retry: None,
        },
        condition: None,
        asynchronous: None,
        materialize: None,
        ttl_ms: None,
        output: input.join(&right),
        input,
        right,
    }
}

fn harness(spec: LookupJoinSpec, conditional: bool) -> Harness {
    let output = spec.output.clone();
    let mut harness = Harness::new("id INT, x INT", "x INT", move |context| {
        let mut join = LookupJoin::new(&spec, context)?;
        let condition = || JoinCondition::on_ints(0, 0, |id, k| id < k);
        join.matcher.condition = conditional.then(condition);
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
fn asked(cache: PartialCache, script: &str) -> Vec<Vec<i32>> {
    let table = Table::default();
    let log = Arc::clone(&table.0);
    let mut spec = spec(JoinType::Left, table);
    spec.table.cache = Some(cache);
    let cached = harness(spec.clone(), false).run(script);
    spec.table.cache = None;
    let asked = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(cached, harness(spec, false).run(script), "the same result");
    asked
}

#[test]
fn a_cache_asks_for_a_key_once() {
    let cache = PartialCache {
        max_rows: 100,
        expire_after_write_ms: Some(5000),
        expire_after_access_ms: None,
        cache_missing_key: true,
    };
    let script = "+I|1|2\n+I|1|9\n+I|1|2\n@time 10\n+I|1|9\n+I|1|3\n@time 5000\n+I|1|2\n+I|1|3";
    assert_eq!(asked(cache, script), [vec![2, 9], vec![3], vec![2]]);
    let forgets_missing = PartialCache {
        cache_missing_key: false,
        ..cache
    };
    assert_eq!(
        asked(forgets_missing, "+I|1|9\n@time 1\n+I|1|9\n+I|1|2"),
        [vec![9], vec![9, 2]]
    );
    let small = PartialCache {
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

#[test]
fn lookups_beside_the_task_give_the_same_rows_in_order() {
    let options = AsyncLookup {
        ordered: true,
        capacity: 3,
        timeout: Duration::from_secs(60),
    };
    for (join_type, cached) in [
        (JoinType::Inner, false),
        (JoinType::Left, false),
        (JoinType::Left, true),
    ] {
        let script = format!("{SCRIPT}\n+I|4|1\n+I|5|2\n+I|6|1\n+I|7|\\N\n@end");
        let mut spec = spec(join_type, Table::default());
        let at_once = harness(spec.clone(), false).run(&script);
        spec.asynchronous = Some(options);
        spec.table.cache = cached.then_some(PartialCache {
            max_rows: 2,
            expire_after_write_ms: None,
            expire_after_access_ms: None,
            cache_missing_key: true,
        });
        harness(spec.clone(), false).check(&script, &at_once);
        spec.asynchronous = Some(AsyncLookup {
            ordered: false,
            ..options
        });
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&harness(spec, false).run(&script)), sorted(&at_once));
    }
}

/// Never answers.
#[derive(Debug)]
struct Stuck;

impl LookupSource for Stuck {
    fn open(&self, _: &[usize], _: &[usize]) -> Result<Box<dyn Lookup>> {
        Ok(Box::new(Self))
    }
}

impl Lookup for Stuck {
    fn lookup(&mut self, _: &[ArrayRef], _: usize, _: i64) -> Result<LookedUp> {
        std::thread::park();
        Err(Error::internal("woken"))
    }
}

#[test]
fn a_lookup_that_takes_too_long_fails_the_job() {
    let mut spec = spec(JoinType::Left, Stuck);
    spec.asynchronous = Some(AsyncLookup {
        ordered: true,
        capacity: 3,
        timeout: Duration::from_millis(1),
    });
    let answer = harness(spec, false).run("+I|1|2\n@end");
    assert!(answer.contains("timed out"), "{answer}");
}

/// A table that loses a row each time it is asked: first key k has k rows, then k - 1, and so on.
#[derive(Debug, Default)]
struct Shrinking(Arc<Mutex<u32>>);

impl LookupSource for Shrinking {
    fn open(&self, _: &[usize], _: &[usize]) -> Result<Box<dyn Lookup>> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Lookup for Shrinking {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp> {
        let mut found = Lookups(Arc::default()).lookup(keys, len, now_ms)?;
        let mut asked = self.0.lock().unwrap();
        let kept = found.rows.num_rows().saturating_sub(*asked as usize);
        *asked += 1;
        found.rows = found.rows.slice(0, kept);
        found.keys = found.keys.slice(0, kept);
        Ok(found)
    }
}

#[test]
fn a_withdrawal_gives_what_the_row_was_joined_with() {
    let script = "+I|1|3
        @time 1
        -U|1|3
        +U|1|2
        @time 2
        -D|1|2
        -D|7|7";
    let with = |key: &[usize], join_type| {
        let mut spec = spec(join_type, Shrinking::default());
        spec.materialize = Some(key.to_vec());
        harness(spec, false).run(script)
    };
    let inner = "+I[1, 3, 3, 3-0]
+I[1, 3, 3, 3-1]
+I[1, 3, 3, 3-2]
-U[1, 3, 3, 3-0]
-U[1, 3, 3, 3-1]
-U[1, 3, 3, 3-2]
+U[1, 2, 2, 2-0]
-D[1, 2, 2, 2-0]";
    for key in [&[0][..], &[0, 1]] {
        assert_eq!(with(key, JoinType::Inner).trim(), inner);
        assert_eq!(with(key, JoinType::Left).trim(), inner);
    }
}

#[test]
fn what_was_joined_survives_a_restart_and_counts_equal_rows() {
    for key in [&[0][..], &[0, 1]] {
        let mut spec = spec(JoinType::Left, Table::default());
        spec.materialize = Some(key.to_vec());
        harness(spec, false).check(
            "+I|1|2
            +I|2|9
            +I|3|1
            -U|1|2
            +U|1|1
            -D|2|9
            -D|2|9
            -D|1|1
            -D|3|1",
            "+I[1, 2, 2, 2-0]
            +I[1, 2, 2, 2-1]
            +I[2, 9, null, null]
            +I[3, 1, 1, 1-0]
            -U[1, 2, 2, 2-0]
            -U[1, 2, 2, 2-1]
            +U[1, 1, 1, 1-0]
            -D[2, 9, null, null]
            -D[1, 1, 1, 1-0]
            -D[3, 1, 1, 1-0]",
        );
    }
    let mut spec = spec(JoinType::Inner, Table::default());
    spec.materialize = Some(vec![0, 1]);
    harness(spec, false).check(
        "+I|1|1\n+I|1|1\n-D|1|1\n-D|1|1\n-D|1|1",
        "+I[1, 1, 1, 1-0]\n+I[1, 1, 1, 1-0]\n-D[1, 1, 1, 1-0]\n-D[1, 1, 1, 1-0]",
    );
}

#[test]
fn what_was_joined_is_forgotten_after_its_time() {
    let mut spec = spec(JoinType::Inner, Table::default());
    spec.materialize = Some(vec![0]);
    spec.ttl_ms = Some(1000);
    harness(spec, false).check(
        "+I|1|1\n+I|2|1\n@time 999\n-D|2|1\n@time 1000\n-D|1|1\n@time 9000",
        "+I[1, 1, 1, 1-0]\n+I[2, 1, 1, 1-0]\n-D[2, 1, 1, 1-0]",
    );
}
