//! Results of statements, page by page, as the REST API writes them with `rowFormat=PLAIN_TEXT`: every
//! value as the text that Flink's own client shows.

use serde_json::Value;

use crate::changelog::RowKind;
use crate::error::{Error, Result};
use crate::types::{Column, DataType, Schema, TypeKind};

/// A page of a result.
#[derive(Debug, Clone)]
pub struct Page {
    /// The columns; types that a table is not laid out by are STRING.
    pub schema: Schema,
    /// The rows: their kind, and a text for each value that is not NULL.
    pub rows: Vec<(RowKind, Vec<Option<String>>)>,
    /// Whether rows are still to be made.
    pub ready: bool,
    /// Whether the rows are those of a query, with kinds that mean something.
    pub is_query: bool,
    /// The job behind the statement.
    pub job_id: Option<String>,
    /// Path of the next page; none behind the last one.
    pub next: Option<String>,
}

impl Page {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it is no page.
    pub fn read(answer: &Value) -> Result<Self> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let result_type = text("resultType").ok_or_else(|| rubbish("resultType"))?;
        let ready = match result_type {
            "NOT_READY" => false,
            "PAYLOAD" | "EOS" => true,
            _ => return Err(rubbish("resultType")),
        };
        let next = text("nextResultUri").map(str::to_string);
        let mut page = Self {
            schema: Schema::default(),
            rows: Vec::new(),
            ready,
            is_query: answer
                .get("isQueryResult")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            job_id: text("jobID").map(str::to_string),
            next: next.filter(|_| result_type != "EOS"),
        };
        let Some(results) = answer.get("results").filter(|r| ready && !r.is_null()) else {
            return Ok(page);
        };
        let columns = results.get("columns").and_then(Value::as_array);
        for column in columns.ok_or_else(|| rubbish("columns"))? {
            let name = column.get("name").and_then(Value::as_str);
            let data_type = column.get("logicalType").map(data_type);
            page.schema.columns.push(Column::new(
                name.ok_or_else(|| rubbish("name"))?,
                data_type.ok_or_else(|| rubbish("logicalType"))?,
            ));
        }
        let data = results.get("data").and_then(Value::as_array);
        for row in data.ok_or_else(|| rubbish("data"))? {
            page.rows.push(page.row(row)?);
        }
        Ok(page)
    }

    fn row(&self, row: &Value) -> Result<(RowKind, Vec<Option<String>>)> {
        let kind = match row.get("kind").and_then(Value::as_str) {
            Some("INSERT") => RowKind::Insert,
            Some("UPDATE_BEFORE") => RowKind::UpdateBefore,
            Some("UPDATE_AFTER") => RowKind::UpdateAfter,
            Some("DELETE") => RowKind::Delete,
            _ => return Err(rubbish("kind")),
        };
        let fields = row.get("fields").and_then(Value::as_array);
        let fields = fields.ok_or_else(|| rubbish("fields"))?;
        if fields.len() != self.schema.len() {
            return Err(rubbish("fields"));
        }
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Ok((kind, fields.iter().map(text).collect()))
    }
}

fn rubbish(what: &str) -> Error {
    Error::gateway(format!(
        "the gateway's answer is no page of a result: '{what}' is missing or of an unknown form"
    ))
}

/// The type by which a column is laid out.
fn data_type(logical: &Value) -> DataType {
    let precision = |key: &str| {
        let number = logical.get(key).and_then(Value::as_u64);
        number.and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
    };
    let name = logical.get("type").and_then(Value::as_str).unwrap_or("");
    let kind = match name {
        "BOOLEAN" => TypeKind::Boolean,
        "TINYINT" => TypeKind::TinyInt,
        "SMALLINT" => TypeKind::SmallInt,
        "INTEGER" => TypeKind::Int,
        "BIGINT" => TypeKind::BigInt,
        "DATE" => TypeKind::Date,
        "TIME_WITHOUT_TIME_ZONE" => TypeKind::Time(precision("precision")),
        "TIMESTAMP_WITHOUT_TIME_ZONE" => TypeKind::Timestamp(precision("precision")),
        "TIMESTAMP_WITH_LOCAL_TIME_ZONE" => TypeKind::TimestampLtz(precision("precision")),
        "DECIMAL" => TypeKind::Decimal(precision("precision"), precision("scale")),
        _ => TypeKind::STRING,
    };
    let nullable = logical.get("nullable").and_then(Value::as_bool);
    if nullable.unwrap_or(true) {
        kind.nullable()
    } else {
        kind.not_null()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_has_columns_kinds_and_nulls() {
        let page = Page::read(&json!({
            "resultType": "PAYLOAD", "isQueryResult": true, "jobID": "3e33",
            "resultKind": "SUCCESS_WITH_CONTENT",
            "results": {
                "columns": [
                    {"name": "n", "logicalType": {"type": "BIGINT", "nullable": true}, "comment": null},
                    {"name": "t", "logicalType": {"type": "TIMESTAMP_WITHOUT_TIME_ZONE", "nullable": false, "precision": 3}},
                    {"name": "a", "logicalType": {"type": "ARRAY", "nullable": false, "elementType": {"type": "INTEGER", "nullable": false}}},
                ],
                "rowFormat": "PLAIN_TEXT",
                "data": [{"kind": "UPDATE_AFTER", "fields": [null, "2020-01-01 00:00:00.123", "[1, 2]"]}],
            },
            "nextResultUri": "/v2/sessions/s/operations/o/result/1?rowFormat=PLAIN_TEXT",
        }))
        .expect("a page");
        assert!(page.ready && page.is_query);
        assert_eq!(page.job_id.as_deref(), Some("3e33"));
        assert_eq!(
            page.schema.columns[1].data_type,
            TypeKind::Timestamp(3).not_null()
        );
        let want = [None, Some("2020-01-01 00:00:00.123"), Some("[1, 2]")];
        assert_eq!(
            page.rows,
            [(
                RowKind::UpdateAfter,
                want.map(|v| v.map(str::to_string)).to_vec()
            )]
        );
        assert!(page.next.is_some());
    }

    #[test]
    fn a_page_that_is_not_ready_has_nothing() {
        let page = Page::read(&json!({"resultType": "NOT_READY", "nextResultUri": "/x"}));
        let page = page.expect("a page");
        assert!(!page.ready && page.rows.is_empty() && page.next.is_some());
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |answer| Page::read(&answer).expect_err("no page").to_string();
        assert!(missing(json!({"results": 7})).contains("'resultType'"));
        assert!(missing(json!({"resultType": "EOS", "results": {}})).contains("'columns'"));
        let odd = json!({"resultType": "EOS", "results": {"columns": [], "data": [{"kind": "?"}]}});
        assert!(missing(odd).contains("'kind'"));
    }
}
