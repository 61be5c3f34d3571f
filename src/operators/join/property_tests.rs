//! Random histories: the folded changes are the join of what the sides hold in the end, batches of
//! any size give the same changes, and so does a restart.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::changelog::RowKind;
use crate::operators::testing::{batch, context, schema};
use crate::runtime::output::Emitted;
use crate::types::text::RowPrinter;

/// `k`, the join key, which may be NULL; `id`; `v`.
type Row = (Option<u8>, u8, u8);

/// What a side does: puts a row in, takes a row out, or changes one.
#[derive(Debug, Clone)]
struct Action {
    port: usize,
    row: Row,
    what: u8,
    pick: prop::sample::Index,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Keyed {
    /// Rows may be there several times.
    Not,
    /// `(k, id)` is unique; updates come with the old row.
    Retract,
    /// `(k, id)` is unique; updates come without the old row.
    Upsert,
    /// `k` is unique; updates come without the old row.
    JoinKey,
}

type Change = (usize, RowKind, Row);

/// The changelog of the actions, and what the sides hold in the end.
fn history(actions: &[Action], keyed: Keyed) -> (Vec<Change>, [Vec<Row>; 2]) {
    let mut held: [Vec<Row>; 2] = Default::default();
    let mut changes = Vec::new();
    for Action {
        port,
        row,
        what,
        pick,
    } in actions
    {
        let rows = &mut held[*port];
        let same_key = |other: &Row| match keyed {
            Keyed::Not => false,
            Keyed::JoinKey => other.0 == row.0,
            Keyed::Retract | Keyed::Upsert => (other.0, other.1) == (row.0, row.1),
        };
        if let Some(at) = rows.iter().position(same_key) {
            if what % 3 == 0 {
                changes.push((*port, RowKind::Delete, rows.remove(at)));
                continue;
            }
            if keyed == Keyed::Retract {
                changes.push((*port, RowKind::UpdateBefore, rows[at]));
            }
            rows[at] = *row;
            changes.push((*port, RowKind::UpdateAfter, *row));
            continue;
        }
        match what % 3 {
            0 if !rows.is_empty() => {
                let at = pick.index(rows.len());
                changes.push((*port, RowKind::Delete, rows.remove(at)));
            }
            1 if !rows.is_empty() && keyed == Keyed::Not => {
                let at = pick.index(rows.len());
                changes.push((*port, RowKind::UpdateBefore, rows[at]));
                rows[at] = *row;
                changes.push((*port, RowKind::UpdateAfter, *row));
            }
            _ => {
                rows.push(*row);
                changes.push((*port, RowKind::Insert, *row));
            }
        }
    }
    (changes, held)
}

fn line(kind: RowKind, (k, id, v): Row) -> String {
    let k = k.map_or("\\N".to_string(), |k| k.to_string());
    format!("{kind}|{k}|{id}|{v}")
}

fn make(join_type: JoinType, keyed: Keyed, conditional: bool, bundle: Option<usize>) -> Join {
    let input = |text| JoinInput {
        schema: schema(text),
        keys: vec![0],
        unique_key: match keyed {
            Keyed::Not => UniqueKey::None,
            Keyed::Retract | Keyed::Upsert => UniqueKey::Columns(vec![0, 1]),
            Keyed::JoinKey => UniqueKey::JoinKey,
        },
        updates_in_pairs: matches!(keyed, Keyed::Not | Keyed::Retract),
        ttl_ms: 0,
    };
    let left = input("k INT, id INT, v INT");
    let right = input("rk INT, rid INT, rv INT");
    let spec = JoinSpec {
        join_type,
        null_safe: vec![false],
        condition: None,
        mini_batch: bundle.map(|size| BundleLimits {
            size,
            latency_ms: 1000,
        }),
        output: match join_type.is_left_only() {
            true => left.schema.clone(),
            false => left.schema.join(&right.schema),
        },
        left,
        right,
    };
    let mut join = Join::new(spec, &context()).unwrap();
    join.condition = conditional.then(|| JoinCondition::on_ints(2, 2, |l, r| l <= r));
    join
}

/// The changes that the join emits when its input comes in batches of up to `size`, restarted before
/// change `restart`.
fn run(make: &dyn Fn() -> Join, changes: &[Change], size: usize, restart: usize) -> Vec<String> {
    let mut join = make();
    let printer = RowPrinter::new(&join.spec.output);
    let inputs = [
        join.spec.left.schema.clone(),
        join.spec.right.schema.clone(),
    ];
    let mut emitted: Vec<Emitted> = Vec::new();
    let mut at = 0;
    while at < changes.len() {
        if at == restart {
            join.flush(&mut Output::new(&mut emitted)).unwrap();
            let snapshot = join.snapshot().unwrap();
            join = make();
            join.restore(RestoreState::of(&snapshot).unwrap()).unwrap();
        }
        let port = changes[at].0;
        let lines: Vec<String> = changes[at..]
            .iter()
            .take(if at < restart {
                size.min(restart - at)
            } else {
                size
            })
            .take_while(|change| change.0 == port)
            .map(|(_, kind, row)| line(*kind, *row))
            .collect();
        at += lines.len();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let batch = batch(&inputs[port], &lines);
        join.process(port, batch, &mut Output::new(&mut emitted))
            .unwrap();
    }
    join.flush(&mut Output::new(&mut emitted)).unwrap();
    let mut lines = Vec::new();
    for message in emitted {
        let Emitted::Batch(batch) = message else {
            continue;
        };
        for i in 0..batch.len() {
            let mut line = String::new();
            printer.write(&batch, i, &mut line);
            lines.push(line);
        }
    }
    assert_eq!(
        join.context.metrics.inconsistent_dropped.get(),
        0,
        "no withdrawal was dropped"
    );
    lines
}

/// The join of what the sides hold, as lines without a kind.
fn naive(join_type: JoinType, held: &[Vec<Row>; 2], conditional: bool) -> Vec<String> {
    let matches = |l: &Row, r: &Row| l.0.is_some() && l.0 == r.0 && (!conditional || l.2 <= r.2);
    let text = |row: Option<&Row>| match row {
        None => "null, null, null".to_string(),
        Some((k, id, v)) => format!("{}, {id}, {v}", k.map_or("null".into(), |k| k.to_string())),
    };
    let [left, right] = held;
    let mut lines = Vec::new();
    for l in left {
        let mut matched = false;
        for r in right.iter().filter(|r| matches(l, r)) {
            matched = true;
            if !join_type.is_left_only() {
                lines.push(format!("[{}, {}]", text(Some(l)), text(Some(r))));
            }
        }
        match join_type {
            JoinType::Semi if matched => lines.push(format!("[{}]", text(Some(l)))),
            JoinType::Anti if !matched => lines.push(format!("[{}]", text(Some(l)))),
            JoinType::Left | JoinType::Full if !matched => {
                lines.push(format!("[{}, {}]", text(Some(l)), text(None)));
            }
            _ => {}
        }
    }
    if join_type.is_right_outer() {
        for r in right {
            if !left.iter().any(|l| matches(l, r)) {
                lines.push(format!("[{}, {}]", text(None), text(Some(r))));
            }
        }
    }
    lines.sort();
    lines
}

/// The table that the changes lead to. A row of an upsert changelog replaces the one that agrees in
/// the columns that `key` leaves.
fn fold(changes: &[String], key: &dyn Fn(&str) -> String, upsert: bool) -> Vec<String> {
    let mut table: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in changes {
        let (kind, row) = change.split_at(2);
        let rows = table.entry(key(row)).or_default();
        if RowKind::from_symbol(kind).unwrap().is_add() {
            if upsert {
                rows.clear();
            }
            rows.push(row.to_string());
        } else if upsert {
            rows.clear();
        } else {
            let at = rows.iter().position(|r| r == row);
            rows.remove(at.unwrap_or_else(|| panic!("{change} withdraws what is not there")));
        }
    }
    let mut rows: Vec<String> = table.into_values().flatten().collect();
    rows.sort();
    rows
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let row = (prop::option::weighted(0.9, 0..3_u8), 0..4_u8, 0..3_u8);
    let action = (0..2_usize, row, any::<u8>(), any::<prop::sample::Index>());
    let action = action.prop_map(|(port, row, what, pick)| Action {
        port,
        row,
        what,
        pick,
    });
    prop::collection::vec(action, 1..120)
}

const JOIN_TYPES: [JoinType; 6] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::Semi,
    JoinType::Anti,
];

