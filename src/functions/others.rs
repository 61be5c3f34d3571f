//! Descriptions of the functions that other modules compute: aggregates, window functions, table
//! functions.

use super::doc::{FunctionDoc, FunctionKind};

use FunctionKind::{Aggregate, Scalar, Table, Window};

type Row = (FunctionKind, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        Scalar,
        "CASE",
        "CASE WHEN condition THEN x [...] [ELSE y] END\nCASE v WHEN w THEN x [...] [ELSE y] END",
        "The result of the first condition that is true.",
    ),
    (
        Scalar,
        "CAST",
        "CAST(x AS type)",
        "The value as another type; fails if it has no counterpart there.",
    ),
    (
        Scalar,
        "COALESCE",
        "COALESCE(x [, ...])",
        "The first argument that is not NULL.",
    ),
    (
        Scalar,
        "CURRENT_DATABASE",
        "CURRENT_DATABASE()",
        "The name of the current database.",
    ),
    (
        Scalar,
        "IF",
        "IF(condition, x, y)",
        "x if the condition is true, else y.",
    ),
    (
        Scalar,
        "NULLIF",
        "NULLIF(x, y)",
        "x, or NULL if it equals y.",
    ),
    (
        Scalar,
        "TRY_CAST",
        "TRY_CAST(x AS type)",
        "The value as another type, NULL if it has no counterpart there.",
    ),
    (
        Aggregate,
        "GROUPING",
        "GROUPING(x [, ...])",
        "Which of the grouping columns are aggregated away, as bits.",
    ),
    (
        Aggregate,
        "GROUPING_ID",
        "GROUPING_ID(x [, ...])",
        "Which of the grouping columns are aggregated away, as bits.",
    ),
    (
        Aggregate,
        "GROUP_ID",
        "GROUP_ID()",
        "Tells equal grouping sets apart.",
    ),
    (
        Aggregate,
        "TUMBLE_START",
        "TUMBLE_START(time, size)",
        "The start of the tumbling window of GROUP BY TUMBLE(time, size).",
    ),
    (
        Aggregate,
        "TUMBLE_END",
        "TUMBLE_END(time, size)",
        "The end of the tumbling window of GROUP BY TUMBLE(time, size).",
    ),
    (
        Aggregate,
        "TUMBLE_ROWTIME",
        "TUMBLE_ROWTIME(time, size)",
        "The last moment of the tumbling window of GROUP BY TUMBLE(time, size), as an event-time attribute.",
    ),
    (
        Aggregate,
        "TUMBLE_PROCTIME",
        "TUMBLE_PROCTIME(time, size)",
        "The clock at the end of the tumbling window of GROUP BY TUMBLE(time, size), as a processing-time attribute.",
    ),
    (
        Aggregate,
        "HOP_START",
        "HOP_START(time, slide, size)",
        "The start of the sliding window of GROUP BY HOP(time, slide, size).",
    ),
    (
        Aggregate,
        "HOP_END",
        "HOP_END(time, slide, size)",
        "The end of the sliding window of GROUP BY HOP(time, slide, size).",
    ),
    (
        Aggregate,
        "HOP_ROWTIME",
        "HOP_ROWTIME(time, slide, size)",
        "The last moment of the sliding window of GROUP BY HOP(time, slide, size), as an event-time attribute.",
    ),
    (
        Aggregate,
        "HOP_PROCTIME",
        "HOP_PROCTIME(time, slide, size)",
        "The clock at the end of the sliding window of GROUP BY HOP(time, slide, size), as a processing-time attribute.",
    ),
    (
        Aggregate,
        "SESSION_START",
        "SESSION_START(time, gap)",
        "The start of the session of GROUP BY SESSION(time, gap).",
    ),
    (
        Aggregate,
        "SESSION_END",
        "SESSION_END(time, gap)",
        "The end of the session of GROUP BY SESSION(time, gap).",
    ),
    (
        Aggregate,
        "SESSION_ROWTIME",
        "SESSION_ROWTIME(time, gap)",
        "The last moment of the session of GROUP BY SESSION(time, gap), as an event-time attribute.",
    ),
    (
        Aggregate,
        "SESSION_PROCTIME",
        "SESSION_PROCTIME(time, gap)",
        "The clock at the end of the session of GROUP BY SESSION(time, gap), as a processing-time attribute.",
    ),
    (
        Aggregate,
        "APPROX_COUNT_DISTINCT",
        "APPROX_COUNT_DISTINCT(x)",
        "About how many different values (batch only in Flink).",
    ),
    (
        Aggregate,
        "ARRAY_AGG",
        "ARRAY_AGG([DISTINCT] x [RESPECT NULLS | IGNORE NULLS])",
        "All values as an array.",
    ),
    (
        Aggregate,
        "AVG",
        "AVG([DISTINCT] x)",
        "The mean; of integers an integer.",
    ),
    (
        Aggregate,
        "BITMAP_AND_AGG",
        "BITMAP_AND_AGG(b BITMAP)",
        "The integers that are in all sets.",
    ),
    (
        Aggregate,
        "BITMAP_AND_CARDINALITY_AGG",
        "BITMAP_AND_CARDINALITY_AGG(b BITMAP)",
        "How many integers are in all sets.",
    ),
    (
        Aggregate,
        "BITMAP_BUILD_AGG",
        "BITMAP_BUILD_AGG(x INT)",
        "All integers as a set.",
    ),
    (
        Aggregate,
        "BITMAP_BUILD_CARDINALITY_AGG",
        "BITMAP_BUILD_CARDINALITY_AGG(x INT)",
        "The number of different integers.",
    ),
    (
        Aggregate,
        "BITMAP_OR_AGG",
        "BITMAP_OR_AGG(b BITMAP)",
        "The integers that are in one of the sets.",
    ),
    (
        Aggregate,
        "BITMAP_OR_CARDINALITY_AGG",
        "BITMAP_OR_CARDINALITY_AGG(b BITMAP)",
        "How many integers are in one of the sets.",
    ),
    (
        Aggregate,
        "BITMAP_XOR_AGG",
        "BITMAP_XOR_AGG(b BITMAP)",
        "The integers that are in an odd number of sets.",
    ),
    (
        Aggregate,
        "BITMAP_XOR_CARDINALITY_AGG",
        "BITMAP_XOR_CARDINALITY_AGG(b BITMAP)",
        "How many integers are in an odd number of sets.",
    ),
    (
        Aggregate,
        "COLLECT",
        "COLLECT([DISTINCT] x)",
        "All values as a multiset.",
    ),
    (
        Aggregate,
        "COUNT",
        "COUNT(*)\nCOUNT([DISTINCT] x [, ...])",
        "The number of rows, or of rows in which no argument is NULL.",
    ),
    (
        Aggregate,
        "FIRST_VALUE",
        "FIRST_VALUE(x)",
        "The first value to arrive that is not NULL.",
    ),
    (
        Aggregate,
        "JSON_ARRAYAGG",
        "JSON_ARRAYAGG(x [{NULL | ABSENT} ON NULL])",
        "All values as a JSON array.",
    ),
    (
        Aggregate,
        "JSON_OBJECTAGG",
        "JSON_OBJECTAGG([KEY] k VALUE v [{NULL | ABSENT} ON NULL])",
        "All pairs as a JSON object.",
    ),
    (
        Aggregate,
        "LAST_VALUE",
        "LAST_VALUE(x)",
        "The last value to arrive that is not NULL.",
    ),
    (
        Aggregate,
        "LISTAGG",
        "LISTAGG([DISTINCT] s [, separator])",
        "All texts, joined; ',' between them by default.",
    ),
    (Aggregate, "MAX", "MAX(x)", "The largest value."),
    (Aggregate, "MIN", "MIN(x)", "The smallest value."),
    (
        Aggregate,
        "PERCENTILE",
        "PERCENTILE(x, p [, frequency])",
        "The exact percentile, interpolated; p may be an array.",
    ),
    (
        Aggregate,
        "SINGLE_VALUE",
        "SINGLE_VALUE(x)",
        "The value of the only row; fails on several.",
    ),
    (
        Aggregate,
        "STDDEV",
        "STDDEV(x)",
        "The sample standard deviation.",
    ),
    (
        Aggregate,
        "STDDEV_POP",
        "STDDEV_POP(x)",
        "The population standard deviation.",
    ),
    (
        Aggregate,
        "STDDEV_SAMP",
        "STDDEV_SAMP(x)",
        "The sample standard deviation.",
    ),
    (
        Aggregate,
        "SUM",
        "SUM([DISTINCT] x)",
        "The sum, NULL without a value.",
    ),
    (Aggregate, "VARIANCE", "VARIANCE(x)", "The sample variance."),
    (
        Aggregate,
        "VAR_POP",
        "VAR_POP(x)",
        "The population variance.",
    ),
    (Aggregate, "VAR_SAMP", "VAR_SAMP(x)", "The sample variance."),
    (
        Window,
        "CUME_DIST",
        "CUME_DIST() OVER (...)",
        "The relative rank; in batch only.",
    ),
    (
        Window,
        "DENSE_RANK",
        "DENSE_RANK() OVER (...)",
        "The rank without gaps.",
    ),
    (
        Window,
        "LAG",
        "LAG(x [, offset [, default]]) OVER (...)",
        "The value of an earlier row.",
    ),
    (
        Window,
        "LEAD",
        "LEAD(x [, offset [, default]]) OVER (...)",
        "The value of a later row; in batch only.",
    ),
    (
        Window,
        "NTILE",
        "NTILE(n) OVER (...)",
        "The bucket of the row; in batch only.",
    ),
    (
        Window,
        "PERCENT_RANK",
        "PERCENT_RANK() OVER (...)",
        "The rank as a fraction; in batch only.",
    ),
    (Window, "RANK", "RANK() OVER (...)", "The rank with gaps."),
    (
        Window,
        "ROW_NUMBER",
        "ROW_NUMBER() OVER (...)",
        "The number of the row.",
    ),
    (
        Table,
        "CUMULATE",
        "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), step, size [, offset]))",
        "Windows that grow by a step up to a size.",
    ),
    (
        Table,
        "HOP",
        "TABLE(HOP(TABLE t, DESCRIPTOR(ts), slide, size [, offset]))",
        "Windows of a size, one every slide.",
    ),
    (
        Table,
        "SESSION",
        "TABLE(SESSION(TABLE t [PARTITION BY k], DESCRIPTOR(ts), gap))",
        "Windows that end after a gap.",
    ),
    (
        Table,
        "TUMBLE",
        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset]))",
        "Windows of a size, side by side.",
    ),
    (
        Table,
        "UNNEST",
        "UNNEST(collection) [WITH ORDINALITY]",
        "A row for every element of an array, map or multiset.",
    ),
];

