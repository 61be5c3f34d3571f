//! What a statement is, by its words alone: for statements that another engine parses and runs, which
//! may know more than our grammar.

use super::lexer::{Scanner, Token, TokenKind};

/// What kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineKind {
    /// `SELECT`, `WITH`, `VALUES`, `TABLE`, or a query in parentheses.
    Query,
    /// `INSERT`, with or without `EXECUTE`.
    Insert,
    /// `EXECUTE STATEMENT SET BEGIN .. END`.
    StatementSet,
    /// `BEGIN STATEMENT SET; .. END`.
    StatementBlock,
    /// `CREATE TABLE .. AS query`.
    CreateTableAs,
    /// `CREATE` of a table, view, function or model.
    Create,
    /// Other changes of catalogs: `DROP`, `ALTER`, `CREATE DATABASE`.
    ChangeCatalog,
    /// `USE`.
    Use,
    /// What else concerns the client's own session: `SET`, `RESET`, `LOAD MODULE`, `ADD JAR`,
    /// `CREATE CATALOG`.
    Session,
    /// What only shows: `SHOW`, `DESCRIBE`, `EXPLAIN`.
    Show,
    /// `QUIT`, `EXIT`.
    Quit,
    /// `HELP`, `CLEAR`: for a terminal.
    Terminal,
    /// Anything else.
    Other,
}

/// The outline of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Its kind.
    pub kind: OutlineKind,
    /// Where the words end that say so: behind `CREATE`, `EXECUTE`, `BEGIN STATEMENT SET;`.
    pub head: usize,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `OR REPLACE`, `OR ALTER`.
    pub replaces: bool,
    /// The parts of the name of what is created, dropped, altered or used.
    pub name: Vec<String>,
    /// `USE CATALOG`: the name is a catalog's.
    pub of_catalog: bool,
}

impl Outline {
    /// The outline of one statement.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let mut outline = Self {
            kind: OutlineKind::Other,
            head: 0,
            temporary: false,
            replaces: false,
            name: Vec::new(),
            of_catalog: false,
        };
        let word = |i: usize| {
            tokens
                .get(i)
                .filter(|t| t.kind == TokenKind::Word)
                .map_or(String::new(), |t| t.text.to_ascii_uppercase())
        };
        let end = |i: usize| tokens.get(i).map_or(text.len(), |t| t.span.end);
        let first = match tokens.first() {
            Some(t) if t.is_symbol("(") => "(".to_string(),
            _ => word(0),
        };
        outline.kind = match first.as_str() {
            "(" | "SELECT" | "WITH" | "VALUES" | "TABLE" => OutlineKind::Query,
            "INSERT" => OutlineKind::Insert,
            "EXECUTE" => {
                outline.head = end(0);
                match word(1).as_str() {
                    "INSERT" => OutlineKind::Insert,
                    "STATEMENT" => OutlineKind::StatementSet,
                    "SELECT" | "WITH" | "VALUES" => OutlineKind::Query,
                    _ => OutlineKind::Other,
                }
            }
            "BEGIN" if word(1) == "STATEMENT" && word(2) == "SET" => {
                let semicolon = tokens.get(3).is_some_and(|t| t.is_symbol(";"));
                outline.head = end(if semicolon { 3 } else { 2 });
                OutlineKind::StatementBlock
            }
            "CREATE" => {
                outline.head = end(0);
                outline.create(&tokens)
            }
            "DROP" | "ALTER" => {
                outline.head = end(0);
                let mut at = 1;
                while ["TEMPORARY", "SYSTEM", "MATERIALIZED"].contains(&word(at).as_str()) {
                    outline.temporary |= word(at) == "TEMPORARY";
                    at += 1;
                }
                let what = word(at);
                outline.read_name(&tokens, at + 1);
                match what.as_str() {
                    "CATALOG" => OutlineKind::Session,
                    _ => OutlineKind::ChangeCatalog,
                }
            }
            "USE" => {
                outline.of_catalog = word(1) == "CATALOG";
                let modules = word(1) == "MODULES";
                if !modules {
                    outline.read_name(&tokens, if outline.of_catalog { 2 } else { 1 });
                }
                OutlineKind::Use
            }
            "SET" | "RESET" | "LOAD" | "UNLOAD" => OutlineKind::Session,
            "ADD" | "REMOVE" if word(1) == "JAR" => OutlineKind::Session,
            "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN" => OutlineKind::Show,
            "QUIT" | "EXIT" => OutlineKind::Quit,
            "HELP" | "CLEAR" => OutlineKind::Terminal,
            _ => OutlineKind::Other,
        };
        outline
    }

    fn create(&mut self, tokens: &[Token]) -> OutlineKind {
        let word = |i: usize| tokens.get(i).map_or("", |t| t.text.as_str());
        let is = |i: usize, keyword: &str| tokens.get(i).is_some_and(|t| t.is_word(keyword));
        let mut at = 1;
        if is(at, "OR") {
            self.replaces = true;
            at += 2;
        }
        while ["TEMPORARY", "SYSTEM"].iter().any(|k| is(at, k)) {
            self.temporary |= is(at, "TEMPORARY");
            at += 1;
        }
        let what = word(at).to_ascii_uppercase();
        self.read_name(tokens, at + 1);
        match what.as_str() {
            "CATALOG" => OutlineKind::Session,
            "TABLE" if has_query(&tokens[at..]) => OutlineKind::CreateTableAs,
            "TABLE" | "VIEW" | "FUNCTION" | "MODEL" => OutlineKind::Create,
            "DATABASE" => OutlineKind::ChangeCatalog,
            _ => OutlineKind::Other,
        }
    }

    /// Reads a name of several parts from token `at` on, behind `IF [NOT] EXISTS`.
    fn read_name(&mut self, tokens: &[Token], mut at: usize) {
        if tokens.get(at).is_some_and(|t| t.is_word("IF")) {
            at += 1;
            while tokens
                .get(at)
                .is_some_and(|t| t.is_word("NOT") || t.is_word("EXISTS"))
            {
                at += 1;
            }
        }
        while let Some(token) = tokens.get(at) {
            if !matches!(token.kind, TokenKind::Word | TokenKind::Quoted) {
                return;
            }
            self.name.push(token.text.clone());
            if !tokens.get(at + 1).is_some_and(|t| t.is_symbol(".")) {
                return;
            }
            at += 2;
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut scanner = Scanner::new(text);
    let mut tokens = Vec::new();
    loop {
        let token = scanner.next_token();
        match token.kind {
            TokenKind::End => return tokens,
            TokenKind::Comment => {}
            _ => tokens.push(token),
        }
    }
}

/// Whether `AS` stands outside of all parentheses.
fn has_query(tokens: &[Token]) -> bool {
    let mut depth = 0_i32;
    tokens.iter().any(|token| {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth -= 1;
        }
        depth == 0 && token.is_word("AS")
    })
}

