//! CREATE TABLE LIKE: what is taken from the other table.

use super::Session;
use crate::catalog::{CatalogEntry, ColumnKind, TableDefinition};
use crate::error::{Error, Result};
use crate::sql::ast::{LikeFeature, LikeMerge, TableLike};

/// The strategy of every feature.
struct Strategies<'a>(&'a [(LikeMerge, LikeFeature)]);

impl Strategies<'_> {
    fn check(&self) -> Result<()> {
        for (i, (merge, feature)) in self.0.iter().enumerate() {
            let only_adds = matches!(
                feature,
                LikeFeature::All
                    | LikeFeature::Constraints
                    | LikeFeature::Distribution
                    | LikeFeature::Partitions
            );
            if *merge == LikeMerge::Overwriting && only_adds {
                return Err(Error::plan(format!(
                    "Illegal merging strategy 'OVERWRITING' for '{}' option.",
                    format!("{feature:?}").to_uppercase()
                )));
            }
            if self.0[..i].iter().any(|(_, f)| f == feature) {
                return Err(Error::plan(
                    "Each like option feature can be declared only once.",
                ));
            }
        }
        Ok(())
    }

    fn of(&self, feature: LikeFeature) -> LikeMerge {
        let said = |feature| self.0.iter().find(|(_, f)| *f == feature).map(|(m, _)| *m);
        said(feature).or_else(|| said(LikeFeature::All)).unwrap_or(
            if feature == LikeFeature::Options {
                LikeMerge::Overwriting
            } else {
                LikeMerge::Including
            },
        )
    }

    fn excludes(&self, feature: LikeFeature) -> bool {
        self.of(feature) == LikeMerge::Excluding
    }

    fn overwrites(&self, feature: LikeFeature) -> bool {
        self.of(feature) == LikeMerge::Overwriting
    }
}

impl Session {
    /// Adds to `table`, as its statement declares it, what it takes from the other one.
    pub(super) fn merge_like(&self, table: &mut TableDefinition, like: &TableLike) -> Result<()> {
        let strategies = Strategies(&like.options);
        strategies.check()?;
        let path = self.path_of(&like.source)?;
        let base = match self.catalogs.get(&path) {
            Some(CatalogEntry::Table(base)) => base,
            Some(CatalogEntry::View(_)) => {
                return Err(Error::plan(format!(
                    "Source table '{}' of the LIKE clause can not be a VIEW",
                    path.quoted()
                )));
            }
            None => {
                let error = Error::plan(format!(
                    "Source table '{}' of the LIKE clause not found in the catalog",
                    path.quoted()
                ));
                return Err(self.catalogs.suggest(&path, error));
            }
        };
        if let Some(own) = &table.watermark {
            refuse_taken_time(table, base, &own.column)?;
        }
        merge_columns(table, base, &strategies)?;
        merge_watermark(table, base, &strategies)?;
        merge_key(table, base, &strategies)?;
        merge_layout(table, base, &strategies)?;
        merge_options(table, base, &strategies)
    }
}

fn merge_columns(
    table: &mut TableDefinition,
    base: &TableDefinition,
    strategies: &Strategies<'_>,
) -> Result<()> {
    let own = std::mem::take(&mut table.columns);
    table.columns = base
        .columns
        .iter()
        .filter(|c| match c.kind {
            ColumnKind::Physical => true,
            ColumnKind::Computed(_) => !strategies.excludes(LikeFeature::Generated),
            ColumnKind::Metadata { .. } => !strategies.excludes(LikeFeature::Metadata),
        })
        .cloned()
        .collect();
    for column in own {
        let name = &column.name;
        let Some(taken) = table.columns.iter_mut().find(|c| c.name == *name) else {
            table.columns.push(column);
            continue;
        };
        let (what, kind, feature) = match (&column.kind, &taken.kind) {
            (ColumnKind::Computed(_), ColumnKind::Computed(_)) => {
                ("generated", "GENERATED", LikeFeature::Generated)
            }
            (ColumnKind::Metadata { .. }, ColumnKind::Metadata { .. }) => {
                ("metadata", "METADATA", LikeFeature::Metadata)
            }
            (ColumnKind::Physical, _) => {
                return Err(Error::plan(format!(
                    "A column named '{name}' already exists in the base table."
                )));
            }
            (kind, _) => {
                let kind = match kind {
                    ColumnKind::Metadata { .. } => "metadata",
                    _ => "compute",
                };
                return Err(Error::plan(format!(
                    "A column named '{name}' already exists in the table. Duplicate columns exist \
                     in the {kind} column and regular column."
                )));
            }
        };
        if !strategies.overwrites(feature) {
            return Err(Error::plan(format!(
                "A {what} column named '{name}' already exists in the base table. You might want to \
                 specify EXCLUDING {kind} or OVERWRITING {kind}."
            )));
        }
        *taken = column;
    }
    Ok(())
}

