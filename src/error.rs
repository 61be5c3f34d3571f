//! The one error type of the crate: what failed, where, why and what to do.
//!
//! Every stage makes its errors with the constructor named after it ([`Error::parse`],
//! [`Error::plan`], ...). Whoever knows more adds it on the way up: a position in the SQL text with
//! [`Error::at`], a remedy with [`Error::hint`]. Front doors print [`Error::render`].

use std::fmt;

/// A half-open range of byte offsets into the SQL text that was handed to the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

/// The stage that refused to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not SQL of the dialect.
    Parse,
    /// The statement is SQL, but cannot be planned.
    Plan,
    /// A catalog object is missing, exists already or has the wrong kind.
    Catalog,
    /// A table option or configuration key is unknown, missing or malformed.
    Options,
    /// A connector failed: a file, a broker, a connection.
    Connector,
    /// Bytes could not be decoded or a row could not be encoded.
    Format,
    /// An expression or operator failed on data.
    Execution,
    /// State grew past its limit or could not be read.
    State,
    /// A checkpoint could not be taken or restored.
    Checkpoint,
    /// A Flink cluster refused a statement, or a job there failed.
    Flink,
    /// A SQL Gateway of Flink cannot be reached, or its answer is not understood.
    Gateway,
    /// Flink does not have it.
    Portability,
    /// A bug of the engine: an invariant does not hold.
    Internal,
}

impl ErrorKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Parse => "SQL parse failed",
            Self::Plan => "SQL validation failed",
            Self::Catalog => "Catalog",
            Self::Options => "Options",
            Self::Connector => "Connector",
            Self::Format => "Format",
            Self::Execution => "Execution failed",
            Self::State => "State",
            Self::Checkpoint => "Checkpoint",
            Self::Flink => "Flink",
            Self::Gateway => "SQL Gateway",
            Self::Portability => "Not in Flink",
            Self::Internal => "Internal error (please report it)",
        }
    }
}

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    span: Option<Span>,
    context: Vec<String>,
}

/// An error of any stage. Cheap to move; `Display` gives the reason on one or more lines, without
/// the position (see [`Error::render`] for the text with line and caret).
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident),* $(,)?) => {
        $($(#[$doc])*
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorKind::$kind, message)
        })*
    };
}