fn check(actions: &[Action], keyed: Keyed, conditional: bool, size: usize) {
    for bundle in [None, Some(1 + size / 2), Some(1000)] {
        check_bundled(actions, keyed, conditional, size, bundle);
    }
}

fn check_bundled(
    actions: &[Action],
    keyed: Keyed,
    conditional: bool,
    size: usize,
    bundle: Option<usize>,
) {
    let (changes, held) = history(actions, keyed);
    for join_type in JOIN_TYPES {
        let make = || make(join_type, keyed, conditional, bundle);
        let emitted = run(&make, &changes, size, usize::MAX);
        assert_eq!(
            emitted,
            run(&make, &changes, 1, usize::MAX),
            "in batches of one"
        );
        // A barrier ends a bundle, so that with bundles only the folded result is the same.
        let restarted = run(&make, &changes, size, changes.len() / 2);
        if bundle.is_none() {
            assert_eq!(emitted, restarted, "with a restart");
        }
        let upsert = matches!(keyed, Keyed::Upsert | Keyed::JoinKey);
        // The unique keys of both sides, or the whole row.
        let key = |row: &str| {
            let columns: Vec<&str> = row.trim_matches(['[', ']']).split(", ").collect();
            let unique: &[usize] = match keyed {
                Keyed::Not | Keyed::Retract => return row.to_string(),
                Keyed::Upsert => &[0, 1],
                Keyed::JoinKey => &[0],
            };
            let keys = columns
                .chunks(3)
                .flat_map(|side| unique.iter().map(|i| side[*i]));
            keys.collect::<Vec<_>>().join(",")
        };
        let expected = naive(join_type, &held, conditional);
        for emitted in [emitted, restarted] {
            assert_eq!(
                fold(&emitted, &key, upsert),
                expected,
                "{join_type:?} {bundle:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_without_a_key(actions in actions(), conditional: bool, size in 1..50_usize) {
        check(&actions, Keyed::Not, conditional, size);
    }

    #[test]
    fn rows_with_a_unique_key(actions in actions(), conditional: bool, size in 1..50_usize) {
        check(&actions, Keyed::Retract, conditional, size);
    }

    #[test]
    fn upserts(actions in actions(), conditional: bool, size in 1..50_usize) {
        check(&actions, Keyed::Upsert, conditional, size);
    }

    #[test]
    fn upserts_whose_key_is_the_join_key(
        mut actions in actions(),
        conditional: bool,
        size in 1..50_usize,
    ) {
        // A primary key has no NULL.
        actions.iter_mut().for_each(|a| a.row.0 = a.row.0.or(Some(0)));
        check(&actions, Keyed::JoinKey, conditional, size);
    }
}
