//! `ALTER`.

use sqlparser::ast::{Expr, Ident};

use super::super::ast::{
    AlterCatalogAction, AlterMaterializedTableAction, AlterTable, AlterTableAction,
    AlterViewAction, Statement, TableElement,
};
use super::FlinkParser;
use crate::error::Result;

/// `PARTITION (p = 'v', ..)`: names, and values if they are given.
type PartitionSpec = Vec<(Ident, Option<Expr>)>;

impl FlinkParser<'_> {
    /// `ALTER ..`
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect_word("ALTER")?;
        let kinds = [
            "TABLE",
            "VIEW",
            "DATABASE",
            "CATALOG",
            "MATERIALIZED",
            "FUNCTION",
            "TEMPORARY",
            "MODEL",
            "CONNECTION",
        ];
        match self.expect_one_of(&kinds)? {
            "TABLE" => {
                let if_exists = self.take_words(&["IF", "EXISTS"]);
                let name = self.object_name()?;
                let action = self.alter_table_action()?;
                Ok(Statement::AlterTable(AlterTable {
                    name,
                    if_exists,
                    action,
                }))
            }
            "VIEW" => {
                let name = self.object_name()?;
                let action = self.alter_view_action()?;
                Ok(Statement::AlterView { name, action })
            }
            "DATABASE" => {
                let name = self.object_name()?;
                self.expect_word("SET")?;
                let options = self.option_list()?;
                Ok(Statement::AlterDatabase { name, options })
            }
            "CATALOG" => {
                let name = self.ident()?;
                let action = match self.expect_one_of(&["SET", "RESET", "COMMENT"])? {
                    "SET" => AlterCatalogAction::Set(self.option_list()?),
                    "RESET" => AlterCatalogAction::Reset(self.key_list()?),
                    _ => AlterCatalogAction::Comment(
                        self.string_literal("a comment in single quotes")?,
                    ),
                };
                Ok(Statement::AlterCatalog { name, action })
            }
            "MATERIALIZED" => {
                self.expect_word("TABLE")?;
                let name = self.object_name()?;
                let action = self.alter_materialized_table_action()?;
                Ok(Statement::AlterMaterializedTable { name, action })
            }
            "FUNCTION" => {
                let lenient = self.take_words(&["IF", "EXISTS"]);
                let function = self.create_function(false, false, lenient)?;
                Ok(Statement::AlterFunction(function))
            }
            "TEMPORARY" => {
                let system = self.take_word("SYSTEM");
                self.expect_word("FUNCTION")?;
                let lenient = self.take_words(&["IF", "EXISTS"]);
                let function = self.create_function(true, system, lenient)?;
                Ok(Statement::AlterFunction(function))
            }
            kind => Ok(self.unsupported_rest(&format!("ALTER {kind}"))),
        }
    }

    fn alter_table_action(&mut self) -> Result<AlterTableAction> {
        let actions = ["ADD", "MODIFY", "DROP", "RENAME", "SET", "RESET"];
        Ok(match self.expect_one_of(&actions)? {
            "ADD" if self.take_word("DISTRIBUTION") => {
                AlterTableAction::AddDistribution(self.distribution_spec()?)
            }
            "ADD" if self.peek_word("PARTITION") || self.peek_words(&["IF", "NOT", "EXISTS"]) => {
                AlterTableAction::AddPartitions {
                    if_not_exists: self.take_words(&["IF", "NOT", "EXISTS"]),
                    partitions: self.partition_specs()?,
                }
            }
            "ADD" => AlterTableAction::Add(self.one_or_more_elements()?),
            "MODIFY" if self.take_word("DISTRIBUTION") => {
                AlterTableAction::ModifyDistribution(self.distribution_spec()?)
            }
            "MODIFY" => AlterTableAction::Modify(self.one_or_more_elements()?),
            "DROP" => self.alter_table_drop()?,
            "RENAME" => {
                if self.take_word("TO") {
                    AlterTableAction::RenameTo(self.object_name()?)
                } else {
                    let from = self.column_name()?;
                    self.expect_word("TO")?;
                    let to = self.ident()?;
                    AlterTableAction::RenameColumn { from, to }
                }
            }
            "SET" => AlterTableAction::Set(self.option_list()?),
            _ => AlterTableAction::Reset(self.key_list()?),
        })
    }

    fn one_or_more_elements(&mut self) -> Result<Vec<TableElement>> {
        if self.peek_symbol("(") {
            return self.table_elements();
        }
        let mut elements = Vec::new();
        self.table_element(&mut elements)?;
        Ok(elements)
    }

    fn alter_table_drop(&mut self) -> Result<AlterTableAction> {
        if self.take_words(&["PRIMARY", "KEY"]) {
            return Ok(AlterTableAction::DropPrimaryKey);
        }
        if self.take_word("CONSTRAINT") {
            return Ok(AlterTableAction::DropConstraint(self.ident()?));
        }
        if self.take_word("WATERMARK") {
            return Ok(AlterTableAction::DropWatermark);
        }
        if self.take_word("DISTRIBUTION") {
            return Ok(AlterTableAction::DropDistribution);
        }
        if self.peek_word("PARTITION") || self.peek_words(&["IF", "EXISTS", "PARTITION"]) {
            return Ok(AlterTableAction::DropPartitions {
                if_exists: self.take_words(&["IF", "EXISTS"]),
                partitions: self.partition_specs()?,
            });
        }
        if self.peek_symbol("(") {
            return Ok(AlterTableAction::DropColumns(
                self.parenthesized(Self::column_name)?,
            ));
        }
        Ok(AlterTableAction::DropColumns(vec![self.column_name()?]))
    }

    /// `PARTITION (p = 'v') [WITH (..)] ..`
    fn partition_specs(&mut self) -> Result<Vec<PartitionSpec>> {
        self.expect_word("PARTITION")?;
        let mut partitions = Vec::new();
        loop {
            partitions.push(self.parenthesized(Self::partition_value)?);
            self.with_options()?;
            let comma = self.take_symbol(",");
            if !self.take_word("PARTITION") && !comma {
                return Ok(partitions);
            }
        }
    }

    fn alter_view_action(&mut self) -> Result<AlterViewAction> {
        Ok(match self.expect_one_of(&["RENAME", "AS"])? {
            "RENAME" => {
                self.expect_word("TO")?;
                AlterViewAction::RenameTo(self.object_name()?)
            }
            _ => AlterViewAction::AsQuery(self.sql_query()?),
        })
    }

    fn alter_materialized_table_action(&mut self) -> Result<AlterMaterializedTableAction> {
        use AlterMaterializedTableAction as Action;
        let actions = [
            "SUSPEND", "RESUME", "REFRESH", "SET", "RESET", "ADD", "MODIFY", "DROP", "AS",
        ];
        if ["ADD", "MODIFY", "DROP"].iter().any(|w| self.peek_word(w)) {
            return Ok(Action::Table(self.alter_table_action()?));
        }
        Ok(match self.expect_one_of(&actions)? {
            "SUSPEND" => Action::Suspend,
            "RESUME" => Action::Resume(self.with_options()?),
            "REFRESH" => Action::Refresh(if self.take_word("PARTITION") {
                self.parenthesized(Self::partition_value)?
            } else {
                Vec::new()
            }),
            "SET" if self.take_word("FRESHNESS") => {
                self.expect_symbol("=")?;
                Action::SetFreshness(self.expr()?)
            }
            "SET" if self.take_word("REFRESH_MODE") => {
                self.expect_symbol("=")?;
                Action::SetRefreshMode(self.refresh_mode()?)
            }
            "SET" => Action::Set(self.option_list()?),
            "RESET" => Action::Reset(self.key_list()?),
            _ => Action::AsQuery(self.sql_query()?),
        })
    }
}
