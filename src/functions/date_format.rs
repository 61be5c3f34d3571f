//! Dates and times from and to text, by Java's patterns.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::java_date::SimpleDateFormat;
use super::java_time::DateTimeFormatter;
use super::kernel::{
    BigInt, Call, Date, Decimal, Double, Int, Read, Text, Ticks, arrays, collect, collect_text,
    columns,
};
use super::signature::{Param, Returns, match_forms};
use super::time_form::{Local, NANOS_PER_SECOND, TimeForm};
use super::zones::Zone;
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::parse;
use crate::types::{DataType, TypeKind};

/// The pattern of functions that are called without one.
const DEFAULT: &str = "yyyy-MM-dd HH:mm:ss";

/// Patterns that are not constant are kept up to this many.
const CACHE: usize = 64;

/// The compiled patterns of an argument.
enum Patterns<P> {
    Constant(Arc<P>),
    /// Compiled when they come.
    Varying {
        compile: fn(&str) -> Result<P>,
        known: Mutex<HashMap<String, Option<Arc<P>>>>,
    },
}

impl<P> Patterns<P> {
    /// For argument `arg`, or the default pattern if it is not given.
    fn of(call: &Call<'_>, arg: usize, compile: fn(&str) -> Result<P>) -> Result<Self> {
        let constant = match call.args.get(arg) {
            None => Some(DEFAULT),
            Some(_) => call.text_literal(arg),
        };
        Ok(match constant {
            Some(pattern) => Self::Constant(Arc::new(compile(pattern)?)),
            None => Self::Varying {
                compile,
                known: Mutex::default(),
            },
        })
    }

