use super::*;
use crate::aggregates::{CallContext, resolve};
use crate::functions::Arg;
use crate::operators::testing::{Harness, schema};

/// A call from text: `SUM(2)`, `COUNT()`, `COUNT(DISTINCT 1) FILTER 3`, with numbers of columns.
fn call(text: &str, input: &Schema, grouped: bool) -> AggregateCall {
    let (text, filter) = match text.split_once(" FILTER ") {
        Some((text, filter)) => (text, Some(filter.parse().unwrap())),
        None => (text, None),
    };
    let (name, args) = text.trim_end_matches(')').split_once('(').unwrap();
    let distinct = args.starts_with("DISTINCT ");
    let args: Vec<usize> = args
        .trim_start_matches("DISTINCT ")
        .split(' ')
        .filter(|a| !a.is_empty())
        .map(|a| a.parse().unwrap())
        .collect();
    let arguments: Vec<Arg> = args
        .iter()
        .map(|i| Arg {
            data_type: input.columns[*i].data_type.clone(),
            literal: None,
        })
        .collect();
    let context = CallContext {
        grouped,
        filtered: filter.is_some(),
        distinct,
    };
    AggregateCall {
        function: resolve(name, &arguments, context).unwrap(),
        args,
        filter,
        distinct,
    }
}

struct Query {
    input: &'static str,
    keys: &'static [usize],
    calls: &'static [&'static str],
    output: &'static str,
}

impl Query {
    fn harness_of(&self, change: impl Fn(&mut GroupAggregateSpec)) -> Harness {
        let input = schema(self.input);
        let mut spec = GroupAggregateSpec {
            input_types: input.types(),
            group_keys: self.keys.to_vec(),
            aggregates: self
                .calls
                .iter()
                .map(|text| call(text, &input, !self.keys.is_empty()))
                .collect(),
            input_retracts: true,
            emit_update_before: true,
            ttl_ms: None,
            mini_batch: None,
            output: schema(self.output),
        };
        change(&mut spec);
        Harness::new(self.input, self.output, move |context| {
            GroupAggregate::new(spec.clone(), context)
        })
    }

    fn harness(&self) -> Harness {
        self.harness_of(|_| {})
    }
}

const BASIC: Query = Query {
    input: "k STRING, v INT",
    keys: &[0],
    calls: &[
        "COUNT()", "COUNT(1)", "SUM(1)", "AVG(1)", "MIN(1)", "MAX(1)",
    ],
    output: "k STRING, c BIGINT, cv BIGINT, s INT, a INT, mn INT, mx INT",
};

#[test]
fn every_row_is_answered_for_itself() {
    BASIC.harness().check(
        r"+I|a|1
          +I|a|5
          +I|b|7
          -U|a|5
          +U|a|3
          +I|a|\N
          -D|a|1
          -D|a|3
          -D|a|\N
          +I|a|9
          -D|b|7
          +I|\N|4
          +I|\N|\N
          -D|\N|4
          +I|c|2
          -U|c|2
          +U|c|2",
        "+I[a, 1, 1, 1, 1, 1, 1]
         -U[a, 1, 1, 1, 1, 1, 1]
         +U[a, 2, 2, 6, 3, 1, 5]
         +I[b, 1, 1, 7, 7, 7, 7]
         -U[a, 2, 2, 6, 3, 1, 5]
         +U[a, 1, 1, 1, 1, 1, 1]
         -U[a, 1, 1, 1, 1, 1, 1]
         +U[a, 2, 2, 4, 2, 1, 3]
         -U[a, 2, 2, 4, 2, 1, 3]
         +U[a, 3, 2, 4, 2, 1, 3]
         -U[a, 3, 2, 4, 2, 1, 3]
         +U[a, 2, 1, 3, 3, 3, 3]
         -U[a, 2, 1, 3, 3, 3, 3]
         +U[a, 1, 0, null, null, null, null]
         -D[a, 1, 0, null, null, null, null]
         +I[a, 1, 1, 9, 9, 9, 9]
         -D[b, 1, 1, 7, 7, 7, 7]
         +I[null, 1, 1, 4, 4, 4, 4]
         -U[null, 1, 1, 4, 4, 4, 4]
         +U[null, 2, 1, 4, 4, 4, 4]
         -U[null, 2, 1, 4, 4, 4, 4]
         +U[null, 1, 0, null, null, null, null]
         +I[c, 1, 1, 2, 2, 2, 2]
         -D[c, 1, 1, 2, 2, 2, 2]
         +I[c, 1, 1, 2, 2, 2, 2]",
    );
}