fn merge_watermark(
    table: &mut TableDefinition,
    base: &TableDefinition,
    strategies: &Strategies<'_>,
) -> Result<()> {
    let feature = LikeFeature::Watermarks;
    let Some(taken) = base
        .watermark
        .as_ref()
        .filter(|_| !strategies.excludes(feature))
    else {
        return Ok(());
    };
    match &table.watermark {
        None => table.watermark = Some(taken.clone()),
        Some(own) if own.column != taken.column => {
            return Err(Error::plan(
                "Multiple WATERMARK declarations are not supported yet.",
            ));
        }
        Some(own) if !strategies.overwrites(feature) => {
            return Err(Error::plan(format!(
                "There already exists a watermark spec for column '{}' in the base table. You might \
                 want to specify EXCLUDING WATERMARKS or OVERWRITING WATERMARKS.",
                own.column
            )));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Refuses a watermark on a computed column of the base table, which Flink does not see there.
fn refuse_taken_time(table: &TableDefinition, base: &TableDefinition, time: &str) -> Result<()> {
    let own = table.columns.iter().any(|c| c.name == time);
    let mut taken = base.columns.iter().filter(|c| c.name == time);
    if own || !taken.any(|c| matches!(c.kind, ColumnKind::Computed(_))) {
        return Ok(());
    }
    Err(Error::plan(format!(
        "The rowtime attribute field '{time}' is not defined in the table schema"
    ))
    .hint("take the watermark of the base table, or compute the column anew with OVERWRITING GENERATED"))
}

fn merge_key(
    table: &mut TableDefinition,
    base: &TableDefinition,
    strategies: &Strategies<'_>,
) -> Result<()> {
    let excluded = strategies.excludes(LikeFeature::Constraints);
    let Some(taken) = base.primary_key.as_ref().filter(|_| !excluded) else {
        return Ok(());
    };
    if table.primary_key.is_some() {
        return Err(Error::plan(
            "The base table already has a primary key. You might want to specify EXCLUDING \
             CONSTRAINTS.",
        ));
    }
    table.primary_key = Some(taken.clone());
    Ok(())
}

/// Partitions and distribution. Flink takes them over even when they are excluded, unless the new
/// table has its own.
fn merge_layout(
    table: &mut TableDefinition,
    base: &TableDefinition,
    strategies: &Strategies<'_>,
) -> Result<()> {
    if table.partitioned_by.is_empty() {
        table.partitioned_by.clone_from(&base.partitioned_by);
    } else if !base.partitioned_by.is_empty() && !strategies.excludes(LikeFeature::Partitions) {
        return Err(Error::plan(
            "The base table already has partitions defined. You might want to specify EXCLUDING \
             PARTITIONS.",
        ));
    }
    if table.distribution.is_none() {
        table.distribution.clone_from(&base.distribution);
    } else if base.distribution.is_some() && !strategies.excludes(LikeFeature::Distribution) {
        return Err(Error::plan(
            "The base table already has a distribution defined. You might want to specify EXCLUDING \
             DISTRIBUTION.",
        ));
    }
    Ok(())
}

fn merge_options(
    table: &mut TableDefinition,
    base: &TableDefinition,
    strategies: &Strategies<'_>,
) -> Result<()> {
    let strategy = strategies.of(LikeFeature::Options);
    if strategy == LikeMerge::Excluding {
        return Ok(());
    }
    let own = std::mem::replace(&mut table.options, base.options.clone());
    for (key, value) in own {
        if strategy == LikeMerge::Including && table.options.contains_key(&key) {
            return Err(Error::plan(format!(
                "There already exists an option ['{key}']  in the base table. You might want to \
                 specify EXCLUDING OPTIONS or OVERWRITING OPTIONS."
            )));
        }
        table.options.insert(key, value);
    }
    Ok(())
}