    fn get(&self, pattern: Option<&str>) -> Result<Cow<'_, Arc<P>>> {
        match self {
            Self::Constant(compiled) => Ok(Cow::Borrowed(compiled)),
            Self::Varying { compile, known } => {
                let pattern = pattern.unwrap_or(DEFAULT);
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(Some(compiled)) = known.get(pattern) {
                    return Ok(Cow::Owned(Arc::clone(compiled)));
                }
                if known.len() >= CACHE {
                    known.clear();
                }
                let compiled = Arc::new(compile(pattern)?);
                known.insert(pattern.to_string(), Some(Arc::clone(&compiled)));
                Ok(Cow::Owned(compiled))
            }
        }
    }
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "DATE_FORMAT",
        "DATE_FORMAT(t TIMESTAMP | STRING, pattern STRING)",
        "The timestamp, or a text 'yyyy-MM-dd HH:mm:ss', written by a pattern of Java.",
        Forms(
            &[
                &[Param::Timestamp, Param::Text],
                &[Param::Text, Param::Text],
            ],
            Returns::Nullable(TypeKind::STRING),
        ),
        prepare_date_format,
    )
    .may_fail()
    .example("DATE_FORMAT(TIMESTAMP '2024-02-29 12:30:00', 'dd.MM.yyyy')", "29.02.2024"),
    Builtin::new(
        "TO_DATE",
        "TO_DATE(s STRING [, pattern STRING])",
        "The date that the text is; NULL if it is none.",
        Forms(
            &[&[Param::Text], &[Param::Text, Param::Text]],
            Returns::Nullable(TypeKind::Date),
        ),
        prepare_to_date,
    )
    .may_fail()
    .example("TO_DATE('29.02.2024', 'dd.MM.yyyy')", "2024-02-29"),
    Builtin::new(
        "TO_TIMESTAMP",
        "TO_TIMESTAMP(s STRING [, pattern STRING])",
        "The TIMESTAMP(3) that the text is, 'yyyy-MM-dd HH:mm:ss' by default; NULL if it is none.",
        Forms(
            &[&[Param::Text], &[Param::Text, Param::Text]],
            Returns::Nullable(TypeKind::Timestamp(3)),
        ),
        prepare_to_timestamp,
    )
    .example("TO_TIMESTAMP('2024-02-29 12:30:00')", "2024-02-29T12:30"),
    Builtin::new(
        "TO_TIMESTAMP_LTZ",
        "TO_TIMESTAMP_LTZ(n NUMERIC [, precision INT])\nTO_TIMESTAMP_LTZ(s STRING [, pattern STRING [, zone STRING]])",
        "The instant of a number of seconds (precision 0), milliseconds (3, the default) and so on, or of a text in a zone, UTC by default.",
        Custom(resolve_ltz),
        prepare_ltz,
    )
    .null_from(1)
    .may_fail()
    .example("TO_TIMESTAMP_LTZ(1000, 3)", "1970-01-01T00:00:01Z"),
    Builtin::new(
        "UNIX_TIMESTAMP",
        "UNIX_TIMESTAMP()\nUNIX_TIMESTAMP(s STRING [, pattern STRING])",
        "The seconds since 1970-01-01 UTC, now or of a text in the session's zone; the least BIGINT if it is no time.",
        Forms(
            &[&[], &[Param::Text], &[Param::Text, Param::Text]],
            Returns::Strict(TypeKind::BigInt),
        ),
        prepare_unix_timestamp,
    )
    .dynamic()
    .may_fail()
    .example("UNIX_TIMESTAMP('1970-01-01 00:00:01')", "1"),
    Builtin::new(
        "FROM_UNIXTIME",
        "FROM_UNIXTIME(seconds BIGINT [, pattern STRING])",
        "Seconds since 1970-01-01 UTC, written in the session's zone as 'yyyy-MM-dd HH:mm:ss' or by a pattern.",
        Forms(
            &[&[Param::BigInt], &[Param::BigInt, Param::Text]],
            Returns::Nullable(TypeKind::STRING),
        ),
        prepare_from_unixtime,
    )
    .may_fail()
    .example("FROM_UNIXTIME(44)", "1970-01-01 00:00:44"),
    Builtin::new(
        "CONVERT_TZ",
        "CONVERT_TZ(s STRING, from STRING, to STRING)",
        "What a clock in the zone `to` shows when one in the zone `from` shows 'yyyy-MM-dd HH:mm:ss'.",
        Forms(
            &[&[Param::Text, Param::Text, Param::Text]],
            Returns::Nullable(TypeKind::STRING),
        ),
        prepare_convert_tz,
    )
    .example("CONVERT_TZ('2024-01-01 12:00:00', 'UTC', 'Asia/Tokyo')", "2024-01-01 21:00:00"),
];

fn prepare_date_format(call: &Call<'_>) -> Result<Kernel> {
    let Some(form) = TimeForm::new(call.kind(0), call.env) else {
        let patterns = Patterns::of(call, 1, SimpleDateFormat::new)?;
        let read = SimpleDateFormat::new(DEFAULT)?;
        return Ok(arrays(move |c, _| {
            let (s, pattern) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
            collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                let Some(millis) = read.parse(s.value(i), Zone::Fixed(0)) else {
                    return Ok(None);
                };
                let write = patterns.get(Some(pattern.value(i)))?;
                write.format(millis, Zone::Region(chrono_tz::UTC), out);
                Ok(Some(()))
            })
        }));
    };
    let patterns = Patterns::of(call, 1, DateTimeFormatter::new)?;
    Ok(
        call.text2::<Ticks, Text, Result<()>>(move |t, pattern, out| {
            patterns.get(Some(pattern))?.format(form.local(t), out)
        }),
    )
}

fn prepare_to_date(call: &Call<'_>) -> Result<Kernel> {
    if call.args.len() == 1 {
        return Ok(call.map1::<Text, Date, _>(parse::cast_date));
    }
    let patterns = Patterns::of(call, 1, SimpleDateFormat::new)?;
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (s, pattern) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        collect::<Date>(c.rows, c.nulls().as_ref(), &to, |i| {
            let format = patterns.get(Some(pattern.value(i)))?;
            let millis = format.parse(s.value(i), Zone::Fixed(0));
            Ok(millis.and_then(|ms| i32::try_from(ms.div_euclid(86_400_000)).ok()))
        })
    }))
}

