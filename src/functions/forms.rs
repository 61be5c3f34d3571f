//! Descriptions of what the binder makes without a function: comparisons, logic, access to fields,
//! and what only the measures of MATCH_RECOGNIZE know.

use super::doc::{FunctionDoc, FunctionKind};

/// Topic, name, forms, summary, example and what it gives.
type Row = [&'static str; 6];

const ROWS: &[Row] = &[
    [
        "comparison",
        "=",
        "a = b",
        "Whether both are equal; unknown if one is NULL.",
        "1 = 1.0",
        "true",
    ],
    [
        "comparison",
        "<>",
        "a <> b",
        "Whether they are not equal.",
        "1 <> 2",
        "true",
    ],
    [
        "comparison",
        "<",
        "a < b",
        "Whether a comes before b.",
        "'a' < 'b'",
        "true",
    ],
    [
        "comparison",
        "<=",
        "a <= b",
        "Whether a comes before b or equals it.",
        "2 <= 1.5",
        "false",
    ],
    [
        "comparison",
        ">",
        "a > b",
        "Whether a comes after b.",
        "DATE '2024-02-29' > '2024-01-01'",
        "true",
    ],
    [
        "comparison",
        ">=",
        "a >= b",
        "Whether a comes after b or equals it.",
        "1 >= 1",
        "true",
    ],
    [
        "comparison",
        "IS NULL",
        "x IS [NOT] NULL",
        "Whether there is no value.",
        "CAST(NULL AS INT) IS NULL",
        "true",
    ],
    [
        "comparison",
        "IS DISTINCT FROM",
        "a IS [NOT] DISTINCT FROM b",
        "Whether they differ, where NULL is a value like others.",
        "CAST(NULL AS INT) IS DISTINCT FROM 1",
        "true",
    ],
    [
        "comparison",
        "BETWEEN",
        "x [NOT] BETWEEN [ASYMMETRIC | SYMMETRIC] a AND b",
        "Whether x lies in the range, its ends included; SYMMETRIC takes the ends in any order.",
        "2 BETWEEN SYMMETRIC 3 AND 1",
        "true",
    ],
    [
        "comparison",
        "IN",
        "x [NOT] IN (a [, ...])\nx [NOT] IN (query)",
        "Whether x equals one of the values or rows.",
        "2 IN (1, 2)",
        "true",
    ],
    [
        "comparison",
        "EXISTS",
        "[NOT] EXISTS (query)",
        "Whether the query has a row.",
        "",
        "",
    ],
    [
        "comparison",
        "SOME",
        "x = SOME (query)\nx = ANY (query)",
        "Whether the comparison holds for a row of the query.",
        "",
        "",
    ],
    [
        "comparison",
        "ALL",
        "x > ALL (query)",
        "Whether the comparison holds for all rows of the query.",
        "",
        "",
    ],
    [
        "logic",
        "AND",
        "a AND b",
        "Whether both are true; false if one is false, else unknown if one is NULL.",
        "FALSE AND CAST(NULL AS BOOLEAN)",
        "false",
    ],
    [
        "logic",
        "OR",
        "a OR b",
        "Whether one is true; true if one is true, else unknown if one is NULL.",
        "TRUE OR CAST(NULL AS BOOLEAN)",
        "true",
    ],
    [
        "logic",
        "NOT",
        "NOT a",
        "The contrary; unknown if a is NULL.",
        "NOT FALSE",
        "true",
    ],
    [
        "logic",
        "IS TRUE",
        "a IS [NOT] TRUE",
        "Whether a is true, and not false or unknown.",
        "CAST(NULL AS BOOLEAN) IS TRUE",
        "false",
    ],
    [
        "logic",
        "IS FALSE",
        "a IS [NOT] FALSE",
        "Whether a is false, and not true or unknown.",
        "FALSE IS FALSE",
        "true",
    ],
    [
        "logic",
        "IS UNKNOWN",
        "a IS [NOT] UNKNOWN",
        "Whether a is NULL.",
        "CAST(NULL AS BOOLEAN) IS UNKNOWN",
        "true",
    ],
    [
        "collection",
        "DOT",
        "row.field\nrow.*",
        "A field of a row by its name, or all of them as columns.",
        "CAST(ROW(1, 'a') AS ROW<x INT, y STRING>).y",
        "a",
    ],
    [
        "pattern",
        "FIRST",
        "FIRST(x [, n INT])",
        "In MEASURES and DEFINE: x of the first row, or of the n-th behind it, that a variable took.",
        "",
        "",
    ],
    [
        "pattern",
        "LAST",
        "LAST(x [, n INT])",
        "In MEASURES and DEFINE: x of the last row, or of the n-th before it, that a variable took.",
        "",
        "",
    ],
    [
        "pattern",
        "MATCH_ROWTIME",
        "MATCH_ROWTIME([rowtime])",
        "In MEASURES: the time of the last row of the match, as an event-time attribute.",
        "",
        "",
    ],
    [
        "pattern",
        "MATCH_PROCTIME",
        "MATCH_PROCTIME()",
        "In MEASURES: the clock, as a processing-time attribute.",
        "",
        "",
    ],
];

/// Name and description of each.
pub(super) fn all() -> impl Iterator<Item = (&'static str, FunctionDoc)> {
    ROWS.iter()
        .map(|[topic, name, signature, summary, example, result]| {
            let doc = FunctionDoc::new(FunctionKind::Scalar, topic, signature, summary);
            (*name, doc.example(example, result))
        })
}
