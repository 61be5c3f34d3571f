//! Records that are not there any more where the reading of a partition stands: it is said what was
//! lost, and `auto.offset.reset` says whether it goes on.
//!
//! librdkafka must not jump by itself: it would do so in silence.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::properties::OffsetReset;
use super::splits::{Enumerator, Partition};
use crate::error::{Error, Result};

/// Why a partition cannot be read from its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The broker refuses the offset.
    Refused,
    /// At this offset lies another record than was read.
    OtherRecord(i64),
}

/// Whether `error` says that an offset is not in the log.
pub(super) fn is_refusal(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(Code::AutoOffsetReset | Code::OffsetOutOfRange | Code::LogTruncation)
    )
}

/// Where `partition` is read on whose next record would have been `next`.
///
/// # Errors
/// When it must not be: records would be lost or read twice.
pub(super) fn go_on(
    enumerator: &Enumerator<'_>,
    partition: &Partition,
    next: i64,
    lost: Lost,
) -> Result<i64> {
    let (first, end) = enumerator.bounds(partition)?;
    let Partition { topic, id } = partition;
    let place = format!("topic '{topic}', partition {id}");
    let text = format!("{place}: {}", what_happened(lost, next, first, end));
    let (to, policy) = match enumerator.properties.offset_reset {
        Some(OffsetReset::Earliest) => (first, "earliest"),
        Some(OffsetReset::Latest) => (end, "latest"),
        None => {
            return Err(Error::connector(text).hint(
                "'properties.auto.offset.reset' = 'earliest' goes on with the oldest record that is \
                 there, 'latest' with the next that comes",
            ));
        }
    };
    tracing::warn!(
        "{text}; it goes on at offset {to} ('properties.auto.offset.reset' = '{policy}')"
    );
    Ok(to)
}

fn what_happened(lost: Lost, next: i64, first: i64, end: i64) -> String {
    const CAUSE: &str = "the log was cut off by an unclean election of a leader, or the topic was \
                         created again";
    match lost {
        Lost::OtherRecord(offset) => {
            format!("at offset {offset} lies another record than was read: {CAUSE}")
        }
        Lost::Refused if next < first => format!(
            "the records from offset {next} on were deleted before they were read; the first that is \
             left is {first}, {} are lost",
            first - next
        ),
        Lost::Refused if next > end => {
            format!(
                "the next record would be that of offset {next}, but the log ends at {end}: {CAUSE}"
            )
        }
        Lost::Refused => format!("the log in front of offset {next} is not what was read: {CAUSE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_what_was_lost() {
        let refused = |next| what_happened(Lost::Refused, next, 20, 30);
        assert!(refused(12).contains("the first that is left is 20, 8 are lost"));
        assert!(refused(31).contains("offset 31, but the log ends at 30"));
        assert!(refused(25).contains("in front of offset 25"));
        let other = what_happened(Lost::OtherRecord(24), 25, 20, 30);
        assert!(
            other.contains("at offset 24 lies another record"),
            "{other}"
        );
    }

    #[test]
    fn other_errors_are_no_refusals() {
        let error = |code| KafkaError::MessageConsumption(code);
        assert!(is_refusal(&error(RDKafkaErrorCode::AutoOffsetReset)));
        assert!(!is_refusal(&error(
            RDKafkaErrorCode::BrokerTransportFailure
        )));
    }
}
