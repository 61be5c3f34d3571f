//! Functions on URLs and network addresses.

use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{BigInt, Text};
use super::signature::{Param, Returns};
use crate::types::TypeKind;

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "PARSE_URL",
        "PARSE_URL(url STRING, part STRING [, key STRING])",
        "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO; with a key that parameter of the QUERY. NULL if there is none or the text is no URL.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Text, Param::Text, Param::Text],
            ],
            Returns::Nullable(TypeKind::STRING),
        ),
        |call| {
            Ok(if call.args.len() == 2 {
                call.text2::<Text, Text, _>(|url, part, out| {
                    out.push_str(&Url::parse(url)?.part(part)?);
                    Some(())
                })
            } else {
                call.text3::<Text, Text, Text, _>(|url, part, key, out| {
                    if part != "QUERY" {
                        return None;
                    }
                    let url = Url::parse(url)?;
                    let value = url.query?.split('&').find_map(|pair| {
                        pair.strip_prefix(key)?.strip_prefix('=')
                    });
                    out.push_str(value?);
                    Some(())
                })
            })
        },
    )
    .example("PARSE_URL('http://ex.org/a?k=v', 'HOST')", "ex.org"),
    Builtin::new(
        "URL_ENCODE",
        "URL_ENCODE(s STRING)",
        "The text as a part of a form's URL: a blank becomes +.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::STRING)),
        |call| Ok(call.text1::<Text, _>(encode)),
    )
    .null_from(0)
    .example("URL_ENCODE('a b/c')", "a+b%2Fc"),
    Builtin::new(
        "URL_DECODE",
        "URL_DECODE(s STRING)",
        "What URL_ENCODE made of; NULL if it is malformed.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::STRING)),
        |call| {
            Ok(call.text1::<Text, _>(|s, out| {
                out.push_str(&decode(s)?);
                Some(())
            }))
        },
    )
    .null_from(0)
    .example("URL_DECODE('a+b%2Fc')", "a b/c"),
    Builtin::new(
        "INET_ATON",
        "INET_ATON(address STRING)",
        "The number of an IPv4 address; short forms are taken. NULL if it is none.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::BigInt)),
        |call| Ok(call.map1::<Text, BigInt, _>(to_number)),
    )
    .null_from(0)
    .example("INET_ATON('127.0.0.1')", "2130706433"),
    Builtin::new(
        "INET_NTOA",
        "INET_NTOA(number BIGINT)",
        "The IPv4 address of a number; NULL if it is none.",
        Forms(&[&[Param::BigInt]], Returns::Nullable(TypeKind::STRING)),
        |call| {
            Ok(call.text1::<BigInt, _>(|number, out| {
                use std::fmt::Write as _;
                let [a, b, c, d] = u32::try_from(number).ok()?.to_be_bytes();
                write!(out, "{a}.{b}.{c}.{d}").ok()
            }))
        },
    )
    .null_from(0)
    .example("INET_NTOA(2130706433)", "127.0.0.1"),
];

/// The protocols that `java.net.URL` knows.
const PROTOCOLS: [&str; 7] = ["http", "https", "ftp", "file", "jar", "mailto", "jrt"];

/// A URL as `java.net.URL` takes it to pieces.
#[derive(Debug, PartialEq, Eq)]
struct Url<'a> {
    protocol: String,
    authority: Option<&'a str>,
    user_info: Option<&'a str>,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    reference: Option<&'a str>,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c <= ' ');
        let text = match text.get(..4) {
            Some(start) if start.eq_ignore_ascii_case("url:") => &text[4..],
            _ => text,
        };
        let colon = text
            .find([':', '/'])
            .filter(|at| text[*at..].starts_with(':'))?;
        let protocol = text[..colon].to_ascii_lowercase();
        if !PROTOCOLS.contains(&protocol.as_str()) {
            return None;
        }
        let rest = &text[colon + 1..];
        let (rest, reference) = match rest.split_once('#') {
            Some((rest, reference)) => (rest, Some(reference)),
            None => (rest, None),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        let (user_info, host) = match authority {
            None => (None, ""),
            Some(authority) => match authority.split_once('@') {
                Some((_, host)) if host.contains('@') => (None, ""),
                Some((user, host)) => (Some(user), host_of(host)?),
                None => (None, host_of(authority)?),
            },
        };
        Some(Self {
            protocol,
            authority,
            user_info,
            host,
            path,
            query,
            reference,
        })
    }

    fn part(&self, name: &str) -> Option<String> {
        match name {
            "HOST" => Some(self.host.to_string()),
            "PATH" => Some(self.path.to_string()),
            "QUERY" => self.query.map(str::to_string),
            "REF" => self.reference.map(str::to_string),
            "PROTOCOL" => Some(self.protocol.clone()),
            "FILE" => Some(match self.query {
                Some(query) => format!("{}?{query}", self.path),
                None => self.path.to_string(),
            }),
            "AUTHORITY" => self.authority.map(str::to_string),
            "USERINFO" => self.user_info.map(str::to_string),
            _ => None,
        }
    }
}

