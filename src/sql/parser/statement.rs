//! The first words of a statement, and the statements that are not DDL.

use sqlparser::ast::{Expr, Ident};

use super::super::ast::{
    ConflictStrategy, Explain, ExplainDetail, Insert, SqlOption, Statement, StopJob, Update, Use,
};
use super::super::hints;
use super::super::lexer::TokenKind;
use super::FlinkParser;
use crate::error::{Error, Result, Span};

/// The words a statement starts with.
const STATEMENT_STARTS: &[&str] = &[
    "ADD", "ALTER", "ANALYZE", "BEGIN", "CALL", "CLEAR", "COMPILE", "CREATE", "DELETE", "DESC",
    "DESCRIBE", "DROP", "EXECUTE", "EXIT", "EXPLAIN", "HELP", "INSERT", "LOAD", "QUIT", "REMOVE",
    "REPLACE", "RESET", "SELECT", "SET", "SHOW", "STOP", "TABLE", "TRUNCATE", "UNLOAD", "UPDATE",
    "USE", "VALUES", "WITH",
];

impl FlinkParser<'_> {
    /// One statement.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        if self.peek_symbol("(") {
            return Ok(Statement::Query(self.sql_query()?));
        }
        let Some(word) = STATEMENT_STARTS.iter().copied().find(|w| self.peek_word(w)) else {
            return Err(self.unexpected_of("a statement", STATEMENT_STARTS));
        };
        match word {
            "SELECT" | "WITH" | "VALUES" | "TABLE" => Ok(Statement::Query(self.sql_query()?)),
            "INSERT" => Ok(Statement::Insert(self.insert()?)),
            "EXECUTE" => self.execute(),
            "BEGIN" => {
                self.skip(1);
                self.expect_words(&["STATEMENT", "SET"])?;
                self.expect_symbol(";")?;
                Ok(Statement::StatementSet(self.inserts_until_end()?))
            }
            "EXPLAIN" => self.explain(),
            "CREATE" | "REPLACE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "SHOW" => self.show(),
            "DESC" | "DESCRIBE" => self.describe(),
            "SET" => self.set(),
            "RESET" => self.reset(),
            "USE" => self.use_statement(),
            _ => self.rare_statement(word),
        }
    }

    fn rare_statement(&mut self, word: &str) -> Result<Statement> {
        self.skip(1);
        match word {
            "LOAD" => {
                self.expect_word("MODULE")?;
                let name = self.ident()?;
                let options = self.with_options()?;
                Ok(Statement::LoadModule { name, options })
            }
            "UNLOAD" => {
                self.expect_word("MODULE")?;
                Ok(Statement::UnloadModule(self.ident()?))
            }
            "UPDATE" => self.update(),
            "DELETE" => {
                self.expect_word("FROM")?;
                let table = self.object_name()?;
                self.optional_alias()?;
                let selection = self.optional_where()?;
                Ok(Statement::Delete { table, selection })
            }
            "TRUNCATE" => {
                self.expect_word("TABLE")?;
                Ok(Statement::TruncateTable(self.object_name()?))
            }
            "ANALYZE" => self.analyze(),
            "CALL" => {
                let name = self.object_name()?;
                Ok(Statement::Call(self.generic_call(name)?))
            }
            "COMPILE" => self.compile(),
            "ADD" => {
                self.expect_word("JAR")?;
                Ok(Statement::AddJar(
                    self.string_literal("a path in single quotes")?,
                ))
            }
            "REMOVE" => {
                self.expect_word("JAR")?;
                let path = self.string_literal("a path in single quotes")?;
                Ok(Statement::RemoveJar(path))
            }
            "STOP" => {
                self.expect_word("JOB")?;
                let id = self.string_literal("a job's id in single quotes")?;
                let with_savepoint = self.take_words(&["WITH", "SAVEPOINT"]);
                let with_drain = with_savepoint && self.take_words(&["WITH", "DRAIN"]);
                Ok(Statement::StopJob(StopJob {
                    id,
                    with_savepoint,
                    with_drain,
                }))
            }
            "QUIT" | "EXIT" => Ok(Statement::Quit),
            "HELP" => Ok(Statement::Help),
            _ => Ok(Statement::Clear),
        }
    }

    fn execute(&mut self) -> Result<Statement> {
        self.expect_word("EXECUTE")?;
        if self.peek_word("STATEMENT") {
            return self.statement_set();
        }
        if self.take_word("PLAN") {
            return Ok(Statement::ExecutePlan(
                self.string_literal("a path in single quotes")?,
            ));
        }
        if self.peek_word("INSERT") {
            return Ok(Statement::Insert(self.insert()?));
        }
        if self.peek_query() {
            return Ok(Statement::Query(self.sql_query()?));
        }
        Err(self.unexpected_of(
            "STATEMENT SET, INSERT or PLAN",
            &["STATEMENT", "INSERT", "PLAN"],
        ))
    }

    /// `STATEMENT SET BEGIN insert; insert; END`
    fn statement_set(&mut self) -> Result<Statement> {
        self.expect_words(&["STATEMENT", "SET", "BEGIN"])?;
        Ok(Statement::StatementSet(self.inserts_until_end()?))
    }

    fn inserts_until_end(&mut self) -> Result<Vec<Insert>> {
        let mut inserts = Vec::new();
        while !self.take_word("END") {
            self.take_word("EXECUTE");
            inserts.push(self.insert()?);
            self.expect_symbol(";")?;
        }
        if inserts.is_empty() {
            self.position -= 1;
            return Err(self.unexpected_of("INSERT", &["INSERT"]));
        }
        Ok(inserts)
    }

    fn insert(&mut self) -> Result<Insert> {
        let start = self.here();
        self.expect_word("INSERT")?;
        let overwrite = self.expect_one_of(&["INTO", "OVERWRITE"])? == "OVERWRITE";
        let table = self.object_name()?;
        let options = hints::of_table(&self.table_hints()?)
            .into_iter()
            .flat_map(|hint| hint.options)
            .map(|(key, value)| super::super::ast::SqlOption {
                key,
                value,
                span: self.since(start),
            })
            .collect();
        let partition = if self.take_word("PARTITION") {
            self.parenthesized(|p| {
                let name = p.ident()?;
                p.expect_symbol("=")?;
                let at = p.here();
                let value = p.operand()?;
                if !is_constant(&value) {
                    return Err(Error::plan("A value of PARTITION must be a literal")
                        .at(p.since(at))
                        .hint(
                            "select the column instead: the partition is then found row by row",
                        ));
                }
                Ok((name, value))
            })?
        } else {
            Vec::new()
        };
        let columns = if self.peek_symbol("(") && !self.starts_query_in_parentheses() {
            self.parenthesized(Self::ident)?
        } else {
            Vec::new()
        };
        let source = self.sql_query()?;
        let on_conflict = if self.take_words(&["ON", "CONFLICT"]) {
            self.expect_word("DO")?;
            let strategy = self.expect_one_of(&["NOTHING", "ERROR", "DEDUPLICATE"])?;
            Some(match strategy {
                "NOTHING" => ConflictStrategy::Nothing,
                "ERROR" => ConflictStrategy::Error,
                _ => ConflictStrategy::Deduplicate,
            })
        } else {
            None
        };
        Ok(Insert {
            overwrite,
            table,
            hints: options,
            partition,
            columns,
            source,
            on_conflict,
            span: self.since(start),
        })
    }

    fn starts_query_in_parentheses(&self) -> bool {
        let mut at = 0;
        while self.peek_at(at).is_symbol("(") {
            at += 1;
        }
        ["SELECT", "WITH", "VALUES", "TABLE"]
            .iter()
            .any(|k| self.peek_at(at).is_word(k))
    }

    /// `p` or `p = 'v'`
    pub(super) fn partition_value(&mut self) -> Result<(Ident, Option<Expr>)> {
        let name = self.ident()?;
        let value = if self.take_symbol("=") {
            Some(self.expr()?)
        } else {
            None
        };
        Ok((name, value))
    }

    fn update(&mut self) -> Result<Statement> {
        let table = self.object_name()?;
        self.optional_alias()?;
        self.expect_word("SET")?;
        let assignments = self.comma_separated(|p| {
            let name = p.ident()?;
            p.expect_symbol("=")?;
            Ok((name, p.expr()?))
        })?;
        let selection = self.optional_where()?;
        Ok(Statement::Update(Update {
            table,
            assignments,
            selection,
        }))
    }

    fn optional_where(&mut self) -> Result<Option<Expr>> {
        if !self.take_word("WHERE") {
            return Ok(None);
        }
        Ok(Some(self.expr()?))
    }

    fn analyze(&mut self) -> Result<Statement> {
        self.expect_word("TABLE")?;
        let table = self.object_name()?;
        if self.take_word("PARTITION") {
            self.parenthesized(Self::partition_value)?;
        }
        self.expect_words(&["COMPUTE", "STATISTICS"])?;
        if self.take_word("FOR") {
            if self.take_word("ALL") {
                self.expect_word("COLUMNS")?;
            } else {
                self.expect_word("COLUMNS")?;
                self.comma_separated(Self::ident)?;
            }
        }
        Ok(Statement::AnalyzeTable(table))
    }

    fn compile(&mut self) -> Result<Statement> {
        let execute = self.take_words(&["AND", "EXECUTE"]);
        self.expect_word("PLAN")?;
        let path = self.string_literal("a path in single quotes")?;
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"]);
        self.expect_word("FOR")?;
        let statement = if self.peek_word("STATEMENT") {
            self.statement_set()?
        } else {
            Statement::Insert(self.insert()?)
        };
        Ok(Statement::CompilePlan {
            path,
            if_not_exists,
            execute,
            statement: Box::new(statement),
        })
    }

    fn explain(&mut self) -> Result<Statement> {
        self.expect_word("EXPLAIN")?;
        let mut details = Vec::new();
        if !self.take_words(&["PLAN", "FOR"]) {
            while let Some(detail) = self.explain_detail() {
                if details.contains(&detail) {
                    let reason = "Duplicate EXPLAIN DETAIL is not allowed.";
                    return Err(self.error(reason, self.last_token()));
                }
                details.push(detail);
                if !self.take_symbol(",") {
                    break;
                }
            }
        }
        let statement = if self.peek_word("STATEMENT") {
            self.statement_set()?
        } else if self.peek_word("EXECUTE") {
            self.execute()?
        } else if self.peek_word("INSERT") {
            Statement::Insert(self.insert()?)
        } else if self.peek_query() || self.peek_symbol("(") {
            Statement::Query(self.sql_query()?)
        } else if self.peek_word("CREATE") {
            self.create()?
        } else {
            let expected = ["PLAN", "STATEMENT", "INSERT", "SELECT", "CHANGELOG_MODE"];
            return Err(self.unexpected_of("a query, INSERT or STATEMENT SET", &expected));
        };
        Ok(Statement::Explain(Explain {
            details,
            statement: Box::new(statement),
        }))
    }

    fn explain_detail(&mut self) -> Option<ExplainDetail> {
        let word = self.take_one_of(&[
            "ESTIMATED_COST",
            "CHANGELOG_MODE",
            "JSON_EXECUTION_PLAN",
            "PLAN_ADVICE",
        ])?;
        Some(match word {
            "ESTIMATED_COST" => ExplainDetail::EstimatedCost,
            "CHANGELOG_MODE" => ExplainDetail::ChangelogMode,
            "JSON_EXECUTION_PLAN" => ExplainDetail::JsonExecutionPlan,
            _ => ExplainDetail::PlanAdvice,
        })
    }

    fn set(&mut self) -> Result<Statement> {
        self.expect_word("SET")?;
        if self.peek().kind == TokenKind::End || self.peek_symbol(";") {
            return Ok(Statement::Set(None));
        }
        if self.peek().kind == TokenKind::Word {
            return Ok(Statement::Set(Some(self.bare_option()?)));
        }
        Ok(Statement::Set(Some(self.option()?)))
    }

    /// `key = value` without quotes, which Flink takes in SET: no blanks in either of them.
    fn bare_option(&mut self) -> Result<SqlOption> {
        let start = self.here().start;
        let text = self.text.get(start..).unwrap_or_default();
        let text = text.trim_end().trim_end_matches(';').trim_end();
        let is_one = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, value) = (key.trim(), value.trim());
        let quoted = value
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''))
            .filter(|inside| !inside.contains('\''));
        if !is_one(key) || (quoted.is_none() && (!is_one(value) || value.contains('\''))) {
            return Err(self
                .unexpected("a key and a value")
                .hint("write SET 'key' = 'value'"));
        }
        let option = SqlOption {
            key: key.to_string(),
            value: quoted.unwrap_or(value).to_string(),
            span: Span::new(start, start + text.len()),
        };
        self.skip_to_end();
        Ok(option)
    }

    fn skip_to_end(&mut self) {
        while self.peek().kind != TokenKind::End {
            self.skip(1);
        }
    }

    fn reset(&mut self) -> Result<Statement> {
        self.expect_word("RESET")?;
        if self.peek().kind == TokenKind::End || self.peek_symbol(";") {
            return Ok(Statement::Reset(None));
        }
        if self.peek().kind == TokenKind::Word {
            let text = self.text.get(self.here().start..).unwrap_or_default();
            let key = text.trim_end().trim_end_matches(';').trim_end();
            if key.contains(|c: char| c.is_whitespace() || c == '\'') {
                return Err(self.unexpected("a key").hint("write RESET 'key'"));
            }
            let key = key.to_string();
            self.skip_to_end();
            return Ok(Statement::Reset(Some(key)));
        }
        let key = self.string_literal("an option's key in single quotes")?;
        Ok(Statement::Reset(Some(key)))
    }

    fn use_statement(&mut self) -> Result<Statement> {
        self.expect_word("USE")?;
        Ok(Statement::Use(if self.take_word("MODULES") {
            Use::Modules(self.comma_separated(Self::ident)?)
        } else if self.peek_word("CATALOG") && self.is_name_at(1) {
            self.skip(1);
            Use::Catalog(self.ident()?)
        } else {
            Use::Database(self.object_name()?)
        }))
    }
}

/// Whether an expression is a literal, perhaps with a sign.
fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) | Expr::Prefixed { .. } => true,
        Expr::UnaryOp { expr, .. } => is_constant(expr),
        _ => false,
    }
}