#[test]
fn one_group_of_all_rows_ends_with_its_last_row_and_says_nothing_without_any() {
    let query = Query {
        input: "v INT",
        keys: &[],
        calls: &["COUNT()", "SUM(0)"],
        output: "c BIGINT, s INT",
    };
    query.harness().check(
        "-D|7
         +I|1
         -D|1
         +I|2
         @end",
        "+I[1, 1]
         -D[1, 1]
         +I[1, 2]",
    );
    query.harness().check("@end", "");
}

#[test]
fn a_withdrawal_of_an_unknown_value_counts_in_a_known_group_only() {
    let query = Query {
        input: "k STRING, v INT",
        keys: &[0],
        calls: &["SUM(1)"],
        output: "k STRING, s INT",
    };
    query.harness().check(
        "-D|a|1
         -U|a|1
         +U|a|2
         +I|c|1
         +I|c|2
         -D|c|9
         +I|c|4
         +I|b|3
         -D|b|9
         +I|b|4",
        "+I[a, 2]
         +I[c, 1]
         -U[c, 1]
         +U[c, 3]
         -U[c, 3]
         +U[c, -6]
         -U[c, -6]
         +U[c, -2]
         +I[b, 3]
         -D[b, 3]
         +I[b, 4]",
    );
}

#[test]
fn distinct_rows_appear_once_and_go_with_their_last_copy() {
    let query = Query {
        input: "a INT, b STRING",
        keys: &[0, 1],
        calls: &[],
        output: "a INT, b STRING",
    };
    let script = r"+I|1|x
         +I|1|x
         +I|\N|\N
         +I|\N|\N
         -D|1|x
         -D|\N|\N
         -U|1|x
         +U|1|y
         -D|\N|\N
         +I|1|x";
    let expected = "+I[1, x]
         +I[null, null]
         -D[1, x]
         +I[1, y]
         -D[null, null]
         +I[1, x]";
    query.harness().check(script, expected);
}

#[test]
fn an_unchanged_result_is_silent_but_with_a_time_to_live() {
    let query = Query {
        input: "k STRING, v INT",
        keys: &[0],
        calls: &["MAX(1)"],
        output: "k STRING, mx INT",
    };
    let script = "+I|a|5
                  +I|a|3
                  +I|a|5
                  -D|a|5
                  -D|z|5";
    query.harness().check(script, "+I[a, 5]");
    query
        .harness_of(|spec| spec.ttl_ms = Some(3_600_000))
        .check(
            script,
            "+I[a, 5]
         -U[a, 5]
         +U[a, 5]
         -U[a, 5]
         +U[a, 5]
         -U[a, 5]
         +U[a, 5]",
        );
    let upsert = query.harness_of(|spec| spec.emit_update_before = false);
    upsert.check(
        "+I|a|5
         +I|a|7
         -D|a|7
         -D|a|5",
        "+I[a, 5]
         +U[a, 7]
         +U[a, 5]
         -D[a, 5]",
    );
}

#[test]
fn a_group_expires_after_its_last_write() {
    let query = Query {
        input: "k STRING, v INT",
        keys: &[0],
        calls: &["SUM(1)"],
        output: "k STRING, s INT",
    };
    let harness = query.harness_of(|spec| spec.ttl_ms = Some(5000));
    harness.check(
        "+I|a|1
         +I|b|1
         @time 4999
         +I|a|2
         @time 5000
         +I|b|2
         -D|c|2
         @time 9998
         +I|a|4
         @time 60000
         -D|a|4
         +I|a|8",
        "+I[a, 1]
         +I[b, 1]
         -U[a, 1]
         +U[a, 3]
         +I[b, 2]
         -U[a, 3]
         +U[a, 7]
         +I[a, 8]",
    );
}

