//! Functions whose names Flink writes without quotes and in upper case: those of its operator table.
//! All others are written in backticks, as the user spelt them.

/// The functions, sorted.
#[rustfmt::skip]
const BARE: &[&str] = &[
    "ABS", "ACOS", "APPROX_COUNT_DISTINCT", "ARRAY", "ARRAY_AGG", "ASCII", "ASIN", "ATAN",
    "ATAN2", "AUXILIARY_GROUP", "AVG", "BIN", "CARDINALITY", "CEIL", "CEILING",
    "CHARACTER_LENGTH", "CHAR_LENGTH", "CHR", "CLASSIFIER", "COALESCE", "COLLECT", "CONCAT",
    "CONCAT_WS", "CONVERT_TZ", "COS", "COSH", "COT", "COUNT", "CUME_DIST", "CUMULATE",
    "CURRENT_DATABASE", "CURRENT_DATE", "CURRENT_ROW_TIMESTAMP", "CURRENT_TIME",
    "CURRENT_TIMESTAMP", "DATE_FORMAT", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "DECODE",
    "DEGREES", "DENSE_RANK", "DESCRIPTOR", "E", "ELEMENT", "ENCODE", "EXP", "EXTRACT", "FIRST",
    "FIRST_VALUE", "FLOOR", "FROM_BASE64", "FROM_UNIXTIME", "GROUPING", "GROUPING_ID", "GROUP_ID",
    "HASH_CODE", "HEX", "HOP", "HOP_END", "HOP_PROCTIME", "HOP_ROWTIME", "HOP_START", "HOUR",
    "IF", "INITCAP", "INSTR", "IS_ALPHA", "IS_DECIMAL", "IS_DIGIT", "JSON_ARRAY", "JSON_ARRAYAGG",
    "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_QUERY", "JSON_VALUE", "LAG", "LAST",
    "LAST_VALUE", "LEAD", "LEFT", "LISTAGG", "LN", "LOCALTIME", "LOCALTIMESTAMP", "LOCATE", "LOG",
    "LOG10", "LOG2", "LOWER", "LPAD", "LTRIM", "MAP", "MATCH_NUMBER", "MATCH_PROCTIME",
    "MATCH_ROWTIME", "MAX", "MD5", "MIN", "MINUTE", "ML_EVALUATE", "MOD", "MONTH", "MULTISET",
    "NEXT", "NOW", "NTILE", "NULLIF", "OVERLAY", "PARSE_URL", "PERCENT_RANK", "PI", "POSITION",
    "POWER", "PREV", "PRINT", "PROCTIME", "PROCTIME_MATERIALIZE", "QUARTER", "RADIANS", "RAND",
    "RAND_INTEGER", "RANK", "REGEXP", "REGEXP_EXTRACT", "REGEXP_REPLACE", "REPEAT", "REPLACE",
    "REVERSE", "RIGHT", "ROUND", "ROW", "ROW_NUMBER", "RPAD", "RTRIM", "SECOND", "SESSION",
    "SESSION_END", "SESSION_PROCTIME", "SESSION_ROWTIME", "SESSION_START", "SHA1", "SHA2",
    "SHA224", "SHA256", "SHA384", "SHA512", "SIGN", "SIN", "SINGLE_VALUE", "SINH", "SPLIT_INDEX",
    "SQRT", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "STREAMRECORD_TIMESTAMP", "STR_TO_MAP",
    "SUBSTR", "SUBSTRING", "SUM", "TABLE", "TAN", "TANH", "TIMESTAMPADD", "TIMESTAMPDIFF",
    "TO_BASE64", "TO_DATE", "TO_TIMESTAMP", "TRIM", "TRUNCATE", "TRY_PARSE_JSON", "TUMBLE",
    "TUMBLE_END", "TUMBLE_PROCTIME", "TUMBLE_ROWTIME", "TUMBLE_START", "UNIX_TIMESTAMP", "UPPER",
    "UUID", "VARIANCE", "VAR_POP", "VAR_SAMP", "VECTOR_SEARCH", "WEEK", "YEAR",
];

/// Whether the function `name`, in upper case, is written without quotes.
pub(super) fn is_bare(name: &str) -> bool {
    BARE.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted() {
        assert!(super::BARE.is_sorted());
    }
}
