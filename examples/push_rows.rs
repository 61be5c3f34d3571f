//! A program feeds a table while a query over it goes on, and reads the current result.
//!
//!     cargo run --example push_rows

#![allow(clippy::print_stdout)] // what an example shows

use ebbflow::error::Result;
use ebbflow::session::{DynamicTable, Query, Session};

fn main() -> Result<()> {
    let mut session = Session::new();
    session.execute(
        "CREATE TABLE clicks (
           page STRING,
           seen TIMESTAMP_LTZ(3),
           WATERMARK FOR seen AS SOURCE_WATERMARK()
         ) WITH ('connector' = 'memory', 'changelog-mode' = 'I')",
    )?;
    session
        .execute("CREATE TABLE stock (item STRING, pieces INT) WITH ('connector' = 'memory')")?;

    // rows come and go: the dynamic table follows
    let mut stock = session.table_writer("stock")?;
    let mut query = session.query("SELECT item, SUM(pieces) AS n FROM stock GROUP BY item")?;
    let mut now = DynamicTable::new(query.schema().clone());
    stock.insert(vec![row("apple", 3), row("pear", 5), row("apple", 4)])?;
    follow(&mut query, &mut now, 4)?;
    println!("stock: {}", show(&now));
    assert_eq!(show(&now), "[apple, 7] [pear, 5]");
    // a batch's token says how far the program has come: keep it with what the program has read
    let token = stock.retract(vec![row("pear", 5), row("apple", 3)])?;
    follow(&mut query, &mut now, 3)?;
    println!("stock after batch {token}: {}", show(&now));
    assert_eq!(show(&now), "[apple, 4]");
    query.stop();

    // event time: the program knows best when an hour is complete
    let mut clicks = session.table_writer("clicks")?;
    let mut hours = session.query(
        "SELECT window_start, COUNT(*) AS clicks
         FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(seen), INTERVAL '1' HOUR))
         GROUP BY window_start, window_end",
    )?;
    let at = |minute: i64| {
        let ms = minute * 60_000;
        datafusion::common::ScalarValue::TimestampMillisecond(Some(ms), None)
    };
    clicks.insert(vec![
        vec!["home".into(), at(5)],
        vec!["help".into(), at(59)],
        vec!["home".into(), at(61)],
    ])?;
    clicks.watermark(60 * 60_000 - 1)?;
    let mut table = DynamicTable::new(hours.schema().clone());
    follow(&mut hours, &mut table, 1)?;
    println!("closed hours: {}", show(&table));
    assert_eq!(show(&table), "[1970-01-01T00:00, 2]");
    Ok(())
}

fn row(item: &str, pieces: i32) -> Vec<datafusion::common::ScalarValue> {
    vec![item.into(), pieces.into()]
}

/// Applies the next changes, at least `count`.
fn follow(query: &mut Query, table: &mut DynamicTable, count: usize) -> Result<()> {
    let mut seen = 0;
    while seen < count {
        let Some(batch) = query.next_batch()? else {
            break;
        };
        seen += batch.len();
        table.apply(&batch)?;
    }
    Ok(())
}

/// The rows, sorted: an updated row is a new one, so it stands behind those that are older.
fn show(table: &DynamicTable) -> String {
    let mut rows: Vec<_> = table.rows().map(ToString::to_string).collect();
    rows.sort();
    rows.join(" ")
}