#[test]
fn distinct_values_are_counted_under_every_filter() {
    let query = Query {
        input: "k STRING, v INT, big BOOLEAN",
        keys: &[0],
        calls: &[
            "COUNT()",
            "COUNT(DISTINCT 1)",
            "SUM(DISTINCT 1)",
            "COUNT(DISTINCT 1) FILTER 2",
        ],
        output: "k STRING, n BIGINT, c BIGINT, s INT, t BIGINT",
    };
    // A withdrawal of an unknown value stays owed until the value comes.
    query.harness().check(
        "+I|a|1|false
         +I|a|1|false
         -D|a|5|true
         +I|a|5|true
         +I|a|5|true
         +I|a|7|true
         -D|a|8|true
         -D|a|1|false
         -D|a|1|false
         -D|a|5|true
         +I|a|8|true
         +I|a|2|true
         -D|a|7|true",
        "+I[a, 1, 1, 1, 0]
         -U[a, 1, 1, 1, 0]
         +U[a, 2, 1, 1, 0]
         -U[a, 2, 1, 1, 0]
         +U[a, 1, 1, 1, 0]
         -U[a, 1, 1, 1, 0]
         +U[a, 2, 1, 1, 0]
         -U[a, 2, 1, 1, 0]
         +U[a, 3, 2, 6, 1]
         -U[a, 3, 2, 6, 1]
         +U[a, 4, 3, 13, 2]
         -U[a, 4, 3, 13, 2]
         +U[a, 3, 3, 13, 2]
         -U[a, 3, 3, 13, 2]
         +U[a, 2, 3, 13, 2]
         -U[a, 2, 3, 13, 2]
         +U[a, 1, 2, 12, 2]
         -D[a, 1, 2, 12, 2]
         +I[a, 1, 1, 8, 1]
         -U[a, 1, 1, 8, 1]
         +U[a, 2, 2, 10, 2]
         -U[a, 2, 2, 10, 2]
         +U[a, 1, 2, 10, 2]",
    );
}

const BUNDLED: Query = Query {
    input: "k STRING, v INT",
    keys: &[0],
    calls: &["COUNT()", "SUM(1)"],
    output: "k STRING, c BIGINT, s INT",
};

fn bundled(size: usize, two_phase: bool) -> Harness {
    BUNDLED.harness_of(move |spec| {
        spec.mini_batch = Some(MiniBatch {
            size,
            latency_ms: 2000,
            two_phase,
        });
    })
}

const HISTORY: &str = r"+I|a|1
                        +I|a|1
                        +I|a|2
                        +I|a|\N
                        -D|a|1
                        -D|a|1
                        -U|a|2
                        +U|a|3
                        +I|b|1
                        -D|b|1";

#[test]
fn a_bundle_answers_once_a_group_in_the_order_of_flinks_map() {
    let tidy = |text: &str| text.replace("         ", "");
    let all = format!("{HISTORY}\n@end");
    assert_eq!(bundled(1000, true).run(&all), "+I[a, 2, 3]\n");
    assert_eq!(bundled(1000, false).run(&all), "+I[a, 2, 3]\n");
    // As Flink 2.3 answers with a size of 3 and local aggregation.
    let expected = "+I[b, 1, 1]
         +I[a, 2, 2]
         -D[b, 1, 1]
         -U[a, 2, 2]
         +U[a, 2, 3]
         ";
    assert_eq!(bundled(3, true).run(&all), tidy(expected));
    let expected = "+I[a, 3, 4]
         -U[a, 3, 4]
         +U[a, 2, 2]
         +I[b, 1, 1]
         -U[a, 2, 2]
         +U[a, 2, 3]
         -D[b, 1, 1]
         ";
    assert_eq!(bundled(3, false).run(&all), tidy(expected));
}

#[test]
fn a_bundle_ends_when_its_rows_have_waited() {
    let script = "@time 1500
                  +I|a|1
                  @time 1999
                  +I|a|2
                  @time 2000
                  +I|a|3
                  @time 4000";
    for two_phase in [false, true] {
        assert_eq!(
            bundled(1000, two_phase).run(script),
            "+I[a, 2, 3]\n-U[a, 2, 3]\n+U[a, 3, 6]\n"
        );
    }
}

