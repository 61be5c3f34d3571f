//! What of a Java stack trace concerns the user: the innermost reason, and the place in the statement
//! that Flink's parser or validator names.

use std::sync::LazyLock;

use regex::Regex;

use crate::error::{Error, Span};

/// `From line 1, column 8 to line 1, column 10: ` and its like, as Calcite writes them.
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:From|At|at) line (\d+), column (\d+)(?: to line (\d+), column (\d+))?(?:: |[.]?$|[.\n])?",
    )
    .expect("the pattern is valid")
});

/// An exception of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cause<'a> {
    class: &'a str,
    message: String,
}

/// The error that the messages of an answer tell of, with its place in `statement`.
pub(super) fn error(messages: &[String], statement: &str) -> Error {
    let causes: Vec<Cause<'_>> = messages.iter().flat_map(|m| causes(m)).collect();
    let said = |c: &&Cause<'_>| !c.message.trim().is_empty();
    let (reason, class) = match causes.iter().rev().find(said) {
        Some(cause) => (cause.message.trim(), Some(cause.class)),
        None => (
            messages.first().map_or("no reason is given", |m| m.trim()),
            None,
        ),
    };
    let places = causes.iter().map(|c| c.message.as_str());
    let places = places.chain(messages.iter().map(String::as_str));
    let span = places.filter_map(|text| place(text, statement)).next();
    let message = PLACE.replace(reason, |found: &regex::Captures<'_>| {
        // in the middle of a sentence it stays
        match found.get(0) {
            Some(whole) if whole.start() == 0 => String::new(),
            Some(whole) => whole.as_str().to_string(),
            None => String::new(),
        }
    });
    let message = match class.map(|c| c.rsplit('.').next().unwrap_or(c)) {
        // an exception of Java alone says little without its name
        Some(name) if !message.contains(' ') => format!("{name}: {message}"),
        _ => message.into_owned(),
    };
    // the hundreds of words that a parser would have taken
    let message = message.split("\nWas expecting").next().unwrap_or_default();
    let error = Error::flink(message);
    match span {
        Some(span) => error.at(span),
        None => error,
    }
}

/// The chain of exceptions, outermost first.
fn causes(trace: &str) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    // whether lines still belong to the message of the last one
    let mut open = false;
    for line in trace.lines() {
        if line.contains("Exception on server side:") {
            continue;
        }
        if line.contains("End of exception on server side") {
            break;
        }
        let line = line.strip_prefix('<').unwrap_or(line);
        if line.starts_with("\tat ")
            || line.starts_with("\t...")
            || line.starts_with("\tSuppressed:")
        {
            open = false;
            continue;
        }
        let begins = line.strip_prefix("Caused by: ");
        let head = begins.unwrap_or(line);
        match head.split_once(": ").unwrap_or((head, "")) {
            (class, message) if is_class(class) && (begins.is_some() || !open) => {
                causes.push(Cause {
                    class,
                    message: message.to_string(),
                });
                open = true;
            }
            _ => {
                if let Some(last) = causes.last_mut().filter(|_| open) {
                    last.message.push('\n');
                    last.message.push_str(line);
                }
            }
        }
    }
    causes
}

fn is_class(text: &str) -> bool {
    let part =
        |p: &str| !p.is_empty() && p.chars().all(|c| c.is_alphanumeric() || "_$".contains(c));
    text.contains('.') && text.split('.').all(part)
}

/// The place that a message names, as bytes of `statement`.
fn place(message: &str, statement: &str) -> Option<Span> {
    let found = PLACE.captures(message)?;
    let number = |i: usize| found.get(i).and_then(|n| n.as_str().parse::<usize>().ok());
    let (line, column) = (number(1)?, number(2)?);
    let start = offset(statement, line, column)?;
    let end = match (number(3), number(4)) {
        (Some(line), Some(column)) => offset(statement, line, column + 1)?,
        _ => {
            start
                + statement
                    .get(start..)?
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8)
        }
    };
    Some(Span::new(start, end.max(start)))
}

