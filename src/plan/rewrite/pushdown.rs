//! Asks sources for less: single fields of rows, and only the rows that are looked at. Several
//! references to a table ask for the same, so that it is read once.
//!
//! Only for sources that offer [`Pushdown`]. A *relation* here is a table as the binder made it:
//! the scan, its computed columns, its watermark.

use indexmap::IndexMap;

use super::filters::split;
use crate::connectors::pushdown::{FieldPath, Pushdown, ValueFilter};
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::plan::logical::{LogicalNode, LogicalPlan, PushedFields, Scan};
use crate::types::{Column, DataType, Schema, TypeKind};

/// What the sources of a plan can do.
pub trait Sources {
    /// Calls `ask` with the abilities of the table's source, if it has some and they may be used.
    fn with_pushdown(&self, scan: &Scan, ask: &mut dyn FnMut(&dyn Pushdown));

    /// The rise of a watermark that is emitted at once, ms, for a table with these options.
    fn watermark_interval_ms(&self, options: &IndexMap<String, String>) -> i64;
}

/// Pushes fields and filters of `plan` into its scans.
#[must_use]
pub fn push(plan: LogicalPlan, sources: &dyn Sources) -> LogicalPlan {
    if !any_offers(&plan, sources) {
        return plan;
    }
    let whole = whole_columns(&plan.schema);
    let names = plan.schema.clone();
    let mut plan = narrow(plan, &whole, sources);
    for (column, name) in plan.schema.columns.iter_mut().zip(names.columns) {
        column.name = name.name;
    }
    share(&mut plan);
    let mut filters = Vec::new();
    collect_filters(&plan, &[], sources, &mut filters);
    set_filters(&mut plan, &united(filters));
    plan
}

fn any_offers(plan: &LogicalPlan, sources: &dyn Sources) -> bool {
    match &plan.node {
        LogicalNode::Scan(scan) => offers(scan, sources),
        _ => plan.inputs().into_iter().any(|i| any_offers(i, sources)),
    }
}

fn offers(scan: &Scan, sources: &dyn Sources) -> bool {
    let mut offered = false;
    sources.with_pushdown(scan, &mut |_| offered = true);
    offered
}

fn whole_columns(schema: &Schema) -> Vec<FieldPath> {
    (0..schema.len()).map(FieldPath::column).collect()
}

/// The field that `e` is, if it is just one.
fn path_of(e: &Expr) -> Option<FieldPath> {
    match &e.kind {
        ExprKind::Column(i) => Some(FieldPath::column(*i)),
        ExprKind::Field { input, index } => Some(path_of(input)?.field(*index)),
        _ => None,
    }
}

fn add(path: FieldPath, to: &mut Vec<FieldPath>) {
    if !to.contains(&path) {
        to.push(path);
    }
}

fn add_fields_of(e: &Expr, to: &mut Vec<FieldPath>) {
    match path_of(e) {
        Some(path) => add(path, to),
        None => e.children().into_iter().for_each(|c| add_fields_of(c, to)),
    }
}

/// `e` over an input that has the columns `fields`.
fn over_fields(e: Expr, fields: &[FieldPath]) -> Expr {
    let place = path_of(&e).and_then(|path| fields.iter().position(|f| *f == path));
    match place {
        Some(i) => Expr::column(i, e.data_type),
        None => e.map_children(&mut |child| over_fields(child, fields)),
    }
}

/// A field inside the value of `e`.
fn access(e: Expr, fields: &[usize]) -> Expr {
    fields.iter().fold(e, |e, index| {
        let data_type = field_type(&e.data_type, *index);
        let input = Box::new(e);
        Expr::new(
            ExprKind::Field {
                input,
                index: *index,
            },
            data_type,
        )
    })
}

fn field_type(row: &DataType, index: usize) -> DataType {
    match &row.kind {
        TypeKind::Row(fields) => {
            let field = &fields[index].data_type;
            let nullable = field.nullable || row.nullable;
            field.kind.clone().with_nullable(nullable)
        }
        _ => row.clone(),
    }
}

/// The columns that `fields` of `schema` are; a field is called after its path, as in Flink.
fn fields_schema(schema: &Schema, fields: &[FieldPath]) -> Schema {
    let column = |path: &FieldPath| {
        let whole = &schema.columns[path.column];
        if path.fields.is_empty() {
            return whole.clone();
        }
        let (mut name, mut data_type) = (whole.name.clone(), whole.data_type.clone());
        for index in &path.fields {
            if let TypeKind::Row(fields) = &data_type.kind {
                name = format!("{name}_{}", fields[*index].name);
            }
            data_type = field_type(&data_type, *index);
        }
        Column::new(name, data_type)
    };
    Schema::new(fields.iter().map(column).collect())
}

