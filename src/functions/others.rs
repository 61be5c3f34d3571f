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
        "The start of the tumbling window of GROUP BY TUMBLE(time, size); alike TUMBLE_END, TUMBLE_ROWTIME, TUMBLE_PROCTIME.",
    ),
    (
        Aggregate,
        "HOP_START",
        "HOP_START(time, slide, size)",
        "The start of the sliding window of GROUP BY HOP(time, slide, size); alike HOP_END, HOP_ROWTIME, HOP_PROCTIME.",
    ),
    (
        Aggregate,
        "SESSION_START",
        "SESSION_START(time, gap)",
        "The start of the session of GROUP BY SESSION(time, gap); alike SESSION_END, SESSION_ROWTIME, SESSION_PROCTIME.",
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

/// Name and description of each.
pub(super) fn all() -> impl Iterator<Item = (&'static str, FunctionDoc)> {
    ROWS.iter().map(|(kind, name, signature, summary)| {
        let topic = match kind {
            Scalar => "special",
            Aggregate => "aggregate",
            Window => "window",
            Table => "table",
        };
        (*name, FunctionDoc::new(*kind, topic, signature, summary))
    })
}