/// The byte at a line and a column, both from 1; columns count characters of 16 bits.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.find('\n')? + 1;
    }
    let mut units = 1;
    for (i, c) in text.get(start..)?.char_indices() {
        if units >= column {
            return Some(start + i);
        }
        units += c.len_utf16();
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALIDATION: &str = "<Exception on server side:\n\
        org.apache.flink.table.gateway.api.utils.SqlGatewayException: org.apache.flink.table.gateway.api.utils.SqlGatewayException: Failed to fetchResults.\n\
        \tat org.apache.flink.table.gateway.rest.handler.statement.FetchResultsHandler.handleRequest(FetchResultsHandler.java:91)\n\
        Caused by: org.apache.flink.table.gateway.service.utils.SqlExecutionException: Failed to execute the operation 39c81324.\n\
        \tat java.base/java.lang.Thread.run(Thread.java:840)\n\
        \t... 1 more\n\
        Caused by: org.apache.flink.table.api.ValidationException: SQL validation failed. From line 2, column 6 to line 2, column 12: Object 'nowhere' not found\n\
        \t... 7 more\n\
        Caused by: org.apache.calcite.runtime.CalciteContextException: From line 2, column 6 to line 2, column 12: Object 'nowhere' not found\n\
        \t... 15 more\n\
        Caused by: org.apache.calcite.sql.validate.SqlValidatorException: Object 'nowhere' not found\n\
        \t... 34 more\n\n\
        End of exception on server side>";

    fn of(trace: &str, statement: &str) -> Error {
        error(
            &["Internal server error.".to_string(), trace.to_string()],
            statement,
        )
    }

    #[test]
    fn the_innermost_reason_comes_with_its_place() {
        let statement = "SELECT *\nFROM nowhere";
        let error = of(VALIDATION, statement);
        assert_eq!(error.message(), "Object 'nowhere' not found");
        let span = error.span().expect("a place");
        assert_eq!(&statement[span.start..span.end], "nowhere");
    }

    #[test]
    fn a_message_of_several_lines_stays_whole() {
        let trace = "org.apache.flink.table.api.ValidationException: Column types do not match.\n\
            Cause: Different number of columns.\n\nQuery schema: [n: BIGINT]\n\t... 7 more\n";
        let error = of(trace, "INSERT INTO t SELECT 1");
        assert_eq!(
            error.message(),
            "Column types do not match.\nCause: Different number of columns.\n\nQuery schema: [n: BIGINT]"
        );
        assert_eq!(error.span(), None);
    }

    #[test]
    fn a_parser_names_one_place() {
        let trace = "Caused by: org.apache.flink.table.api.SqlParserException: SQL parse failed. Encountered \"FORM\" at line 1, column 10.\nWas expecting one of:\n    <EOF> \n\t... 7 more\n\
            Caused by: org.apache.calcite.sql.parser.SqlParseException: Encountered \"FORM\" at line 1, column 10.\nWas expecting one of:\n    <EOF> \n\t... 7 more\n";
        let error = of(trace, "SELECT é FORM t");
        assert_eq!(error.span(), Some(Span::new(10, 11)));
        assert_eq!(
            error.message(),
            "Encountered \"FORM\" at line 1, column 10."
        );
    }

    #[test]
    fn a_bare_java_exception_keeps_its_name() {
        let trace = "java.lang.NullPointerException: x\n\tat a.B.c(B.java:1)";
        assert_eq!(of(trace, "").message(), "NullPointerException: x");
    }

    #[test]
    fn what_is_no_trace_is_said_as_it_is() {
        let error = error(&["Not found: /v2/nonsense".to_string()], "SELECT 1");
        assert_eq!(error.message(), "Not found: /v2/nonsense");
        assert_eq!(super::error(&[], "").message(), "no reason is given");
    }
}