/// A plan whose columns are exactly `needs`, fields of the columns of `plan`.
fn narrow(plan: LogicalPlan, needs: &[FieldPath], sources: &dyn Sources) -> LogicalPlan {
    let LogicalPlan { node, schema } = plan;
    match node {
        LogicalNode::Filter { input, predicate } => {
            let mut all = needs.to_vec();
            add_fields_of(&predicate, &mut all);
            let input = narrow(*input, &all, sources);
            first_columns(input.filter(over_fields(predicate, &all)), needs.len())
        }
        LogicalNode::Project { input, exprs } if computable(&exprs, needs) => {
            let wanted = needs
                .iter()
                .map(|need| access(exprs[need.column].clone(), &need.fields));
            let wanted: Vec<Expr> = wanted.collect();
            let mut below = Vec::new();
            wanted.iter().for_each(|e| add_fields_of(e, &mut below));
            let input = narrow(*input, &below, sources);
            let exprs = wanted.into_iter().map(|e| over_fields(e, &below)).collect();
            input.project(exprs, fields_schema(&schema, needs))
        }
        LogicalNode::WatermarkAssigner {
            input,
            column,
            watermark,
            options,
        } => {
            let mut all = needs.to_vec();
            let rowtime = FieldPath::column(column);
            add(rowtime.clone(), &mut all);
            add_fields_of(&watermark, &mut all);
            let schema = fields_schema(&schema, &all);
            let place = all.iter().position(|path| *path == rowtime);
            let node = LogicalNode::WatermarkAssigner {
                input: Box::new(narrow(*input, &all, sources)),
                column: place.unwrap_or(0),
                watermark: over_fields(watermark, &all),
                options,
            };
            first_columns(LogicalPlan::new(node, schema), needs.len())
        }
        LogicalNode::Scan(mut scan) => {
            if !offers(&scan, sources) {
                return read_fields(LogicalPlan::new(LogicalNode::Scan(scan), schema), needs);
            }
            let stored = |need: &FieldPath| FieldPath {
                column: scan.projection[need.column],
                fields: need.fields.clone(),
            };
            let fields: Vec<_> = needs.iter().map(stored).collect();
            scan.projection = fields.iter().map(|f| f.column).collect();
            scan.pushed = Some(PushedFields {
                fields,
                filter: None,
            });
            let schema = fields_schema(&schema, needs);
            LogicalPlan::new(LogicalNode::Scan(scan), schema)
        }
        node => {
            let mut plan = LogicalPlan::new(node, schema);
            for input in plan.inputs_mut() {
                let empty = LogicalNode::Values { rows: Vec::new() };
                let taken = std::mem::replace(input, LogicalPlan::new(empty, Schema::default()));
                let whole = whole_columns(&taken.schema);
                *input = narrow(taken, &whole, sources);
            }
            read_fields(plan, needs)
        }
    }
}

/// Whether no computed row would be computed several times for its fields.
fn computable(exprs: &[Expr], needs: &[FieldPath]) -> bool {
    let computed = |need: &FieldPath| path_of(&exprs[need.column]).is_none();
    !needs.iter().any(|n| !n.fields.is_empty() && computed(n))
}

fn first_columns(plan: LogicalPlan, count: usize) -> LogicalPlan {
    plan.project_columns(&(0..count).collect::<Vec<_>>())
}

/// `needs` as a projection of `plan`.
fn read_fields(plan: LogicalPlan, needs: &[FieldPath]) -> LogicalPlan {
    if needs == whole_columns(&plan.schema) {
        return plan;
    }
    let schema = fields_schema(&plan.schema, needs);
    let field = |need: &FieldPath| access(plan.column(need.column), &need.fields);
    let exprs = needs.iter().map(field).collect();
    plan.project(exprs, schema)
}

/// A reference to a table, its expressions over the fields that its scan reads.
struct Relation<'a> {
    scan: &'a Scan,
    scan_schema: &'a Schema,
    /// The columns, if they are not just the fields.
    exprs: Option<&'a Vec<Expr>>,
    watermark: Option<(usize, &'a Expr, &'a IndexMap<String, String>)>,
}

