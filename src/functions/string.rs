//! Functions on character strings. Positions and lengths count Unicode code points, from 1.

use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{Int, Text};
use super::signature::{Param, Returns};
use crate::types::TypeKind;

pub(super) static FUNCTIONS: &[Builtin] = &[
    CHAR_LENGTH,
    CHAR_LENGTH.alias("CHARACTER_LENGTH", "CHARACTER_LENGTH(s STRING)"),
    Builtin::new(
        "UPPER",
        "UPPER(s STRING)",
        "The text in upper case.",
        Forms(&[&[Param::Text]], Returns::First),
        |call| {
            Ok(call.text1::<Text, _>(|s, out| out.extend(s.chars().flat_map(char::to_uppercase))))
        },
    )
    .example("UPPER('flink')", "FLINK"),
    Builtin::new(
        "LOWER",
        "LOWER(s STRING)",
        "The text in lower case.",
        Forms(&[&[Param::Text]], Returns::First),
        |call| Ok(call.text1::<Text, _>(|s, out| out.push_str(&s.to_lowercase()))),
    )
    .example("LOWER('FLINK')", "flink"),
];

const CHAR_LENGTH: Builtin = Builtin::new(
    "CHAR_LENGTH",
    "CHAR_LENGTH(s STRING)",
    "The number of characters.",
    Forms(&[&[Param::Text]], Returns::Strict(TypeKind::Int)),
    |call| Ok(call.map1::<Text, Int, _>(|s| i32::try_from(s.chars().count()).unwrap_or(i32::MAX))),
)
.example("CHAR_LENGTH('größe')", "5");
