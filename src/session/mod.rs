//! The embedded API: a [`Session`] runs statements, a [`Query`] gives the changes of a query.
//!
//! ```
//! use ebbflow::session::{Session, StatementResult};
//!
//! let mut session = Session::new();
//! let mut query = session.query("SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t(x)")?;
//! let changes = query.collect_changes()?;
//! assert_eq!(changes, ["+I[1]", "-U[1]", "+U[2]"]);
//! # Ok::<(), ebbflow::error::Error>(())
//! ```

mod alter_columns;
mod alter_table;
mod checkpointing;
mod create_table;
mod ddl;
mod declare;
mod describe;
mod dml;
mod expand;
mod explain;
mod explain_state;
mod functions;
mod insert;
mod jobs;
mod like;
mod listing;
mod push;
mod query;
mod read;
mod show;
mod show_create;
mod statement;
mod view;

use std::sync::Arc;

pub(crate) use insert::PlannedInsert;
pub use jobs::InsertJob;
pub use listing::Listing;
pub use push::TableWriter;
pub use query::Query;
pub use read::{AppendStream, DynamicTable, RetractStream, Row};
pub use statement::StatementResult;

use crate::catalog::Catalogs;
use crate::config::Configuration;
use crate::connectors::registry::{ConnectorContext, ConnectorRegistry};
use crate::error::Result;
use crate::functions::registry::FunctionRegistry;
use crate::plan::binder::Binder;
use crate::plan::logical::LogicalPlan;
use crate::plan::physical::Planner;
use crate::runtime::check::EdgeChecks;
use crate::runtime::job::{JobConfig, JobHandle};
use crate::sql::FlinkParser;

/// Hears of a job that starts.
type JobListener = Box<dyn Fn(&JobHandle) + Send + Sync>;

/// Catalogs, settings, functions and jobs of one user.
pub struct Session {
    pub(crate) catalogs: Catalogs,
    pub(crate) config: Configuration,
    pub(crate) functions: FunctionRegistry,
    pub(crate) connectors: ConnectorRegistry,
    context: ConnectorContext,
    jobs: Vec<InsertJob>,
    /// Hears of every job before its statement waits for it.
    job_listener: Option<JobListener>,
    modules: Vec<functions::Module>,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A session with an empty default catalog, whose `print` and `changelog` sinks write to the
    /// process's output.
    #[must_use]
    pub fn new() -> Self {
        Self::with_context(ConnectorContext::default())
    }

    /// A session whose connectors use this console and clock.
    #[must_use]
    pub fn with_context(context: ConnectorContext) -> Self {
        Self {
            catalogs: Catalogs::default(),
            config: Configuration::default(),
            functions: FunctionRegistry::builtin(),
            connectors: ConnectorRegistry::standard(&context),
            context,
            jobs: Vec::new(),
            job_listener: None,
            modules: functions::Module::core(),
        }
    }

    /// The session's settings.
    #[must_use]
    pub fn config(&self) -> &Configuration {
        &self.config
    }