impl<'a> Relation<'a> {
    fn of(plan: &'a LogicalPlan) -> Option<Self> {
        let (mut plan, mut watermark) = (plan, None);
        if let LogicalNode::WatermarkAssigner {
            input,
            column,
            watermark: expr,
            options,
        } = &plan.node
        {
            (plan, watermark) = (input, Some((*column, expr, options)));
        }
        let mut exprs = None;
        if let LogicalNode::Project {
            input,
            exprs: computed,
        } = &plan.node
        {
            (plan, exprs) = (input, Some(computed));
        }
        let LogicalNode::Scan(scan) = &plan.node else {
            return None;
        };
        scan.pushed.as_ref()?;
        Some(Self {
            scan,
            scan_schema: &plan.schema,
            exprs,
            watermark,
        })
    }

    fn fields(&self) -> &'a [FieldPath] {
        self.scan.pushed.as_ref().map_or(&[], |p| &p.fields)
    }

    /// The columns as expressions over the scan's fields.
    fn columns(&self) -> Vec<Expr> {
        match self.exprs {
            Some(exprs) => exprs.clone(),
            None => {
                let columns = self.scan_schema.columns.iter().enumerate();
                columns
                    .map(|(i, c)| Expr::column(i, c.data_type.clone()))
                    .collect()
            }
        }
    }

    /// What must agree for two references to be one relation: the table, and the watermark as text.
    fn identity(&self) -> String {
        let columns = self.columns();
        let over_stored = |e: &Expr| {
            let fields = self.fields();
            e.clone()
                .replace_columns(&|i, t| {
                    let field = &fields[i];
                    access(Expr::column(field.column, t.clone()), &field.fields)
                })
                .to_string()
        };
        let watermark = self.watermark.map(|(column, expr, options)| {
            let expr = expr.clone().replace_columns(&|i, _| columns[i].clone());
            (over_stored(&columns[column]), over_stored(&expr), options)
        });
        format!(
            "{} {:?} {watermark:?}",
            self.scan.table.path, self.scan.options
        )
    }
}

/// Visits the relations of a plan, left to right.
fn relations<'a>(plan: &'a LogicalPlan, visit: &mut dyn FnMut(Relation<'a>, &'a Schema)) {
    if let Some(relation) = Relation::of(plan) {
        return visit(relation, &plan.schema);
    }
    for input in plan.inputs() {
        relations(input, visit);
    }
}

/// All columns that the references to one table read.
#[derive(Default)]
struct United {
    references: usize,
    fields: Vec<FieldPath>,
    scan_schema: Schema,
    /// Over `fields`.
    exprs: Vec<Expr>,
    schema: Schema,
}

impl United {
    fn take(&mut self, relation: &Relation<'_>, schema: &Schema) {
        self.references += 1;
        for (field, column) in relation.fields().iter().zip(&relation.scan_schema.columns) {
            if !self.fields.contains(field) {
                self.fields.push(field.clone());
                self.scan_schema.columns.push(column.clone());
            }
        }
        for (expr, column) in self.rebased(relation).into_iter().zip(&schema.columns) {
            if self.place(&expr).is_none() {
                self.exprs.push(expr);
                self.schema.columns.push(column.clone());
            }
        }
    }

    /// The columns of `relation` over the united fields.
    fn rebased(&self, relation: &Relation<'_>) -> Vec<Expr> {
        let own = relation.fields();
        let place = |i: usize| self.fields.iter().position(|f| *f == own[i]).unwrap_or(i);
        let columns = relation.columns().into_iter();
        columns.map(|e| e.remap_columns(&place)).collect()
    }

    fn place(&self, expr: &Expr) -> Option<usize> {
        self.exprs.iter().position(|e| e.same(expr))
    }
}

/// Makes references to the same table read the same columns.
fn share(plan: &mut LogicalPlan) {
    let mut tables: IndexMap<String, United> = IndexMap::new();
    relations(plan, &mut |relation, schema| {
        let table = tables.entry(relation.identity()).or_default();
        table.take(&relation, schema);
    });
    tables.retain(|_, table| table.references > 1);
    if !tables.is_empty() {
        replace_shared(plan, &tables);
    }
}

