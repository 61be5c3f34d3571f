//! Random tables with insertions, updates and deletions, and random queries over them: the folded
//! changelog is what DataFusion gives for the same query over the tables as they are in the end, at
//! any parallelism, batch size and with mini-batch.
//!
//! `EBBFLOW_HISTORIES` says how many are tried (a few hundred), `EBBFLOW_SEED` the first seed. A
//! failure prints its seed and the whole script.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::Result;
use crate::session::Session;

/// `id`, `k`, `v`, `s`.
type Row = (i32, Option<i32>, Option<i32>, Option<&'static str>);

/// Random numbers from a seed: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn number(&mut self, n: usize) -> Option<i32> {
        (self.below(6) > 0).then(|| i32::try_from(self.below(n)).unwrap())
    }

    fn row(&mut self) -> Row {
        let id = i32::try_from(self.below(8)).unwrap();
        let s = self.pick(&[None, Some("a"), Some("b"), Some("c")]);
        (id, self.number(4), self.number(6), s)
    }
}

/// A table: its declaration, and its rows in the end.
struct Table {
    ddl: String,
    rows: Vec<Row>,
}

impl Table {
    fn random(name: &str, random: &mut Random) -> Self {
        let kind = random.below(4);
        let (mode, keyed) = [
            ("I", false),
            ("I,UB,UA,D", false),
            ("I,UB,UA,D", true),
            ("I,UA,D", true),
        ][kind];
        let mut rows: Vec<Row> = Vec::new();
        let mut data = String::new();
        let mut change = |kind: &str, row: Row| {
            let text = |n: Option<i32>| n.map_or("\\N".to_string(), |n| n.to_string());
            let (id, k, v, s) = row;
            let (k, v, s) = (text(k), text(v), s.unwrap_or("\\N"));
            let _ = writeln!(data, "{kind}|{id}|{k}|{v}|{s}");
        };
        for _ in 0..random.below(24) {
            let row = random.row();
            let known = match keyed {
                true => rows.iter().position(|other| other.0 == row.0),
                false if kind > 0 && !rows.is_empty() && random.below(2) == 0 => {
                    Some(random.below(rows.len()))
                }
                false => None,
            };
            let Some(at) = known else {
                rows.push(row);
                change("+I", row);
                continue;
            };
            let old = rows[at];
            if random.below(3) == 0 {
                rows.remove(at);
                change(
                    "-D",
                    if mode == "I,UA,D" {
                        (old.0, None, None, None)
                    } else {
                        old
                    },
                );
                continue;
            }
            if mode != "I,UA,D" {
                change("-U", old);
            }
            rows[at] = row;
            change("+U", row);
        }
        let key = if keyed {
            ", PRIMARY KEY (id) NOT ENFORCED"
        } else {
            ""
        };
        let ddl = format!(
            "CREATE TABLE {name} (id INT, k INT, v INT, s STRING{key}) WITH ('connector' = \
             'changelog', 'changelog-mode' = '{mode}', 'data' = '{}')",
            data.trim_end()
        );
        Self { ddl, rows }
    }

    fn batch(&self) -> RecordBatch {
        let int = |name: &str| Field::new(name, DataType::Int32, true);
        let fields = vec![
            int("id"),
            int("k"),
            int("v"),
            Field::new("s", DataType::Utf8, true),
        ];
        let rows = self.rows.iter();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.clone().map(|r| Some(r.0)).collect::<Int32Array>()),
            Arc::new(rows.clone().map(|r| r.1).collect::<Int32Array>()),
            Arc::new(rows.clone().map(|r| r.2).collect::<Int32Array>()),
            Arc::new(rows.map(|r| r.3).collect::<StringArray>()),
        ];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }
}

/// A query for the engine, and one for the oracle where that means something else by the same words.
struct Query {
    sql: String,
    oracle: String,
}

/// DataFusion 55 loses the NULLs that it matches when another join follows, so the oracle gets it spelled out.
const NOT_DISTINCT: &str = "x.k IS NOT DISTINCT FROM y.k";

impl From<String> for Query {
    fn from(sql: String) -> Self {
        let spelled_out = "(x.k = y.k OR (x.k IS NULL AND y.k IS NULL))";
        let oracle = sql.replace(NOT_DISTINCT, spelled_out);
        Self { sql, oracle }
    }
}

const TOTAL_ORDER: &str =
    "v DESC NULLS LAST, id ASC NULLS FIRST, s ASC NULLS FIRST, k ASC NULLS FIRST";

