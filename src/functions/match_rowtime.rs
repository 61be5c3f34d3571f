//! `MATCH_ROWTIME()` over instants: the time of the match as a clock in UTC shows it.

use std::sync::Arc;

use super::operators::converted;
use super::{Arg, FunctionRef, Kernel, ScalarFunction, Signature};
use crate::error::{Error, Result};
use crate::types::cast::{Cast, CastMode, Environment};
use crate::types::{DataType, TypeKind};

/// The function that the binder puts around the time of a match's last row.
pub(crate) fn match_rowtime() -> FunctionRef {
    Arc::new(MatchRowtime)
}

#[derive(Debug)]
struct MatchRowtime;

impl ScalarFunction for MatchRowtime {
    fn name(&self) -> &'static str {
        "MATCH_ROWTIME"
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let [time] = args else {
            return Err(Error::internal("MATCH_ROWTIME takes one instant"));
        };
        Ok(Signature {
            args: vec![time.data_type.clone()],
            returns: TypeKind::Timestamp(3).with_nullable(time.data_type.nullable),
        })
    }

    fn prepare(&self, args: &[Arg], returns: &DataType, _: &Environment) -> Result<Kernel> {
        let [time] = args else {
            return Err(Error::internal("MATCH_ROWTIME takes one instant"));
        };
        let utc = Environment::default();
        let cast = Cast::new(&time.data_type, returns, CastMode::Strict, &utc)?;
        Ok(converted(Box::new(|args, _| Ok(args[0].clone())), cast))
    }
}