fn replace_shared(plan: &mut LogicalPlan, tables: &IndexMap<String, United>) {
    let Some(relation) = Relation::of(plan) else {
        for input in plan.inputs_mut() {
            replace_shared(input, tables);
        }
        return;
    };
    let Some(table) = tables.get(&relation.identity()) else {
        return;
    };
    // computed columns of references that were made alike are alike
    let rebased = table.rebased(&relation);
    let Some(order) = rebased
        .iter()
        .map(|e| table.place(e))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let mut scan = relation.scan.clone();
    scan.projection = table.fields.iter().map(|f| f.column).collect();
    scan.pushed = Some(PushedFields {
        fields: table.fields.clone(),
        filter: None,
    });
    let scan = LogicalPlan::new(LogicalNode::Scan(scan), table.scan_schema.clone());
    let mut united = scan.project(table.exprs.clone(), table.schema.clone());
    if let Some((column, watermark, options)) = relation.watermark {
        let node = LogicalNode::WatermarkAssigner {
            input: Box::new(united),
            column: order[column],
            watermark: watermark.clone().remap_columns(&|i| order[i]),
            options: options.clone(),
        };
        united = LogicalPlan::new(node, table.schema.clone());
    }
    let mut replaced = united.project_columns(&order);
    replaced.schema = plan.schema.clone();
    *plan = replaced;
}

/// What is looked at of each relation of `plan`, left to right, with what it has in common with
/// others; `above` are conditions on the columns of `plan`.
fn collect_filters(
    plan: &LogicalPlan,
    above: &[Expr],
    sources: &dyn Sources,
    found: &mut Vec<(String, Option<ValueFilter>)>,
) {
    if let Some(relation) = Relation::of(plan) {
        let filter = filter_of(&relation, above, sources);
        found.push((relation.identity(), filter));
        return;
    }
    match &plan.node {
        LogicalNode::Filter { input, predicate } => {
            let mut all = split(predicate.clone());
            all.extend_from_slice(above);
            collect_filters(input, &all, sources, found);
        }
        LogicalNode::Project { input, exprs } => {
            let below = above
                .iter()
                .filter(|e| e.columns().iter().all(|i| exprs[*i].is_deterministic()))
                .map(|e| e.clone().replace_columns(&|i, _| exprs[i].clone()));
            let below: Vec<Expr> = below.collect();
            collect_filters(input, &below, sources, found);
        }
        _ => {
            for input in plan.inputs() {
                collect_filters(input, &[], sources, found);
            }
        }
    }
}

/// The values of one column that the conditions leave.
fn filter_of(
    relation: &Relation<'_>,
    conditions: &[Expr],
    sources: &dyn Sources,
) -> Option<ValueFilter> {
    let columns = relation.columns();
    let mut filter = None;
    sources.with_pushdown(relation.scan, &mut |source| {
        let Some(interval) = interval_of(relation, &columns, source, sources) else {
            return;
        };
        for condition in conditions {
            let over_fields = condition
                .clone()
                .replace_columns(&|i, _| columns[i].clone());
            let Some((field, mut values)) = values_of(&over_fields) else {
                continue;
            };
            let field = &relation.fields()[field];
            if field.fields.is_empty() && source.filters_on(field.column) {
                values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
                values.dedup();
                filter = Some(ValueFilter {
                    column: field.column,
                    values,
                    watermark_interval_ms: interval,
                });
                return;
            }
        }
    });
    filter
}

/// How watermarks depend on the rows: `None` when rows must not be left out, `Some(None)` when none
/// are made.
fn interval_of(
    relation: &Relation<'_>,
    columns: &[Expr],
    source: &dyn Pushdown,
    sources: &dyn Sources,
) -> Option<Option<i64>> {
    let Some((rowtime, watermark, options)) = relation.watermark else {
        return Some(None);
    };
    let times = source.event_times();
    let is_time = |e: &Expr| {
        let field = e.as_column().map(|i| &relation.fields()[i]);
        field.is_some_and(|field| times.contains(field))
    };
    let of_rowtime = watermark.is_deterministic() && watermark.columns() == [rowtime];
    (of_rowtime && results(&columns[rowtime]).into_iter().all(is_time))
        .then(|| Some(sources.watermark_interval_ms(options)))
}

/// What `e` may be the value of.
fn results(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            let branches = branches.iter().map(|(_, then)| then);
            branches
                .chain([otherwise.as_ref()])
                .flat_map(results)
                .collect()
        }
        _ => vec![e],
    }
}

