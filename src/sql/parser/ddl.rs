//! `CREATE` and `DROP` of everything but tables.

use super::super::ast::{
    CreateCatalog, CreateDatabase, CreateFunction, CreateView, Drop, ObjectKind, Replace, Statement,
};
use super::FlinkParser;
use crate::error::Result;

impl FlinkParser<'_> {
    /// `CREATE ..`, `REPLACE TABLE`.
    pub(super) fn create(&mut self) -> Result<Statement> {
        if self.take_words(&["REPLACE", "TABLE"]) {
            return self.create_table(false, Replace::Replace);
        }
        self.expect_word("CREATE")?;
        if self.take_words(&["OR", "REPLACE"]) {
            let temporary = self.take_word("TEMPORARY");
            return match self.expect_one_of(&["TABLE", "VIEW"])? {
                "TABLE" => self.create_table(temporary, Replace::CreateOrReplace),
                _ => self.create_view(temporary, true),
            };
        }
        if self.take_words(&["OR", "ALTER"]) {
            self.expect_words(&["MATERIALIZED", "TABLE"])?;
            return self.create_materialized_table(Replace::CreateOrReplace);
        }
        let temporary = self.take_word("TEMPORARY");
        if temporary && self.take_words(&["SYSTEM", "FUNCTION"]) {
            let lenient = self.take_words(&["IF", "NOT", "EXISTS"]);
            let function = self.create_function(true, true, lenient)?;
            return Ok(Statement::CreateFunction(function));
        }
        let mut kinds = vec!["TABLE", "VIEW", "FUNCTION", "MODEL"];
        if !temporary {
            kinds.extend(["CATALOG", "DATABASE", "MATERIALIZED", "CONNECTION"]);
        }
        match self.expect_one_of(&kinds)? {
            "TABLE" => self.create_table(temporary, Replace::No),
            "VIEW" => self.create_view(temporary, false),
            "FUNCTION" => {
                let lenient = self.take_words(&["IF", "NOT", "EXISTS"]);
                let function = self.create_function(temporary, false, lenient)?;
                Ok(Statement::CreateFunction(function))
            }
            "MATERIALIZED" => {
                self.expect_word("TABLE")?;
                self.create_materialized_table(Replace::No)
            }
            "CATALOG" => {
                let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"]);
                let name = self.ident()?;
                let comment = self.comment()?;
                let options = self.with_options()?;
                Ok(Statement::CreateCatalog(CreateCatalog {
                    name,
                    if_not_exists,
                    comment,
                    options,
                }))
            }
            "DATABASE" => {
                let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"]);
                let name = self.object_name()?;
                let comment = self.comment()?;
                let options = self.with_options()?;
                Ok(Statement::CreateDatabase(CreateDatabase {
                    name,
                    if_not_exists,
                    comment,
                    options,
                }))
            }
            kind => Ok(self.unsupported_rest(&format!("CREATE {kind}"))),
        }
    }

    /// A statement that Flink has and we have not: the rest of it is not looked at.
    pub(super) fn unsupported_rest(&mut self, name: &str) -> Statement {
        self.position = self.tokens.len() - 1;
        Statement::Unsupported(name.to_string())
    }

    fn create_view(&mut self, temporary: bool, or_replace: bool) -> Result<Statement> {
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"]);
        let name = self.object_name()?;
        let columns = if self.peek_symbol("(") {
            self.parenthesized(Self::ident)?
        } else {
            Vec::new()
        };
        let comment = self.comment()?;
        self.expect_word("AS")?;
        let query = self.sql_query()?;
        Ok(Statement::CreateView(CreateView {
            temporary,
            or_replace,
            if_not_exists,
            name,
            columns,
            comment,
            query,
        }))
    }

    /// What follows `FUNCTION [IF ..]`, also of `ALTER`.
    pub(super) fn create_function(
        &mut self,
        temporary: bool,
        system: bool,
        lenient: bool,
    ) -> Result<CreateFunction> {
        let name = self.object_name()?;
        self.expect_word("AS")?;
        let class = self.string_literal("a class in single quotes")?;
        let language = if self.take_word("LANGUAGE") {
            let language = self.expect_one_of(&["JAVA", "SCALA", "SQL", "PYTHON"])?;
            Some(language.to_string())
        } else {
            None
        };
        let resources = if self.take_word("USING") {
            self.comma_separated(|p| {
                let kind = p.expect_one_of(&["JAR", "ARTIFACT"])?;
                let path = p.string_literal("a path in single quotes")?;
                Ok((kind.to_string(), path))
            })?
        } else {
            Vec::new()
        };
        let options = self.with_options()?;
        Ok(CreateFunction {
            temporary,
            system,
            lenient,
            name,
            class,
            language,
            resources,
            options,
        })
    }

    /// `DROP ..`
    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.expect_word("DROP")?;
        let temporary = self.take_word("TEMPORARY");
        let system = temporary && self.peek_words(&["SYSTEM", "FUNCTION"]);
        if system {
            self.skip(1);
        }
        let kinds = [
            "TABLE",
            "VIEW",
            "FUNCTION",
            "CATALOG",
            "DATABASE",
            "MATERIALIZED",
            "MODEL",
            "CONNECTION",
        ];
        let kind = match self.expect_one_of(&kinds)? {
            "TABLE" => ObjectKind::Table,
            "VIEW" => ObjectKind::View,
            "FUNCTION" => ObjectKind::Function,
            "CATALOG" => ObjectKind::Catalog,
            "DATABASE" => ObjectKind::Database,
            "MATERIALIZED" if !temporary => {
                self.expect_word("TABLE")?;
                ObjectKind::MaterializedTable
            }
            "MODEL" => ObjectKind::Model,
            kind => return Ok(self.unsupported_rest(&format!("DROP {kind}"))),
        };
        let if_exists = self.take_words(&["IF", "EXISTS"]);
        let name = self.object_name()?;
        let mut cascade = false;
        if kind == ObjectKind::Database && !self.take_word("RESTRICT") {
            cascade = self.take_word("CASCADE");
        }
        Ok(Statement::Drop(Drop {
            kind,
            temporary,
            system,
            if_exists,
            name,
            cascade,
        }))
    }
}