    /// Changes a setting: `SET 'key' = 'value'`.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// session.set("table.local-time-zone", "Asia/Tokyo")?;
    /// let mut query = session.query("SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING) AS t")?;
    /// assert_eq!(query.collect_changes()?, ["+I[1970-01-01 09:00:00.000]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the value does not fit the key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.config.set(key, value)
    }

    /// The session's functions, to register more.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use datafusion::arrow::datatypes::Int64Type;
    /// # use datafusion::arrow::array::AsArray;
    /// # use datafusion::logical_expr::ColumnarValue;
    /// # use ebbflow::error::{Error, Result};
    /// # use ebbflow::functions::{Arg, Environment, FunctionDoc, FunctionKind};
    /// # use ebbflow::functions::{Kernel, ScalarFunction, Signature};
    /// # use ebbflow::session::Session;
    /// # use ebbflow::types::{DataType, TypeKind};
    /// #[derive(Debug)]
    /// struct Triple;
    ///
    /// impl ScalarFunction for Triple {
    ///     fn name(&self) -> &str {
    ///         "TRIPLE"
    ///     }
    ///
    ///     fn resolve(&self, args: &[Arg]) -> Result<Signature> {
    ///         let [_] = args else {
    ///             return Err(Error::plan("TRIPLE takes a number"));
    ///         };
    ///         let bigint = TypeKind::BigInt.nullable();
    ///         Ok(Signature { args: vec![bigint.clone()], returns: bigint })
    ///     }
    ///
    ///     fn prepare(&self, _: &[Arg], _: &DataType, _: &Environment) -> Result<Kernel> {
    ///         Ok(Box::new(|args, context| {
    ///             let column = args[0].clone().into_array(context.rows)?;
    ///             let tripled = column.as_primitive::<Int64Type>().unary::<_, Int64Type>(|x| x * 3);
    ///             Ok(ColumnarValue::Array(Arc::new(tripled)))
    ///         }))
    ///     }
    /// }
    ///
    /// let mut session = Session::new();
    /// let doc = FunctionDoc::new(FunctionKind::Scalar, "own", "TRIPLE(x)", "three times x");
    /// session.functions_mut().register(Arc::new(Triple), doc);
    /// let mut query = session.query("SELECT TRIPLE(x) AS t FROM (VALUES (1), (2)) AS v(x)")?;
    /// assert_eq!(query.collect_changes()?, ["+I[3]", "+I[6]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    pub fn functions_mut(&mut self) -> &mut FunctionRegistry {
        &mut self.functions
    }

    /// The session's connectors, to register more.
    pub fn connectors_mut(&mut self) -> &mut ConnectorRegistry {
        &mut self.connectors
    }

    /// The jobs of INSERT statements, in the order of their start.
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// session.execute("CREATE TABLE t (x INT) WITH ('connector' = 'blackhole')")?;
    /// session.execute("INSERT INTO t VALUES (1), (2)")?;
    /// let job = &session.jobs()[0];
    /// assert_eq!(job.name(), "insert-into_default_catalog.default_database.t");
    /// job.wait()?;
    /// assert_eq!(job.status(), "FINISHED");
    /// let sink = job.handle().metrics().iter().find(|m| m.name == "Sink");
    /// assert_eq!(sink.map(|m| m.metrics.records_in.get()), Some(2));
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    #[must_use]
    pub fn jobs(&self) -> &[InsertJob] {
        &self.jobs
    }

    /// Has `listener` told of every job of INSERT statements when it starts: a statement that waits
    /// for its job (`table.dml-sync`) can be stopped that way.
    pub fn on_job(&mut self, listener: impl Fn(&JobHandle) + Send + Sync + 'static) {
        self.job_listener = Some(Box::new(listener));
    }

    /// Runs one statement. An INSERT is started and runs on (unless `table.dml-sync` is on).
    ///
    /// ```
    /// # use ebbflow::session::{Session, StatementResult};
    /// let mut session = Session::new();
    /// session.execute("CREATE TABLE t (x INT) WITH ('connector' = 'memory')")?;
    /// match session.execute("SHOW TABLES")? {
    ///     StatementResult::Listing(listing) => assert_eq!(listing.lines(), ["t"]),
    ///     other => panic!("{other:?}"),
    /// }
    /// let refused = session.execute("SELECT y FROM t").unwrap_err();
    /// assert!(refused.to_string().contains("Column 'y' not found"));
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the statement is refused, with its position in `sql`.
    pub fn execute(&mut self, sql: &str) -> Result<StatementResult> {
        let statement = FlinkParser::parse_statement(sql)?;
        self.execute_statement(statement)
    }

    /// Runs a statement that is parsed already.
    pub(crate) fn execute_parsed(
        &mut self,
        statement: crate::sql::Statement,
    ) -> Result<StatementResult> {
        self.execute_statement(statement)
    }

    /// Starts a query. The answer is read as a stream of rows that are added
    /// ([`Query::append_stream`]), of rows that are added and withdrawn
    /// ([`Query::retract_stream`]), as batches of changes ([`Query::next_batch`]) or as a table
    /// ([`Query::into_table`]).
    ///
    /// ```
    /// # use ebbflow::session::Session;
    /// let mut session = Session::new();
    /// let mut query = session.query("SELECT x FROM (VALUES (1), (2)) AS t(x) WHERE x > 1")?;
    /// assert_eq!(query.schema().names(), ["x"]);
    /// assert!(query.mode().is_append());
    /// assert_eq!(query.collect_changes()?, ["+I[2]"]);
    /// # Ok::<(), ebbflow::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it is refused, with its position in `sql`.
    pub fn query(&mut self, sql: &str) -> Result<Query> {
        let query = FlinkParser::parse_query(sql)?;
        let plan = self.bind(&query)?;
        self.start_query(&plan)
    }

    fn binder(&self) -> Binder<'_> {
        Binder::new(&self.catalogs, &self.functions, &self.config)
    }

    fn planner(&self) -> Planner<'_> {
        Planner::new(&self.connectors, &self.config)
    }

    /// Binds and rewrites a query.
    fn bind(&self, query: &sqlparser::ast::Query) -> Result<LogicalPlan> {
        Ok(crate::plan::rewrite::rewrite(self.binder().bind(query)?))
    }

    fn job_config(&self, name: &str) -> JobConfig {
        JobConfig {
            name: name.into(),
            batch_size: self.config.batch_size(),
            clock: Arc::clone(&self.context.clock),
            environment: Arc::new(self.config.environment()),
            state_memory_limit: self
                .config
                .get("state.memory.limit")
                .and_then(crate::config::parse_memory),
            mini_batch_latency: self
                .config
                .mini_batch()
                .map(|(_, ms)| std::time::Duration::from_millis(ms.unsigned_abs())),
            max_parallelism: self.config.max_parallelism(),
            checks: match self.config.state_ttl() {
                // What has expired is withdrawn all the same.
                Some(_) => EdgeChecks::default().min(EdgeChecks::Cheap),
                None => EdgeChecks::default(),
            },
            die_after_rows: self
                .config
                .int("testing.die-after-rows")
                .and_then(|rows| u64::try_from(rows).ok()),
            ..JobConfig::default()
        }
    }
}