/// `column = constant`, or several of one column joined by OR.
fn values_of(e: &Expr) -> Option<(usize, Vec<datafusion::common::ScalarValue>)> {
    match &e.kind {
        ExprKind::Compare {
            op: CompareOp::Eq,
            left,
            right,
        } => {
            let (column, value) = match (left.as_column(), right.as_column()) {
                (Some(column), None) => (column, right.as_literal()?),
                (None, Some(column)) => (column, left.as_literal()?),
                _ => return None,
            };
            Some((column, vec![value.clone()]))
        }
        ExprKind::Or(all) => {
            let mut parts = all.iter().map(values_of);
            let (column, mut values) = parts.next()??;
            for part in parts {
                let (other, more) = part?;
                if other != column {
                    return None;
                }
                values.extend(more);
            }
            Some((column, values))
        }
        _ => None,
    }
}

/// One filter for all references to a table: what any of them looks at.
fn united(found: Vec<(String, Option<ValueFilter>)>) -> Vec<Option<ValueFilter>> {
    let mut tables: IndexMap<&str, Option<ValueFilter>> = IndexMap::new();
    for (table, filter) in &found {
        match tables.entry(table) {
            indexmap::map::Entry::Vacant(entry) => {
                entry.insert(filter.clone());
            }
            indexmap::map::Entry::Occupied(mut entry) => {
                let both = match (entry.get().clone(), filter) {
                    (Some(mut a), Some(b)) if a.column == b.column => {
                        a.values.extend(b.values.iter().cloned());
                        a.values
                            .sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
                        a.values.dedup();
                        Some(a)
                    }
                    _ => None,
                };
                entry.insert(both);
            }
        }
    }
    let filter = |table: &String| tables.get(table.as_str()).cloned().flatten();
    found.iter().map(|(table, _)| filter(table)).collect()
}

/// Sets the filters of the relations of `plan`, left to right.
fn set_filters(plan: &mut LogicalPlan, filters: &[Option<ValueFilter>]) {
    fn set<'a>(
        plan: &mut LogicalPlan,
        filters: &mut impl Iterator<Item = &'a Option<ValueFilter>>,
    ) {
        if let LogicalNode::Scan(scan) = &mut plan.node {
            if let Some(pushed) = &mut scan.pushed {
                pushed.filter = filters.next().cloned().flatten();
            }
            return;
        }
        for input in plan.inputs_mut() {
            set(input, filters);
        }
    }
    set(plan, &mut filters.iter());
}

#[cfg(test)]
mod tests {
    use crate::session::{Session, StatementResult};

    const DDL: &str = include_str!("../../../examples/nexmark/ddl.sql");

    /// The scans of the job of `INSERT INTO s` of the query, with the rows that each read.
    fn scans(columns: &str, query: &str) -> Vec<(String, u64)> {
        let mut session = Session::new();
        let ddl = DDL.replace("${EVENTS_NUM}", "1000");
        for statement in crate::sql::script::Script::split(&ddl).all() {
            session.execute(statement.text).unwrap();
        }
        let sink = format!("CREATE TABLE s ({columns}) WITH ('connector' = 'blackhole')");
        session.execute(&sink).unwrap();
        let StatementResult::Job(job) = session.execute(&format!("INSERT INTO s {query}")).unwrap()
        else {
            panic!("an INSERT is a job");
        };
        job.wait().unwrap();
        let vertices = job.handle().metrics().iter();
        let scans = vertices.filter(|v| v.name == "TableSourceScan");
        scans
            .map(|v| {
                let (_, read) = v.description.split_once("nexmark").unwrap();
                (read.to_string(), v.metrics.records_out.get())
            })
            .collect()
    }

    #[test]
    fn a_source_is_asked_for_fields_and_for_the_rows_that_are_looked_at() {
        // 920 bids, and the first event of all, at which a watermark is emitted
        let read = ", filter=[event_type IN (2)]]], fields=[bid_price, event_type, \
            person_dateTime, auction_dateTime, bid_dateTime])";
        let scans = scans("p BIGINT", "SELECT price FROM bid");
        assert_eq!(scans, [(read.to_string(), 921)]);
    }

    #[test]
    fn two_views_of_a_table_read_it_once() {
        let scans = scans(
            "a BIGINT, p BIGINT",
            "SELECT A.id, B.price FROM auction A JOIN bid B ON A.id = B.auction WHERE A.category = 10",
        );
        assert_eq!(scans.len(), 1, "{scans:?}");
        assert!(scans[0].0.contains("IN (1, 2)"), "{scans:?}");
        assert_eq!(scans[0].1, 981);
    }

    #[test]
    fn without_a_filter_all_rows_are_read() {
        let scans = scans("p BIGINT", "SELECT bid.price FROM nexmark");
        assert_eq!(scans[0].1, 1000, "{scans:?}");
        assert!(!scans[0].0.contains("filter"), "{scans:?}");
    }
}