/// How a text without a pattern of its own is read.
const ISO_LIKE: &str = "yyyy-[MM][M]-[dd][d][ [HH][H]:[mm][m]:[ss][s]]";

/// A timestamp in the default form, with a fraction of up to nine digits.
struct DefaultTimestamp(DateTimeFormatter);

impl DefaultTimestamp {
    fn new() -> Result<Self> {
        DateTimeFormatter::new(ISO_LIKE).map(Self)
    }

    fn parse(&self, text: &str) -> Option<Local> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, fraction),
            None => (text, ""),
        };
        let fits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
        if !fits || (text.len() > whole.len() && !whole.contains(' ')) {
            return None;
        }
        let mut t = self.0.parse(whole)?;
        if !fraction.is_empty() {
            let digits = u32::try_from(fraction.len()).ok()?;
            t.nanos += fraction.parse::<i64>().ok()? * 10i64.pow(9 - digits);
        }
        Some(t)
    }
}

/// What a text is by a pattern or, failing that, as `java.sql` reads it: fields may lack digits, days run
/// over.
fn parse_or_sql(formatter: &DateTimeFormatter, text: &str) -> Option<Local> {
    formatter
        .parse(text)
        .or_else(|| parse_sql(text.trim_matches(|c: char| c <= ' ')))
}

fn parse_sql(text: &str) -> Option<Local> {
    let (date, time) = match text.split_once(' ') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let number = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        let digits = lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4..=4)?;
    let month = number(parts.next()?, 1..=2).filter(|m| (1..=12).contains(m))?;
    let day = number(parts.next()?, 1..=2).filter(|d| (1..=31).contains(d))?;
    if parts.next().is_some() {
        return None;
    }
    let month = u32::try_from(month).ok()?;
    let days = crate::types::calendar::days_from_civil(year, month, 1) + day - 1;
    let Some(time) = time else {
        return Some(Local { days, nanos: 0 });
    };
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    let mut parts = clock.split(':');
    let mut next = || number(parts.next()?, 1..=9);
    let (hour, minute, second) = (next()?, next()?, next()?);
    if parts.next().is_some() {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some(digits) => {
            let value = number(digits, 1..=9)?;
            value * 10i64.pow(9 - u32::try_from(digits.len()).ok()?)
        }
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(Local::from_seconds(seconds, nanos))
}

fn prepare_to_timestamp(call: &Call<'_>) -> Result<Kernel> {
    let form = timestamp_form(&call.returns.kind)?;
    if call.args.len() == 1 {
        let default = DefaultTimestamp::new()?;
        return Ok(call.map1::<Text, Ticks, _>(move |s| form.value(default.parse(s)?)));
    }
    // A malformed pattern makes NULL.
    let Ok(patterns) = Patterns::of(call, 1, DateTimeFormatter::new) else {
        return Ok(call.map1::<Text, Ticks, _>(|_| None));
    };
    Ok(call.map2::<Text, Text, Ticks, _>(move |s, pattern| {
        let formatter = patterns.get(Some(pattern)).ok()?;
        form.value(parse_or_sql(&formatter, s)?)
    }))
}

fn timestamp_form(kind: &TypeKind) -> Result<TimeForm> {
    TimeForm::utc(kind).ok_or_else(|| Error::internal(format!("a timestamp of type {kind}")))
}

