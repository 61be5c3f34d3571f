//! A query inside a program: its result as a stream of rows that are added and withdrawn.
//!
//!     cargo run --example embedded_query

#![allow(clippy::print_stdout)] // what an example shows

use ebbflow::error::Result;
use ebbflow::session::Session;

fn main() -> Result<()> {
    let mut session = Session::new();
    session.execute(
        "CREATE TABLE orders (customer STRING, amount INT) WITH (
           'connector' = 'changelog', 'data' = '
         +I|alice|30
         +I|bob|12
         -U|bob|12
         +U|bob|15
         -D|alice|30
         ')",
    )?;

    let query =
        session.query("SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")?;
    println!("columns: {}", query.schema());

    // true: the row is part of the result from now on; false: it is no more
    let mut changes = Vec::new();
    for change in query.retract_stream() {
        let (added, row) = change?;
        println!("{} {row}", if added { "+" } else { "-" });
        changes.push((added, row.to_string()));
    }
    let expected = [
        (true, "[alice, 30]"),
        (true, "[bob, 12]"),
        (false, "[bob, 12]"),
        (true, "[bob, 15]"),
        (false, "[alice, 30]"),
    ];
    assert_eq!(
        changes,
        expected.map(|(added, row)| (added, row.to_string()))
    );

    // a query that only adds rows is simpler to read; another one refuses and says why
    let doubled = session.query("SELECT amount * 2 AS d FROM orders")?;
    let refusal = doubled.append_stream().err().map(|e| e.to_string());
    println!("as an append stream: {}", refusal.unwrap_or_default());
    Ok(())
}