#[test]
fn a_bundle_ends_in_the_state_that_single_rows_end_in() {
    let script = "-D|x|1
                  +I|x|2
                  -D|x|9
                  -D|x|9
                  +I|x|4
                  +I|y|1
                  -D|y|1
                  @flush
                  -D|x|4
                  +I|x|5
                  @end";
    for two_phase in [false, true] {
        assert_eq!(
            bundled(1000, two_phase).run(script),
            "+I[x, 1, 4]\n-U[x, 1, 4]\n+U[x, 1, 5]\n"
        );
    }
}

/// The table that a printed changelog ends in, by its lines.
fn folded(changes: &str) -> std::collections::BTreeMap<String, i64> {
    let mut table = std::collections::BTreeMap::new();
    for line in changes.lines() {
        let (kind, row) = line.split_at(2);
        let sign = if kind.starts_with('+') { 1 } else { -1 };
        let count = table.entry(row.to_string()).or_insert(0);
        *count += sign;
        assert!((0..=1).contains(count), "{line}");
        if *count == 0 {
            table.remove(row);
        }
    }
    table
}

#[test]
fn every_way_to_run_a_history_ends_in_the_same_table() {
    let query = Query {
        input: "k BIGINT, v INT, ok BOOLEAN",
        keys: &[0],
        calls: &[
            "COUNT()",
            "SUM(1)",
            "MIN(1)",
            "MAX(1) FILTER 2",
            "COUNT(DISTINCT 1)",
            "SUM(DISTINCT 1) FILTER 2",
        ],
        output: "k BIGINT, c BIGINT, s INT, mn INT, mx INT, d BIGINT, ds INT",
    };
    let mut state = 11_u64;
    let mut random = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut rows: Vec<String> = Vec::new();
    let mut script = String::new();
    let mut groups = std::collections::BTreeMap::new();
    for _ in 0..600 {
        let kind = if !rows.is_empty() && random(100) < 48 {
            let gone = usize::try_from(random(rows.len() as u64)).unwrap();
            format!("-D|{}", rows.swap_remove(gone))
        } else {
            let value = match random(7) {
                0 => "\\N".to_string(),
                n => n.to_string(),
            };
            rows.push(format!("{}|{value}|{}", random(12), random(2) == 0));
            format!("+I|{}", rows[rows.len() - 1])
        };
        script.push_str(&kind);
        script.push('\n');
    }
    for row in &rows {
        let mut fields = row.split('|');
        let key: i64 = fields.next().unwrap().parse().unwrap();
        let value: Option<i64> = fields.next().unwrap().parse().ok();
        let ok = fields.next() == Some("true");
        groups.entry(key).or_insert_with(Vec::new).push((value, ok));
    }
    let expected: std::collections::BTreeMap<String, i64> = groups
        .iter()
        .map(|(key, rows)| {
            let show = |v: Option<i64>| v.map_or("null".to_string(), |v| v.to_string());
            let values = || rows.iter().filter_map(|(v, _)| *v);
            let passing = || rows.iter().filter(|(_, ok)| *ok).filter_map(|(v, _)| *v);
            let distinct = |values: &mut dyn Iterator<Item = i64>| {
                values.collect::<std::collections::BTreeSet<_>>()
            };
            let sum = values().next().map(|_| values().sum());
            let passed = distinct(&mut passing());
            let row = format!(
                "[{key}, {}, {}, {}, {}, {}, {}]",
                rows.len(),
                show(sum),
                show(values().min()),
                show(passing().max()),
                distinct(&mut values()).len(),
                show(passed.first().map(|_| passed.iter().sum())),
            );
            (row, 1)
        })
        .collect();
    script.push_str("@end");
    let rows: Vec<&str> = script.lines().collect();
    for batch in [1, 10, 1000] {
        // A flush ends the batch, and does nothing else.
        let script: Vec<_> = rows.chunks(batch).map(|rows| rows.join("\n")).collect();
        let changes = query.harness().run(&script.join("\n@flush\n"));
        assert_eq!(folded(&changes), expected, "batches of {batch}");
    }
    for size in [1, 7, 100, 10_000] {
        for two_phase in [false, true] {
            let harness = query.harness_of(move |spec| {
                spec.mini_batch = Some(MiniBatch {
                    size,
                    latency_ms: 1000,
                    two_phase,
                });
            });
            assert_eq!(
                folded(&harness.run(&script)),
                expected,
                "{size} {two_phase}"
            );
        }
    }
}