fn resolve_ltz(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[
        &[Param::Numeric],
        &[Param::Numeric, Param::Int],
        &[Param::Text],
        &[Param::Text, Param::Text],
        &[Param::Text, Param::Text, Param::Text],
    ];
    use datafusion::common::ScalarValue;
    let precision = match args.get(1).and_then(|arg| arg.literal.as_ref()) {
        Some(ScalarValue::Int32(Some(p))) => {
            let valid = u8::try_from(*p).ok().filter(|p| *p <= 9);
            valid.ok_or_else(|| {
                Error::plan(format!(
                    "Unsupported precision '{p}' of {}: it is 0 to 9",
                    builtin.name
                ))
            })?
        }
        Some(ScalarValue::Utf8(Some(pattern))) => {
            let digits = pattern.chars().filter(|c| *c == 'S').count();
            u8::try_from(digits.min(9)).unwrap_or(9)
        }
        _ => 3,
    };
    let returns = |_: &[DataType]| TypeKind::TimestampLtz(3).nullable();
    let mut signature = match_forms(builtin, FORMS, &Returns::By(returns), args)?;
    signature.returns = TypeKind::TimestampLtz(precision.max(3)).nullable();
    if let Some(number) = signature.args.first_mut()
        && number.kind.is_integer()
    {
        number.kind = TypeKind::BigInt;
    }
    if signature.args[0].kind == TypeKind::Float {
        signature.args[0].kind = TypeKind::Double;
    }
    Ok(signature)
}

/// 0000-01-01 and the second after 9999-12-31, in seconds.
const YEARS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

/// The moment of a count of units, 10^`precision` of which make a second.
fn moment_of(count: i128, precision: u32) -> Option<Local> {
    let unit = 10i128.pow(9 - precision);
    let nanos = count.checked_mul(unit)?;
    let per_second = i128::from(NANOS_PER_SECOND);
    let seconds = i64::try_from(nanos.div_euclid(per_second)).ok()?;
    let rest = i64::try_from(nanos.rem_euclid(per_second)).ok()?;
    YEARS
        .contains(&seconds)
        .then(|| Local::from_seconds(seconds, rest))
}

fn prepare_ltz(call: &Call<'_>) -> Result<Kernel> {
    let form = timestamp_form(&call.returns.kind)?;
    match *call.kind(0) {
        TypeKind::BigInt => Ok(numeric_ltz::<BigInt>(call, form, |v, p| {
            moment_of(i128::from(v), p)
        })),
        TypeKind::Double => Ok(numeric_ltz::<Double>(call, form, |v, p| {
            // A fraction of a unit counts down to milliseconds.
            let scale = 3u32.saturating_sub(p);
            let count = v * 10f64.powi(i32::try_from(scale).unwrap_or(0));
            moment_of(count as i128, p + scale)
        })),
        TypeKind::Decimal(_, scale) => {
            let scale = u32::from(scale);
            Ok(numeric_ltz::<Decimal>(call, form, move |v, p| {
                moment_of(v / 10i128.pow(scale), p)
            }))
        }
        _ => prepare_text_ltz(call, form),
    }
}

