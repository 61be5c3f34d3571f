//! `CREATE TABLE` and the table elements it shares with `ALTER TABLE`.

use sqlparser::ast::Ident;

use super::super::ast::{
    ColumnKind, ColumnPosition, CreateMaterializedTable, CreateTable, Distribution,
    DistributionKind, LikeFeature, LikeMerge, RefreshMode, Replace, SqlOption, Statement,
    TableColumn, TableElement, TableKey, TableLike, Watermark,
};
use super::FlinkParser;
use crate::error::{Error, Result, Span};

impl FlinkParser<'_> {
    /// What follows `[CREATE] [OR REPLACE] [TEMPORARY] TABLE`.
    pub(super) fn create_table(&mut self, temporary: bool, replace: Replace) -> Result<Statement> {
        let mut table = self.table_head(temporary, replace)?;
        if replace == Replace::Replace {
            self.expect_word("AS")?;
            table.as_query = Some(self.sql_query()?);
        } else if self.take_word("LIKE") {
            table.like = Some(self.table_like()?);
        } else if self.take_word("AS") {
            table.as_query = Some(self.sql_query()?);
        }
        if table.as_query.is_none()
            && let Some(column) = table.column_order.first()
        {
            let reason = "Columns identifiers without types in the schema are supported on CTAS/RTAS statements only.";
            let at = super::super::span_of_ident(column).unwrap_or_default();
            return Err(self.error(reason, at));
        }
        Ok(Statement::CreateTable(table))
    }

    /// What follows `CREATE [OR ALTER] MATERIALIZED TABLE`.
    pub(super) fn create_materialized_table(&mut self, replace: Replace) -> Result<Statement> {
        let mut table = self.table_head(false, replace)?;
        let start_mode = if self.take_word("START_MODE") {
            self.expect_symbol("=")?;
            let start = self.here();
            self.ident()?;
            if self.take_symbol("(") {
                self.expr()?;
                self.expect_symbol(")")?;
            }
            Some(self.text_of(self.since(start)))
        } else {
            None
        };
        let freshness = if self.take_word("FRESHNESS") {
            self.expect_symbol("=")?;
            Some(self.expr()?)
        } else {
            None
        };
        let refresh_mode = if self.take_word("REFRESH_MODE") {
            self.expect_symbol("=")?;
            Some(self.refresh_mode()?)
        } else {
            None
        };
        self.expect_word("AS")?;
        table.as_query = Some(self.sql_query()?);
        Ok(Statement::CreateMaterializedTable(
            CreateMaterializedTable {
                table,
                start_mode,
                freshness,
                refresh_mode,
            },
        ))
    }

    pub(super) fn refresh_mode(&mut self) -> Result<RefreshMode> {
        Ok(match self.expect_one_of(&["CONTINUOUS", "FULL"])? {
            "FULL" => RefreshMode::Full,
            _ => RefreshMode::Continuous,
        })
    }

    /// Name, elements and clauses up to `WITH`.
    fn table_head(&mut self, temporary: bool, replace: Replace) -> Result<CreateTable> {
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"]);
        let name = self.object_name()?;
        let mut elements = Vec::new();
        let mut column_order = Vec::new();
        if self.peek_symbol("(") {
            if self.is_name_at(1)
                && (self.peek_at(2).is_symbol(",") || self.peek_at(2).is_symbol(")"))
            {
                column_order = self.parenthesized(Self::ident)?;
            } else {
                elements = self.table_elements()?;
            }
        }
        let comment = self.comment()?;
        let distribution = self.optional_distribution()?;
        let partitioned_by = if self.take_words(&["PARTITIONED", "BY"]) {
            self.parenthesized(Self::ident)?
        } else {
            Vec::new()
        };
        let options = self.with_options()?;
        Ok(CreateTable {
            temporary,
            if_not_exists,
            replace,
            name,
            elements,
            column_order,
            comment,
            distribution,
            partitioned_by,
            options,
            like: None,
            as_query: None,
        })
    }

    /// `WITH ('k' = 'v', ..)`, if it is there.
    pub(super) fn with_options(&mut self) -> Result<Vec<SqlOption>> {
        if !self.take_word("WITH") {
            return Ok(Vec::new());
        }
        self.option_list()
    }

    /// `(element, ..)`
    pub(super) fn table_elements(&mut self) -> Result<Vec<TableElement>> {
        self.expect_symbol("(")?;
        let mut elements = Vec::new();
        loop {
            self.table_element(&mut elements)?;
            if !self.take_symbol(",") {
                break;
            }
        }
        self.expect_symbol(")")?;
        Ok(elements)
    }

    /// A column, a watermark or a key; a key that is written behind its column follows it.
    pub(super) fn table_element(&mut self, elements: &mut Vec<TableElement>) -> Result<()> {
        let start = self.here();
        if self.take_word("WATERMARK") {
            self.expect_word("FOR")?;
            let column = self.compound_ident()?;
            self.expect_word("AS")?;
            let expr = self.sql_expr()?;
            let watermark = Watermark {
                column,
                expr,
                span: self.since(start),
            };
            if elements
                .iter()
                .any(|e| matches!(e, TableElement::Watermark(_)))
            {
                let reason = "Multiple WATERMARK statements is not supported yet.";
                return Err(Error::parse(reason).at(watermark.span));
            }
            elements.push(TableElement::Watermark(watermark));
            return Ok(());
        }
        let name = if self.take_word("CONSTRAINT") {
            Some(self.ident()?)
        } else {
            None
        };
        if name.is_some() || self.peek_word("PRIMARY") || self.peek_word("UNIQUE") {
            let primary = self.key_kind()?;
            let columns = self.parenthesized(Self::ident)?;
            let key = self.key_end(name, primary, columns, start)?;
            elements.push(TableElement::Key(key));
            return Ok(());
        }
        self.table_column(elements)
    }

    /// `a`, `a.b.c`
    pub(super) fn compound_ident(&mut self) -> Result<Vec<Ident>> {
        let mut parts = vec![self.ident()?];
        while self.take_symbol(".") {
            parts.push(self.ident()?);
        }
        Ok(parts)
    }

    /// A column's name. A path to a field of a row column is understood and refused.
    pub(super) fn column_name(&mut self) -> Result<Ident> {
        let start = self.here();
        let mut path = self.compound_ident()?;
        match path.pop() {
            Some(name) if path.is_empty() => Ok(name),
            _ => {
                let at = self.since(start);
                let path = self.text_of(at);
                Err(Error::plan(format!(
                    "Altering the nested row type {path} is not supported yet."
                ))
                .at(at))
            }
        }
    }

    fn key_kind(&mut self) -> Result<bool> {
        if self.expect_one_of(&["PRIMARY", "UNIQUE"])? == "PRIMARY" {
            self.expect_word("KEY")?;
            return Ok(true);
        }
        Ok(false)
    }

    fn key_end(
        &mut self,
        name: Option<Ident>,
        primary: bool,
        columns: Vec<Ident>,
        start: Span,
    ) -> Result<TableKey> {
        let enforced = if self.take_word("ENFORCED") {
            Some(true)
        } else if self.take_words(&["NOT", "ENFORCED"]) {
            Some(false)
        } else {
            None
        };
        Ok(TableKey {
            name,
            primary,
            columns,
            enforced,
            span: self.since(start),
        })
    }

    fn table_column(&mut self, elements: &mut Vec<TableElement>) -> Result<()> {
        let start = self.here();
        let name = self.column_name()?;
        let mut key = None;
        let kind = if self.take_word("AS") {
            ColumnKind::Computed(self.sql_expr()?)
        } else {
            if self.peek_word("INTERVAL") {
                return Err(self
                    .error("Incorrect syntax near the keyword 'INTERVAL'", self.here())
                    .hint("intervals are not stored: keep a number of seconds or months"));
            }
            let data_type = self.sql_type()?;
            if self.take_word("METADATA") {
                let from = if self.take_word("FROM") {
                    Some(self.string_literal("a metadata key in single quotes")?)
                } else {
                    None
                };
                ColumnKind::Metadata {
                    data_type,
                    key: from,
                    is_virtual: self.take_word("VIRTUAL"),
                }
            } else {
                key = self.inline_key(&name)?;
                ColumnKind::Physical(data_type)
            }
        };
        let comment = self.comment()?;
        let position = if self.take_word("FIRST") {
            Some(ColumnPosition::First)
        } else if self.take_word("AFTER") {
            Some(ColumnPosition::After(self.column_name()?))
        } else {
            None
        };
        elements.push(TableElement::Column(TableColumn {
            name,
            kind,
            comment,
            position,
            span: self.since(start),
        }));
        elements.extend(key.map(TableElement::Key));
        Ok(())
    }

    /// `[CONSTRAINT n] PRIMARY KEY [NOT ENFORCED]` behind a column.
    fn inline_key(&mut self, column: &Ident) -> Result<Option<TableKey>> {
        let start = self.here();
        let name = if self.take_word("CONSTRAINT") {
            Some(self.ident()?)
        } else {
            None
        };
        if name.is_none() && !self.peek_word("PRIMARY") && !self.peek_word("UNIQUE") {
            return Ok(None);
        }
        let primary = self.key_kind()?;
        let key = self.key_end(name, primary, vec![column.clone()], start)?;
        Ok(Some(key))
    }

    fn optional_distribution(&mut self) -> Result<Option<Distribution>> {
        if !self.take_word("DISTRIBUTED") {
            return Ok(None);
        }
        Ok(Some(self.distribution_spec()?))
    }

    /// What follows `DISTRIBUTED`, or `ADD` and `MODIFY DISTRIBUTION`.
    pub(super) fn distribution_spec(&mut self) -> Result<Distribution> {
        let mut distribution = Distribution {
            kind: None,
            columns: Vec::new(),
            buckets: None,
        };
        let by = self.take_word("BY");
        if by {
            distribution.kind = match self.take_one_of(&["HASH", "RANGE"]) {
                Some("HASH") => Some(DistributionKind::Hash),
                Some(_) => Some(DistributionKind::Range),
                None => None,
            };
            distribution.columns = self.parenthesized(Self::ident)?;
        }
        if !by || self.peek_word("INTO") {
            self.expect_word("INTO")?;
            distribution.buckets = Some(self.integer("a number of buckets")?);
            self.expect_word("BUCKETS")?;
        }
        Ok(distribution)
    }

    /// What follows `LIKE`.
    fn table_like(&mut self) -> Result<TableLike> {
        let source = self.object_name()?;
        let mut options = Vec::new();
        if self.take_symbol("(") {
            options.push(self.like_option()?);
            while !self.take_symbol(")") {
                options.push(self.like_option()?);
            }
        }
        Ok(TableLike { source, options })
    }

    fn like_option(&mut self) -> Result<(LikeMerge, LikeFeature)> {
        let start = self.here();
        let merge = match self.expect_one_of(&["INCLUDING", "EXCLUDING", "OVERWRITING"])? {
            "INCLUDING" => LikeMerge::Including,
            "EXCLUDING" => LikeMerge::Excluding,
            _ => LikeMerge::Overwriting,
        };
        let feature = match self.expect_one_of(&[
            "ALL",
            "CONSTRAINTS",
            "DISTRIBUTION",
            "GENERATED",
            "METADATA",
            "OPTIONS",
            "PARTITIONS",
            "WATERMARKS",
        ])? {
            "ALL" => LikeFeature::All,
            "CONSTRAINTS" => LikeFeature::Constraints,
            "DISTRIBUTION" => LikeFeature::Distribution,
            "GENERATED" => LikeFeature::Generated,
            "METADATA" => LikeFeature::Metadata,
            "OPTIONS" => LikeFeature::Options,
            "PARTITIONS" => LikeFeature::Partitions,
            _ => LikeFeature::Watermarks,
        };
        let overwritable = matches!(
            feature,
            LikeFeature::Generated
                | LikeFeature::Metadata
                | LikeFeature::Options
                | LikeFeature::Watermarks
        );
        if merge == LikeMerge::Overwriting && !overwritable {
            let reason = "OVERWRITING goes with GENERATED, METADATA, OPTIONS and WATERMARKS only";
            return Err(self.error(reason, self.since(start)));
        }
        Ok((merge, feature))
    }
}