fn query(random: &mut Random) -> Query {
    let mut relation = || match random.below(4) {
        0 => format!(
            "(SELECT id, k, v, s FROM {} WHERE v > 1)",
            random.pick(&["a", "b"])
        ),
        1 => format!(
            "(SELECT DISTINCT id, k, v, s FROM {})",
            random.pick(&["a", "b"])
        ),
        _ => random.pick(&["a", "b"]).to_string(),
    };
    let (x, y) = (relation(), relation());
    let on = random.pick(&[
        "x.k = y.k",
        "x.id = y.id",
        "x.k = y.k AND x.v < y.v",
        "x.id = y.id AND x.v < y.v",
        NOT_DISTINCT,
        "x.v < y.v",
        "x.k = y.k AND x.s = y.s",
        "x.k = y.k AND x.v > 1",
        "x.k = y.k AND y.v > 1",
        "x.k = y.id",
    ]);
    let join = random.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
    let both = "x.id AS xi, x.k AS xk, x.v AS xv, y.id AS yi, y.k AS yk, y.v AS yv";
    let not = random.pick(&["", "NOT "]);
    match random.below(14) {
        0..=2 => format!("SELECT {both} FROM {x} AS x {join} {y} AS y ON {on}").into(),
        3 => format!(
            "SELECT {both} FROM {x} AS x {join} {y} AS y ON {on} WHERE {}",
            random.pick(&["x.v > 1", "y.v > 1", "y.v IS NULL", "x.k = 1 OR y.k = 2"])
        )
        .into(),
        4 => format!(
            "SELECT x.id AS xi, y.v AS yv, z.v AS zv FROM {x} AS x {join} {y} AS y ON {on} {} {x} AS \
             z ON y.id = z.id",
            random.pick(&["JOIN", "LEFT JOIN"])
        )
        .into(),
        5 => format!(
            "SELECT x.id, x.k, x.v FROM {x} AS x WHERE {not}EXISTS (SELECT 1 FROM {y} AS y WHERE {})",
            random.pick(&["x.k = y.k", "x.k = y.k AND x.v < y.v", "x.id = y.id"])
        )
        .into(),
        6 if not.is_empty() => {
            format!("SELECT x.id, x.k, x.v FROM {x} AS x WHERE x.k IN (SELECT k FROM {y} AS y)").into()
        }
        6 => not_in(&x, &y),
        7 => format!(
            "SELECT x.k, COUNT(*) AS c, SUM(x.v) AS t, MIN(x.v) AS l, MAX(x.s) AS m, COUNT(DISTINCT \
             x.v) AS d FROM {x} AS x GROUP BY x.k{}",
            random.pick(&["", " HAVING COUNT(*) > 1", " HAVING SUM(x.v) > 3"])
        )
        .into(),
        8 => format!(
            "SELECT x.k, COUNT(*) AS c, SUM(y.v) AS t, MAX(y.v) AS m FROM {x} AS x {join} {y} AS y ON \
             {on} GROUP BY x.k"
        )
        .into(),
        9 => format!(
            "SELECT x.id, x.v, y.c FROM {x} AS x {join} (SELECT k, COUNT(*) AS c FROM {y} AS g GROUP \
             BY k) AS y ON x.k = y.k"
        )
        .into(),
        10 | 11 => set_operation(&x, &y, random),
        _ => top_n(&x, random),
    }
}

/// DataFusion's own NOT IN does not know SQL's rules of NULL in every version.
fn not_in(x: &str, y: &str) -> Query {
    Query {
        sql: format!(
            "SELECT x.id, x.k, x.v FROM {x} AS x WHERE x.k NOT IN (SELECT k FROM {y} AS y)"
        ),
        oracle: format!(
            "SELECT x.id, x.k, x.v FROM {x} AS x LEFT JOIN (SELECT DISTINCT k AS yk FROM {y} AS y \
             WHERE k IS NOT NULL) AS d ON x.k = d.yk CROSS JOIN (SELECT COUNT(*) AS n, COUNT(k) AS nn \
             FROM {y} AS y) AS c WHERE c.n = 0 OR (x.k IS NOT NULL AND c.n = c.nn AND d.yk IS NULL)"
        ),
    }
}

/// DataFusion's INTERSECT ALL and EXCEPT ALL do not count: numbered rows do.
fn set_operation(x: &str, y: &str, random: &mut Random) -> Query {
    let word = random.pick(&["UNION", "INTERSECT", "EXCEPT"]);
    let sides =
        |all: &str| format!("SELECT k, v FROM {x} AS x {word}{all} SELECT k, v FROM {y} AS y");
    match (random.below(2), word) {
        (0, _) => sides("").into(),
        (_, "UNION") => sides(" ALL").into(),
        _ => {
            let numbered = |t: &str| {
                format!("SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k, v) AS n FROM {t} AS t")
            };
            Query {
                sql: sides(" ALL"),
                oracle: format!("SELECT k, v FROM ({} {word} {})", numbered(x), numbered(y)),
            }
        }
    }
}