/// The host without its port; `None` if the port is no number.
fn host_of(text: &str) -> Option<&str> {
    let (host, port) = if text.starts_with('[') {
        let end = text.find(']')? + 1;
        (&text[..end], text[end..].strip_prefix(':'))
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    match port {
        None | Some("") => Some(host),
        Some(port) => port.parse::<u32>().ok().map(|_| host),
    }
}

fn encode(s: &str, out: &mut String) {
    use std::fmt::Write as _;
    for byte in s.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

fn decode(s: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(s.len());
    let mut rest = s.as_bytes();
    loop {
        rest = match rest {
            [] => break,
            [b'+', rest @ ..] => {
                bytes.push(b' ');
                rest
            }
            [b'%', high, low, rest @ ..] => {
                let digit = |b: &u8| char::from(*b).to_digit(16);
                bytes.push((digit(high)? << 4 | digit(low)?) as u8);
                rest
            }
            [b'%', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn to_number(address: &str) -> Option<i64> {
    let parts: Vec<u32> = address
        .split('.')
        .map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        })
        .collect::<Option<_>>()?;
    let number = match parts.as_slice() {
        [all] => return Some(i64::from(*all)),
        [a, b] => [*a, 0, 0, *b],
        [a, b, c] => [*a, *b, 0, *c],
        [a, b, c, d] => [*a, *b, *c, *d],
        _ => return None,
    };
    number.iter().try_fold(0, |sum, part| {
        (*part < 256).then(|| sum << 8 | i64::from(*part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{args, check};

    #[test]
    fn urls_come_to_pieces_as_in_java() {
        let url = "https://me:pw@ex.org:8080/a/b.html?k=v&k2=w#top";
        for (part, expected) in [
            ("HOST", "ex.org"),
            ("PATH", "/a/b.html"),
            ("QUERY", "k=v&k2=w"),
            ("REF", "top"),
            ("PROTOCOL", "https"),
            ("AUTHORITY", "me:pw@ex.org:8080"),
            ("USERINFO", "me:pw"),
            ("FILE", "/a/b.html?k=v&k2=w"),
            ("NOPE", "NULL"),
        ] {
            check("PARSE_URL", args![url, part], expected);
        }
        check("PARSE_URL", args![url, "QUERY", "k2"], "w");
        check("PARSE_URL", args![url, "QUERY", "zz"], "NULL");
        check(
            "PARSE_URL",
            args!["http://ex.org?k=1&kk=3", "HOST"],
            "ex.org",
        );
        check("PARSE_URL", args!["mailto:a@b.c", "PATH"], "a@b.c");
        check("PARSE_URL", args!["http://[::1]:80/p", "HOST"], "[::1]");
        for none in ["not a url", "jdbc:x", "http://a:b", "//x/y"] {
            assert_eq!(Url::parse(none), None, "{none}");
        }
    }

    #[test]
    fn forms_are_encoded_and_decoded() {
        check(
            "URL_ENCODE",
            args!["a b&c=d/é?*-._~"],
            "a+b%26c%3Dd%2F%C3%A9%3F*-._%7E",
        );
        check("URL_DECODE", args!["a%20b%26+%C3%A9"], "a b& é");
        check("URL_DECODE", args!["%zz"], "NULL");
        check("URL_DECODE", args!["%4"], "NULL");
        check("URL_DECODE", args!["%C3"], "\u{fffd}");
    }

    #[test]
    fn addresses_have_short_forms() {
        check("INET_ATON", args!["127.1"], "2130706433");
        check("INET_ATON", args!["1.2.3"], "16908291");
        check("INET_ATON", args!["256.0.0.1"], "NULL");
        check("INET_NTOA", args![4_294_967_295i64], "255.255.255.255");
        check("INET_NTOA", args![-1], "NULL");
    }
}