impl Error {
    /// An error of `kind` whose reason is `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            span: None,
            context: Vec::new(),
        }))
    }

    constructors! {
        /// The text is not SQL of the dialect.
        parse => Parse,
        /// The statement cannot be planned.
        plan => Plan,
        /// A catalog object is missing or in the way.
        catalog => Catalog,
        /// An option is unknown, missing or malformed.
        options => Options,
        /// A connector failed.
        connector => Connector,
        /// Bytes could not be decoded or encoded.
        format => Format,
        /// An expression or operator failed on data.
        execution => Execution,
        /// State is over its limit or unreadable.
        state => State,
        /// A checkpoint failed.
        checkpoint => Checkpoint,
        /// A Flink cluster refused a statement, or a job there failed.
        flink => Flink,
        /// A SQL Gateway of Flink cannot be reached, or its answer is not understood.
        gateway => Gateway,
        /// Flink does not have it.
        portability => Portability,
        /// An invariant of the engine does not hold.
        internal => Internal,
    }

    /// Says what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the position, unless a more precise one is already there.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Moves the position, if there is one, by `offset` bytes: from a statement to its script.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> Self {
        if let Some(span) = &mut self.0.span {
            span.start += offset;
            span.end += offset;
        }
        self
    }

    /// Moves both ends of the position, if there is one: from a text that was changed to the user's.
    #[must_use]
    pub fn moved(mut self, place: impl Fn(usize) -> usize) -> Self {
        if let Some(span) = &mut self.0.span {
            *span = Span::new(place(span.start), place(span.end));
        }
        self
    }

    /// Moves the position back by `offset` bytes: from a text to the part that the user wrote.
    #[must_use]
    pub fn shifted_back(mut self, offset: usize) -> Self {
        if let Some(span) = &mut self.0.span {
            span.start = span.start.saturating_sub(offset);
            span.end = span.end.saturating_sub(offset);
        }
        self
    }

    /// Says during what the error happened, outermost last: a file, a table, an operator.
    #[must_use]
    pub fn context(mut self, what: impl Into<String>) -> Self {
        self.0.context.push(what.into());
        self
    }

    /// The stage that failed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The reason alone.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The remedy, if one is known.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The position in the SQL text, if one is known.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// The full text for a person: the reason, the line of `sql` with a caret under the position,
    /// and the hint. `name` is the script's file name, if there is one.
    #[must_use]
    pub fn render(&self, sql: &str, name: Option<&str>) -> String {
        self.render_below(self.to_string(), sql, name)
    }

    /// The same for what is no failure: without the noun of the stage.
    #[must_use]
    pub fn render_note(&self, sql: &str, name: Option<&str>) -> String {
        self.render_below(self.0.message.clone(), sql, name)
    }

    fn render_below(&self, mut text: String, sql: &str, name: Option<&str>) -> String {
        use fmt::Write as _;
        if let Some(span) = self.0.span
            && let Some(place) = Place::find(sql, span)
        {
            let where_ = match name {
                Some(name) => format!("{name}:{}:{}", place.line, place.column),
                None => format!("line {}, column {}", place.line, place.column),
            };
            let gutter = place.line.to_string().len();
            let _ = write!(
                text,
                "\n{:gutter$}--> {where_}\n{:gutter$} |\n{} | {}\n{:gutter$} | {}{}",
                "",
                "",
                place.line,
                place.text,
                "",
                " ".repeat(place.indent),
                "^".repeat(place.width)
            );
        }
        if let Some(hint) = &self.0.hint {
            let _ = write!(text, "\nhint: {hint}");
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.noun(), self.0.message)?;
        for context in &self.0.context {
            write!(f, "\n  in {context}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Self {
        Self::execution(e.to_string())
    }
}

impl From<datafusion::error::DataFusionError> for Error {
    fn from(e: datafusion::error::DataFusionError) -> Self {
        Self::execution(e.strip_backtrace())
    }
}

/// Where a span lies, for a person.
struct Place<'a> {
    /// Line, from 1.
    line: usize,
    /// Column in characters, from 1.
    column: usize,
    text: &'a str,
    /// Display cells before the caret.
    indent: usize,
    /// Carets to draw.
    width: usize,
}

impl<'a> Place<'a> {
    fn find(sql: &'a str, span: Span) -> Option<Self> {
        let start = span.start.min(sql.len());
        let before = sql.get(..start)?;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = sql
            .get(start..)?
            .find('\n')
            .map_or(sql.len(), |i| start + i);
        let text = sql.get(line_start..line_end)?.trim_end_matches('\r');
        let indent = sql.get(line_start..start)?.chars().count();
        let marked = sql
            .get(start..span.end.clamp(start, line_end))?
            .chars()
            .count();
        Some(Self {
            line: before.matches('\n').count() + 1,
            column: indent + 1,
            text,
            indent,
            width: marked.max(1),
        })
    }
}

/// The candidate that `word` was probably meant to be, for "did you mean" hints: the closest by edit
/// distance, if it is close. Candidates are compared without regard to case.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= 1 + c.len().min(word.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_line_with_a_caret_and_the_hint() {
        let sql = "SELECT a,\n  bb FROM t";
        let error = Error::plan("Column 'bb' not found")
            .at(Span::new(12, 14))
            .hint("did you mean b?");
        let text = error.render(sql, Some("x.sql"));
        assert_eq!(
            text,
            "SQL validation failed: Column 'bb' not found\n --> x.sql:2:3\n  |\n2 |   bb FROM t\n  |   ^^\nhint: did you mean b?"
        );
    }

    #[test]
    fn suggests_only_close_names() {
        assert_eq!(did_you_mean("SELCT", ["select", "insert"]), Some("select"));
        assert_eq!(did_you_mean("x", ["select"]), None);
    }
}
