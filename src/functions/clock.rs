//! Functions that read the clock or the watermark. All rows of a batch see the same moment.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::Call;
use super::signature::{Param, Returns};
use super::time_form::TimeForm;
use super::{EvalContext, Kernel};
use crate::error::{Error, Result};
use crate::types::calendar::utc_offset;
use crate::types::data_type::UTC;
use crate::types::{DataType, TypeKind};

const NONE: &[&[Param]] = &[&[]];

/// A function without arguments of the moment.
macro_rules! moment {
    ($name:literal, $signature:literal, $summary:literal, $kind:expr, $kernel:expr) => {
        Builtin::new(
            $name,
            $signature,
            $summary,
            Forms(NONE, Returns::NotNull($kind)),
            $kernel,
        )
        .dynamic()
    };
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    moment!("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "The moment.", TypeKind::TimestampLtz(3), instant),
    moment!("NOW", "NOW()", "The moment.", TypeKind::TimestampLtz(3), instant),
    moment!(
        "CURRENT_ROW_TIMESTAMP",
        "CURRENT_ROW_TIMESTAMP()",
        "The moment at which the row is computed.",
        TypeKind::TimestampLtz(3),
        instant
    ),
    moment!(
        "PROCTIME",
        "PROCTIME()",
        "The moment, as a processing-time attribute.",
        TypeKind::TimestampLtz(3),
        instant
    ),
    moment!(
        "LOCALTIMESTAMP",
        "LOCALTIMESTAMP",
        "What the session's clock shows.",
        TypeKind::Timestamp(3),
        |call| {
            Ok(local(call, |millis| {
                ScalarValue::TimestampMillisecond(Some(millis), None)
            }))
        }
    ),
    moment!(
        "CURRENT_DATE",
        "CURRENT_DATE",
        "The date in the session's zone.",
        TypeKind::Date,
        |call| {
            Ok(local(call, |millis| {
                ScalarValue::Date32(i32::try_from(millis.div_euclid(86_400_000)).ok())
            }))
        }
    ),
    moment!(
        "CURRENT_TIME",
        "CURRENT_TIME",
        "The time of the day in the session's zone.",
        TypeKind::Time(0),
        time_of_day
    ),
    moment!(
        "LOCALTIME",
        "LOCALTIME",
        "The time of the day in the session's zone.",
        TypeKind::Time(0),
        time_of_day
    ),
    Builtin::new(
        "SOURCE_WATERMARK",
        "WATERMARK FOR ts AS SOURCE_WATERMARK()",
        "The watermark that the connector makes itself; no connector here does.",
        Forms(NONE, Returns::Nullable(TypeKind::TimestampLtz(3))),
        |_| {
            Err(Error::plan(
                "SOURCE_WATERMARK() has no value of its own: it stands alone in a WATERMARK FOR clause, \
                 for a connector that makes watermarks itself",
            )
            .hint("no connector does: declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"))
        },
    )
    .dynamic(),
    Builtin::new(
        "CURRENT_WATERMARK",
        "CURRENT_WATERMARK(rowtime)",
        "The watermark of the operator; NULL before the first. Its argument is an event-time attribute.",
        Forms(
            &[&[Param::Timestamp]],
            Returns::By(|args: &[DataType]| match args[0].kind {
                TypeKind::TimestampLtz(_) => TypeKind::TimestampLtz(3).nullable(),
                _ => TypeKind::Timestamp(3).nullable(),
            }),
        ),
        |call| {
            let zone = match TimeForm::utc(&call.returns.kind) {
                Some(_) if matches!(call.returns.kind, TypeKind::TimestampLtz(_)) => Some(UTC.into()),
                _ => None,
            };
            Ok(Box::new(move |_, ctx| {
                let watermark = (ctx.watermark > i64::MIN).then_some(ctx.watermark);
                Ok(ColumnarValue::Scalar(ScalarValue::TimestampMillisecond(
                    watermark,
                    zone.clone(),
                )))
            }))
        },
    )
    .dynamic(),
];

fn instant(_: &Call<'_>) -> Result<Kernel> {
    Ok(Box::new(|_, ctx| {
        Ok(ColumnarValue::Scalar(ScalarValue::TimestampMillisecond(
            Some(ctx.now_ms),
            Some(UTC.into()),
        )))
    }))
}

/// A kernel of the milliseconds that the session's clock shows.
fn local(call: &Call<'_>, value: fn(i64) -> ScalarValue) -> Kernel {
    let zone = call.env.time_zone;
    Box::new(move |_, ctx: &EvalContext| {
        let offset = utc_offset(zone, ctx.now_ms.div_euclid(1000)) * 1000;
        Ok(ColumnarValue::Scalar(value(ctx.now_ms + offset)))
    })
}

fn time_of_day(call: &Call<'_>) -> Result<Kernel> {
    Ok(local(call, |millis| {
        let seconds = millis.rem_euclid(86_400_000) / 1000;
        ScalarValue::Time32Millisecond(i32::try_from(seconds * 1000).ok())
    }))
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use crate::functions::Environment;
    use crate::functions::testing::{Value, args, call_in, check};
    use crate::types::TypeKind;

    #[test]
    fn the_clock_is_that_of_the_context_and_the_zone() {
        let env = Environment {
            time_zone: chrono_tz::Asia::Tokyo,
            ..Environment::default()
        };
        let value = |name| call_in(name, &[], &env).map(|(_, value)| value);
        // 1_700_000_000_123 is 2023-11-14T22:13:20.123Z.
        assert_eq!(
            value("NOW").ok().as_deref(),
            Some("2023-11-14T22:13:20.123Z")
        );
        assert_eq!(
            value("LOCALTIMESTAMP").ok().as_deref(),
            Some("2023-11-15T07:13:20.123")
        );
        assert_eq!(value("CURRENT_DATE").ok().as_deref(), Some("2023-11-15"));
        assert_eq!(value("LOCALTIME").ok().as_deref(), Some("07:13:20"));
    }

    #[test]
    fn there_is_no_watermark_before_the_first() {
        let rowtime = Value(
            TypeKind::Timestamp(3).not_null(),
            ScalarValue::TimestampMillisecond(Some(0), None),
        );
        check("CURRENT_WATERMARK", args![&rowtime], "NULL");
    }
}