/// Rows for the examples of aggregate functions.
pub(super) const EXAMPLE_ROWS: &str = "(VALUES (1), (2), (2)) AS t (x)";

/// Examples of aggregate functions over [`EXAMPLE_ROWS`], and of special forms.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("CASE", "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END", "b"),
    ("CAST", "CAST('12' AS INT) + 1", "13"),
    ("COALESCE", "COALESCE(CAST(NULL AS INT), 2)", "2"),
    ("CURRENT_DATABASE", "CURRENT_DATABASE()", "default_database"),
    ("IF", "IF(1 < 2, 'yes', 'no')", "yes"),
    ("NULLIF", "NULLIF(3, 3)", "null"),
    ("TRY_CAST", "TRY_CAST('x' AS INT)", "null"),
    ("ARRAY_AGG", "ARRAY_AGG(x)", "[1, 2, 2]"),
    ("AVG", "AVG(CAST(x AS DOUBLE))", "1.6666666666666667"),
    (
        "BITMAP_AND_AGG",
        "BITMAP_AND_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "{2}",
    ),
    (
        "BITMAP_AND_CARDINALITY_AGG",
        "BITMAP_AND_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "1",
    ),
    ("BITMAP_BUILD_AGG", "BITMAP_BUILD_AGG(x)", "{1,2}"),
    (
        "BITMAP_BUILD_CARDINALITY_AGG",
        "BITMAP_BUILD_CARDINALITY_AGG(x)",
        "2",
    ),
    (
        "BITMAP_OR_AGG",
        "BITMAP_OR_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "{1,2}",
    ),
    (
        "BITMAP_OR_CARDINALITY_AGG",
        "BITMAP_OR_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "2",
    ),
    (
        "BITMAP_XOR_AGG",
        "BITMAP_XOR_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "{1,2}",
    ),
    (
        "BITMAP_XOR_CARDINALITY_AGG",
        "BITMAP_XOR_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[x, 2]))",
        "2",
    ),
    ("COLLECT", "COLLECT(x)", "{1=1, 2=2}"),
    ("COUNT", "COUNT(DISTINCT x)", "2"),
    ("FIRST_VALUE", "FIRST_VALUE(x)", "1"),
    ("JSON_ARRAYAGG", "JSON_ARRAYAGG(x)", "[1,2,2]"),
    ("LAST_VALUE", "LAST_VALUE(x)", "2"),
    ("LISTAGG", "LISTAGG(CAST(x AS STRING), '+')", "1+2+2"),
    ("MAX", "MAX(x)", "2"),
    ("MIN", "MIN(x)", "1"),
    ("PERCENTILE", "PERCENTILE(x, 0.25)", "1.5"),
    ("STDDEV", "STDDEV(CAST(x AS DOUBLE))", "0.5773502691896257"),
    (
        "STDDEV_POP",
        "STDDEV_POP(CAST(x AS DOUBLE))",
        "0.4714045207910317",
    ),
    (
        "STDDEV_SAMP",
        "STDDEV_SAMP(CAST(x AS DOUBLE))",
        "0.5773502691896257",
    ),
    ("SUM", "SUM(x)", "5"),
    (
        "VARIANCE",
        "VARIANCE(CAST(x AS DOUBLE))",
        "0.3333333333333333",
    ),
    (
        "VAR_POP",
        "VAR_POP(CAST(x AS DOUBLE))",
        "0.2222222222222222",
    ),
    (
        "VAR_SAMP",
        "VAR_SAMP(CAST(x AS DOUBLE))",
        "0.3333333333333333",
    ),
];

/// Name and description of each.
pub(super) fn all() -> impl Iterator<Item = (&'static str, FunctionDoc)> {
    ROWS.iter().map(|(kind, name, signature, summary)| {
        let topic = match kind {
            Scalar => "special",
            Aggregate => "aggregate",
            Window => "window",
            Table => "table",
        };
        let doc = FunctionDoc::new(*kind, topic, signature, summary);
        let doc = match EXAMPLES.iter().find(|(of, ..)| of == name) {
            Some((_, example, result)) => doc.example(example, result),
            None => doc,
        };
        (*name, doc)
    })
}
