//! `SHOW` and `DESCRIBE`.

use super::super::ast::{
    Describe, DescribeWhat, ObjectKind, Show, ShowFilter, ShowWhat, Statement,
};
use super::FlinkParser;
use crate::error::Result;

/// What `SHOW` is followed by.
const SHOWN: &[&str] = &[
    "CATALOGS",
    "COLUMNS",
    "CREATE",
    "CURRENT",
    "DATABASES",
    "FULL",
    "FUNCTIONS",
    "JARS",
    "JOBS",
    "MATERIALIZED",
    "MODELS",
    "MODULES",
    "PARTITIONS",
    "PROCEDURES",
    "TABLES",
    "USER",
    "VIEWS",
];

/// The clauses that a `SHOW` takes.
struct Accepts {
    from: bool,
    /// The words that take a pattern.
    filter: &'static [&'static str],
}

impl Accepts {
    fn of(what: &ShowWhat) -> Self {
        let (from, filter): (bool, &[_]) = match what {
            ShowWhat::Tables
            | ShowWhat::Views
            | ShowWhat::MaterializedTables
            | ShowWhat::Models => (true, &["LIKE"]),
            ShowWhat::Databases | ShowWhat::Functions { .. } | ShowWhat::Procedures => {
                (true, &["LIKE", "ILIKE"])
            }
            ShowWhat::Catalogs => (false, &["LIKE", "ILIKE"]),
            _ => (false, &[]),
        };
        Self { from, filter }
    }
}

impl FlinkParser<'_> {
    /// `SHOW ..`
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect_word("SHOW")?;
        let what = match self.expect_one_of(SHOWN)? {
            "CATALOGS" => ShowWhat::Catalogs,
            "DATABASES" => ShowWhat::Databases,
            "TABLES" => ShowWhat::Tables,
            "VIEWS" => ShowWhat::Views,
            "MATERIALIZED" => {
                self.expect_word("TABLES")?;
                ShowWhat::MaterializedTables
            }
            "COLUMNS" => return self.show_columns(),
            "PARTITIONS" => {
                let table = self.object_name()?;
                if self.take_word("PARTITION") {
                    self.parenthesized(Self::partition_value)?;
                }
                ShowWhat::Partitions(table)
            }
            "USER" => {
                self.expect_word("FUNCTIONS")?;
                ShowWhat::Functions { user: true }
            }
            "FUNCTIONS" => ShowWhat::Functions { user: false },
            "PROCEDURES" => ShowWhat::Procedures,
            "FULL" => {
                self.expect_word("MODULES")?;
                ShowWhat::Modules { full: true }
            }
            "MODULES" => ShowWhat::Modules { full: false },
            "MODELS" => ShowWhat::Models,
            "JARS" => ShowWhat::Jars,
            "JOBS" => ShowWhat::Jobs,
            "CURRENT" => match self.expect_one_of(&["CATALOG", "DATABASE"])? {
                "CATALOG" => ShowWhat::CurrentCatalog,
                _ => ShowWhat::CurrentDatabase,
            },
            _ => self.show_create()?,
        };
        let accepts = Accepts::of(&what);
        let mut from = None;
        if accepts.from && self.take_one_of(&["FROM", "IN"]).is_some() {
            from = Some(self.object_name()?);
        }
        let filter = match accepts.filter {
            [] => None,
            words => self.show_filter(words)?,
        };
        Ok(Statement::Show(Show { what, from, filter }))
    }

    fn show_columns(&mut self) -> Result<Statement> {
        self.expect_one_of(&["FROM", "IN"])?;
        let from = Some(self.object_name()?);
        let filter = self.show_filter(&["LIKE"])?;
        Ok(Statement::Show(Show {
            what: ShowWhat::Columns,
            from,
            filter,
        }))
    }

    fn show_create(&mut self) -> Result<ShowWhat> {
        let kinds = ["TABLE", "VIEW", "CATALOG", "MODEL", "MATERIALIZED"];
        let kind = match self.expect_one_of(&kinds)? {
            "TABLE" => ObjectKind::Table,
            "VIEW" => ObjectKind::View,
            "CATALOG" => ObjectKind::Catalog,
            "MODEL" => ObjectKind::Model,
            _ => {
                self.expect_word("TABLE")?;
                ObjectKind::MaterializedTable
            }
        };
        Ok(ShowWhat::Create(kind, self.object_name()?))
    }

    /// `[NOT] LIKE 'pattern'`, with one of `words` for `LIKE`.
    fn show_filter(&mut self, words: &[&'static str]) -> Result<Option<ShowFilter>> {
        let negated = self.take_word("NOT");
        let Some(word) = self.take_one_of(words) else {
            if negated {
                return Err(self.unexpected_of(&words.join(" or "), words));
            }
            return Ok(None);
        };
        Ok(Some(ShowFilter {
            negated,
            ignore_case: word == "ILIKE",
            pattern: self.string_literal("a pattern in single quotes")?,
        }))
    }

    /// `DESCRIBE ..`, `DESC ..`
    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.expect_one_of(&["DESCRIBE", "DESC"])?;
        let kind = self.take_one_of(&["CATALOG", "DATABASE", "FUNCTION", "MODEL", "JOB"]);
        if kind == Some("JOB") {
            let id = self.string_literal("a job's id in single quotes")?;
            return Ok(Statement::Describe(Describe {
                what: DescribeWhat::Job(id),
                extended: false,
            }));
        }
        let extended = self.take_word("EXTENDED");
        let what = match kind {
            Some("CATALOG") => DescribeWhat::Catalog(self.ident()?),
            Some("DATABASE") => DescribeWhat::Database(self.object_name()?),
            Some("FUNCTION") => DescribeWhat::Function(self.object_name()?),
            Some(_) => DescribeWhat::Model(self.object_name()?),
            None => DescribeWhat::Table(self.object_name()?),
        };
        Ok(Statement::Describe(Describe { what, extended }))
    }
}
