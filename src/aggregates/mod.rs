//! Aggregate functions: types by Flink's rules, state in columns, retractable.
//!
//! [`resolve`] finds a function and its types when a call is bound. An operator holds the states of
//! all its calls in an [`AggregateSet`], addressed by slots that it gives out (see
//! [`crate::state::keys::KeyTable`]):
//!
//! - group aggregation traces rows: it sees the values before and after each,
//! - windows and bundles update slots, merge slices and read values when they are due,
//! - checkpoints save and load slots.
//!
//! A state is a few columns of numbers where that is enough, else a counted map or a list a slot. A
//! function is a kernel (what one row does to one slot) that is compiled into typed loops.

mod bitmap;
mod collect;
mod convert;
mod count;
mod distinct;
mod extreme;
mod first_last;
mod function;
mod json_object;
mod list;
mod resolve;
mod saved;
mod set;
mod single_value;
mod state;
mod sum;
mod user;
mod value;
mod variance;

pub use bitmap::{SetOperation, SetResult};
pub use function::{AggregateFunction, AggregateKind};
pub use resolve::{CallContext, NAMES, is_aggregate, resolve};
pub use set::{AggregateSet, SetInput};
pub use state::{AggregateInput, AggregateState};
pub use user::{UserAggregate, UserAggregateRef};
pub use variance::Spread;

/// A call of an aggregate function in an operator.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: AggregateFunction,
    /// Columns of the operator's input, of the types [`AggregateFunction::inputs`].
    pub args: Vec<usize>,
    /// A BOOLEAN column: only rows where it is true count.
    pub filter: Option<usize>,
    /// Whether equal arguments count once.
    pub distinct: bool,
}

#[cfg(test)]
mod tests;