fn numeric_ltz<A: Read>(
    call: &Call<'_>,
    form: TimeForm,
    moment: impl Fn(A::Item<'_>, u32) -> Option<Local> + Send + Sync + 'static,
) -> Kernel {
    if call.args.len() == 1 {
        return call.map1::<A, Ticks, _>(move |v| form.value(moment(v, 3)?));
    }
    call.map2::<A, Int, Ticks, _>(move |v, precision| {
        let precision = u32::try_from(precision).ok().filter(|p| *p <= 9)?;
        form.value(moment(v, precision)?)
    })
}

fn prepare_text_ltz(call: &Call<'_>, form: TimeForm) -> Result<Kernel> {
    if call.args.len() == 1 {
        let default = DefaultTimestamp::new()?;
        return Ok(call.map1::<Text, Ticks, Result<Option<i64>>>(move |s| {
            let Some(t) = default.parse(s) else {
                return Err(Error::execution(format!("Text '{s}' could not be parsed"))
                    .hint("TO_TIMESTAMP_LTZ(s, pattern) gives NULL instead"));
            };
            Ok(form.value(t))
        }));
    }
    let Ok(patterns) = Patterns::of(call, 1, DateTimeFormatter::new) else {
        return Ok(call.map1::<Text, Ticks, _>(|_| None));
    };
    if call.args.len() == 2 {
        return Ok(call.map2::<Text, Text, Ticks, _>(move |s, pattern| {
            let formatter = patterns.get(Some(pattern)).ok()?;
            form.value(parse_or_sql(&formatter, s)?)
        }));
    }
    let zone = match call.text_literal(2) {
        Some(id) => Some(zone_of(id)?),
        None => None,
    };
    Ok(
        call.map3::<Text, Text, Text, Ticks, Result<Option<i64>>>(move |s, pattern, id| {
            let zone = match zone {
                Some(zone) => zone,
                None => zone_of(id)?,
            };
            let parsed = patterns
                .get(Some(pattern))
                .ok()
                .and_then(|formatter| parse_or_sql(&formatter, s));
            Ok(parsed.and_then(|t| {
                let instant = zone.instant(t.seconds());
                form.value(Local::from_seconds(instant, t.nanos_of_second()))
            }))
        }),
    )
}

fn zone_of(id: &str) -> Result<Zone> {
    Zone::strict(id).ok_or_else(|| {
        Error::execution(format!(
            "Invalid timezone for parsing TIMESTAMP_LTZ: Unknown time-zone ID: {id}"
        ))
    })
}

fn prepare_unix_timestamp(call: &Call<'_>) -> Result<Kernel> {
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::ColumnarValue;
    if call.args.is_empty() {
        return Ok(Box::new(|_, ctx| {
            Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(
                ctx.now_ms.div_euclid(1000),
            ))))
        }));
    }
    let patterns = Patterns::of(call, 1, SimpleDateFormat::new)?;
    let zone = Zone::Region(call.env.time_zone);
    let given = call.args.len() == 2;
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let s = c.column::<Text>(0)?;
        let pattern = given.then(|| c.column::<Text>(1)).transpose()?;
        collect::<BigInt>(c.rows, c.nulls().as_ref(), &to, |i| {
            let format = patterns.get(pattern.as_ref().map(|p| p.value(i)))?;
            let millis = format.parse(s.value(i), zone);
            Ok(Some(millis.map_or(i64::MIN, |ms| ms / 1000)))
        })
    }))
}

fn prepare_from_unixtime(call: &Call<'_>) -> Result<Kernel> {
    let patterns = Patterns::of(call, 1, SimpleDateFormat::new)?;
    let zone = Zone::Region(call.env.time_zone);
    if call.args.len() == 1 {
        return Ok(
            call.text1::<BigInt, Result<Option<()>>>(move |seconds, out| {
                let Some(millis) = seconds.checked_mul(1000) else {
                    return Ok(None);
                };
                patterns.get(None)?.format(millis, zone, out);
                Ok(Some(()))
            }),
        );
    }
    Ok(
        call.text2::<BigInt, Text, Result<Option<()>>>(move |seconds, pattern, out| {
            let Some(millis) = seconds.checked_mul(1000) else {
                return Ok(None);
            };
            patterns.get(Some(pattern))?.format(millis, zone, out);
            Ok(Some(()))
        }),
    )
}

fn prepare_convert_tz(call: &Call<'_>) -> Result<Kernel> {
    let format = SimpleDateFormat::new(DEFAULT)?;
    let constant = |arg: usize| call.text_literal(arg).map(Zone::lenient);
    let (from, to) = (constant(1), constant(2));
    Ok(arrays(move |c, _| {
        let s = c.column::<Text>(0)?;
        let (from_id, to_id) = (c.column::<Text>(1)?, c.column::<Text>(2)?);
        collect_text(c.rows, c.nulls().as_ref(), |i, out| {
            let from = from.unwrap_or_else(|| Zone::lenient(from_id.value(i)));
            let to = to.unwrap_or_else(|| Zone::lenient(to_id.value(i)));
            let millis = format.parse(s.value(i), from);
            Ok(millis.map(|millis| format.format(millis, to, out)))
        })
    }))
}

#[cfg(test)]
mod tests;
