//! Reads the text of a path.

use super::filter::{Condition, Operand, Relation};
use super::{Function, Path, Token};

/// Compiles a path.
pub(super) fn path(text: &str) -> Result<Path, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("json can not be null or empty".to_string());
    }
    let rooted;
    let text = if text.starts_with(['$', '@']) {
        text
    } else {
        rooted = format!("$.{text}");
        &rooted
    };
    if text.len() > 1 && text.ends_with('.') {
        return Err("Path must not end with a '.' or '..'".to_string());
    }
    let mut reader = Reader {
        rest: &text[1..],
        depth: 0,
    };
    let path = reader.tokens()?;
    if reader.rest.is_empty() {
        Ok(path)
    } else {
        Err(format!("Could not parse '{}'", reader.rest))
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// Conditions within conditions.
    depth: usize,
}

/// Conditions nest at most so deep.
const MAX_DEPTH: usize = 100;

impl<'a> Reader<'a> {
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.eat(text) {
            return Ok(());
        }
        Err(format!("Expected '{text}' before '{}'", self.rest))
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !test(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// The steps of a path behind its root, as far as they go.
    fn tokens(&mut self) -> Result<Path, String> {
        let mut tokens = Vec::new();
        let mut function = None;
        loop {
            if self.eat("..") {
                tokens.push(Token::Deep);
                if !self.rest.starts_with('[') {
                    self.name(&mut tokens, &mut function)?;
                }
            } else if self.eat(".") {
                if !self.rest.starts_with('[') {
                    self.name(&mut tokens, &mut function)?;
                }
            } else if self.rest.starts_with('[') {
                tokens.push(self.bracket()?);
            } else {
                return Ok(Path { tokens, function });
            }
            if function.is_some() {
                return Ok(Path { tokens, function });
            }
        }
    }

    fn name(
        &mut self,
        tokens: &mut Vec<Token>,
        function: &mut Option<Function>,
    ) -> Result<(), String> {
        if self.eat("*") {
            tokens.push(Token::All);
            return Ok(());
        }
        let name = self.take_while(|c| !".[( )=<>!&|,]".contains(c));
        if name.is_empty() {
            return Err(format!("Expected a property before '{}'", self.rest));
        }
        if self.eat("(") {
            self.expect(")")?;
            *function = Function::from_name(name);
            return match function {
                Some(_) => Ok(()),
                None => Err(format!("Function with name: {name} does not exist.")),
            };
        }
        tokens.push(Token::Property(vec![name.to_string()]));
        Ok(())
    }

    fn bracket(&mut self) -> Result<Token, String> {
        self.expect("[")?;
        self.blanks();
        if self.eat("*") {
            self.blanks();
            self.expect("]")?;
            return Ok(Token::All);
        }
        if self.eat("?") {
            self.blanks();
            self.expect("(")?;
            let condition = self.any()?;
            self.blanks();
            self.expect(")")?;
            self.blanks();
            self.expect("]")?;
            return Ok(Token::Filter(condition));
        }
        if self.rest.starts_with(['\'', '"']) {
            let mut names = vec![self.quoted()?];
            self.blanks();
            while self.eat(",") {
                self.blanks();
                names.push(self.quoted()?);
                self.blanks();
            }
            self.expect("]")?;
            return Ok(Token::Property(names));
        }
        let inside = self.take_while(|c| c != ']');
        self.expect("]")?;
        let number = |text: &str| -> Result<i64, String> {
            text.trim()
                .parse()
                .map_err(|_| format!("'{text}' is no index of an array"))
        };
        if let Some((from, to)) = inside.split_once(':') {
            let bound = |text: &str| match text.trim() {
                "" => Ok(None),
                text => number(text).map(Some),
            };
            return Ok(Token::Slice(bound(from)?, bound(to)?));
        }
        inside
            .split(',')
            .map(number)
            .collect::<Result<_, _>>()
            .map(Token::Index)
    }

    /// A text in quotes.
    fn quoted(&mut self) -> Result<String, String> {
        let quote = match self.rest.chars().next() {
            Some(c @ ('\'' | '"')) => c,
            _ => return Err(format!("Expected a quote before '{}'", self.rest)),
        };
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c if c == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err("a quote is not closed".to_string())
    }

    /// Conditions with `||` between them.
    fn any(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.all()?];
        loop {
            self.blanks();
            if !self.eat("||") {
                break;
            }
            all.push(self.all()?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::Any(all),
        })
    }

    /// Conditions with `&&` between them.
    fn all(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.condition()?];
        loop {
            self.blanks();
            if !self.eat("&&") {
                break;
            }
            all.push(self.condition()?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::All(all),
        })
    }

    fn condition(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the condition is nested too deep".to_string());
        }
        let condition = self.simple_condition();
        self.depth -= 1;
        condition
    }

    fn simple_condition(&mut self) -> Result<Condition, String> {
        self.blanks();
        if self.rest.starts_with('!') && !self.rest.starts_with("!=") {
            self.expect("!")?;
            return Ok(Condition::Not(Box::new(self.condition()?)));
        }
        if self.eat("(") {
            let inner = self.any()?;
            self.blanks();
            self.expect(")")?;
            return Ok(inner);
        }
        let left = self.operand()?;
        self.blanks();
        const RELATIONS: [(&str, Relation); 9] = [
            ("=~", Relation::Matches),
            ("==", Relation::Equal),
            ("!=", Relation::NotEqual),
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::Greater),
            ("nin", Relation::NotIn),
            ("in", Relation::In),
        ];
        for (text, relation) in RELATIONS {
            if self.eat(text) {
                self.blanks();
                let right = self.operand()?;
                return Ok(Condition::Compare(left, relation, right));
            }
        }
        match left {
            Operand::Path(..) => Ok(Condition::Exists(left)),
            _ => Err(format!("Expected a comparison before '{}'", self.rest)),
        }
    }

    fn operand(&mut self) -> Result<Operand, String> {
        self.blanks();
        for (root, from_root) in [("@", false), ("$", true)] {
            if self.eat(root) {
                return Ok(Operand::Path(self.tokens()?, from_root));
            }
        }
        if self.rest.starts_with(['\'', '"']) {
            return Ok(Operand::Value(self.quoted()?.into()));
        }
        if self.eat("/") {
            return self.pattern();
        }
        if self.eat("[") {
            return self.list();
        }
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        match super::super::json_tree::parse(word) {
            Some(value) if !word.is_empty() => Ok(Operand::Value(value)),
            _ => Err(format!("Expected a value before '{word}{}'", self.rest)),
        }
    }

    /// Constants behind their opening bracket.
    fn list(&mut self) -> Result<Operand, String> {
        let mut items = Vec::new();
        self.blanks();
        while !self.eat("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            self.blanks();
            if self.rest.starts_with(['[', '/']) {
                return Err("a list holds constants only".to_string());
            }
            match self.operand()? {
                Operand::Value(value) => items.push(value),
                _ => return Err("a list holds constants only".to_string()),
            }
            self.blanks();
        }
        Ok(Operand::Value(items.into()))
    }

    /// A regular expression behind its first slash.
    fn pattern(&mut self) -> Result<Operand, String> {
        let mut end = None;
        let mut escaped = false;
        for (at, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '/' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let end = end.ok_or("a regular expression is not closed")?;
        let pattern = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        let flags = self.take_while(|c| "dixmsuU".contains(c));
        let pattern = if flags.is_empty() {
            pattern.to_string()
        } else {
            format!("(?{flags}){pattern}")
        };
        Ok(Operand::Pattern(pattern))
    }
}