/// The first line of a statement, cut where it is long: what a message calls it.
#[must_use]
pub fn title(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || c == '(');
    if line.chars().count() <= LONGEST {
        return line.to_string();
    }
    let cut: String = line.chars().take(LONGEST - 3).collect();
    format!("{}...", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_their_words() {
        for (text, kind) in [
            ("SELECT 1", OutlineKind::Query),
            ("(SELECT 1)", OutlineKind::Query),
            ("execute insert into t select 1", OutlineKind::Insert),
            (
                "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; END",
                OutlineKind::StatementSet,
            ),
            (
                "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; END",
                OutlineKind::StatementBlock,
            ),
            (
                "CREATE TABLE t (a INT, b AS a + 1) WITH ('c' = 'd')",
                OutlineKind::Create,
            ),
            (
                "CREATE TABLE t WITH ('c' = 'd') AS SELECT (1) AS a",
                OutlineKind::CreateTableAs,
            ),
            ("CREATE VIEW v AS SELECT 1", OutlineKind::Create),
            ("CREATE DATABASE d", OutlineKind::ChangeCatalog),
            ("CREATE CATALOG c WITH ('type' = 'x')", OutlineKind::Session),
            ("DROP TABLE IF EXISTS t", OutlineKind::ChangeCatalog),
            ("SET 'a' = 'b'", OutlineKind::Session),
            ("ADD JAR 'x.jar'", OutlineKind::Session),
            ("quit", OutlineKind::Quit),
            ("STOP JOB 'x'", OutlineKind::Other),
        ] {
            assert_eq!(Outline::of(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn names_and_heads_are_found() {
        let outline = Outline::of("CREATE TEMPORARY TABLE IF NOT EXISTS `my cat`.d.t (a INT)");
        assert_eq!(outline.name, ["my cat", "d", "t"]);
        assert!(outline.temporary);
        let outline = Outline::of("BEGIN /* all */ STATEMENT SET ; INSERT INTO t SELECT 1; END");
        assert_eq!(outline.head, "BEGIN /* all */ STATEMENT SET ;".len());
        assert!(Outline::of("USE CATALOG c").of_catalog);
        assert_eq!(Outline::of("USE c.d").name, ["c", "d"]);
    }

    #[test]
    fn a_title_is_the_first_line() {
        assert_eq!(title("CREATE TABLE t (\n  a INT\n)"), "CREATE TABLE t");
        assert_eq!(title(&"x".repeat(70)).len(), 60);
    }
}