fn top_n(x: &str, random: &mut Random) -> Query {
    let numbered = |order: &str, from: &str| {
        format!(
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS n FROM {from} AS x"
        )
    };
    let range = random.pick(&["n <= 1", "n <= 2", "n <= 3", "n = 2", "n BETWEEN 2 AND 3"]);
    match random.below(4) {
        0 => format!(
            "SELECT id, k, v, s FROM ({}) AS t WHERE {range}",
            numbered(TOTAL_ORDER, x)
        ),
        1 => format!(
            "SELECT id, k, v, s, n FROM ({}) AS t WHERE {range}",
            numbered(TOTAL_ORDER, x)
        ),
        2 => {
            let sums = format!("(SELECT k, s, SUM(v) AS t FROM {x} AS g GROUP BY k, s)");
            let order = random.pick(&[
                "t DESC NULLS LAST, s ASC NULLS FIRST",
                "t ASC NULLS FIRST, s DESC NULLS LAST",
            ]);
            format!(
                "SELECT k, s, t FROM ({}) AS t WHERE {range}",
                numbered(order, &sums)
            )
        }
        _ => format!(
            "SELECT id, k, v, s FROM {x} AS x ORDER BY {TOTAL_ORDER} LIMIT {}",
            random.below(5) + 1
        ),
    }
    .into()
}

/// How often each row is there.
type Bag = BTreeMap<String, i64>;

/// The table that a query's changes make.
fn folded(tables: &[Table; 2], sql: &str, settings: &[(&str, &str)]) -> Result<Bag> {
    let mut session = Session::new();
    for (key, value) in settings {
        session.set(key, value)?;
    }
    for table in tables {
        session.execute(&table.ddl)?;
    }
    let mut bag = Bag::new();
    for change in session.query(sql)?.collect_changes()? {
        let (kind, row) = change.split_at(2);
        let sign = if kind.starts_with('+') { 1 } else { -1 };
        *bag.entry(row.to_string()).or_default() += sign;
    }
    bag.retain(|_, count| *count != 0);
    Ok(bag)
}

/// What the query gives over the tables in the end.
fn expected(
    tables: &[Table; 2],
    sql: &str,
    runtime: &tokio::runtime::Runtime,
) -> datafusion::error::Result<Bag> {
    let config = SessionConfig::new().with_target_partitions(1);
    let context = SessionContext::new_with_config(config);
    for (name, table) in ["a", "b"].into_iter().zip(tables) {
        context.register_batch(name, table.batch())?;
    }
    let batches = runtime.block_on(async { context.sql(sql).await?.collect().await })?;
    let mut bag = Bag::new();
    let options = FormatOptions::default().with_null("null");
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|c| c.value(row).to_string()).collect();
            *bag.entry(format!("[{}]", values.join(", "))).or_default() += 1;
        }
    }
    Ok(bag)
}

fn check(seed: u64, runtime: &tokio::runtime::Runtime) {
    let mut random = Random(seed);
    let tables = [
        Table::random("a", &mut random),
        Table::random("b", &mut random),
    ];
    let query = query(&mut random);
    let script = || format!("{};\n{};\n{};", tables[0].ddl, tables[1].ddl, query.sql);
    let wanted = expected(&tables, &query.oracle, runtime)
        .unwrap_or_else(|e| panic!("seed {seed}: the oracle fails: {e}\n{}", query.oracle));
    let mini_batch = [
        ("table.exec.mini-batch.enabled", "true"),
        ("table.exec.mini-batch.size", "5"),
        ("table.exec.mini-batch.allow-latency", "1 s"),
    ];
    let with_mini_batch = random.below(2) == 0;
    for (parallelism, batch_size) in [("1", "4096"), ("1", "1"), ("3", "4096"), ("3", "1")] {
        let mut settings = vec![
            ("parallelism.default", parallelism),
            ("execution.batch-size", batch_size),
        ];
        if with_mini_batch {
            settings.extend(mini_batch);
        }
        let found = folded(&tables, &query.sql, &settings);
        let fault = match found {
            Ok(found) if found == wanted => continue,
            Ok(found) => format!("found    {found:?}\nexpected {wanted:?}"),
            Err(e) => e.to_string(),
        };
        panic!(
            "seed {seed}, parallelism {parallelism}, batch size {batch_size}, mini-batch \
             {with_mini_batch}:\n{}\n{fault}",
            script()
        );
    }
}

#[test]
fn folded_changelogs_are_what_a_batch_engine_gives() {
    let number = |name: &str, default: u64| {
        let set = std::env::var(name).ok();
        set.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("EBBFLOW_SEED", 1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for seed in first..first + number("EBBFLOW_HISTORIES", 200) {
        check(seed, &runtime);
    }
}
