//! `RAND`, `RAND_INTEGER` and `UUID`. With a seed the numbers are those of `java.util.Random`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{Call, Columns, Double, Int, Write, collect_text};
use super::signature::{Param, Returns};
use super::{EvalContext, Kernel};
use crate::error::{Error, Result};
use crate::types::TypeKind;

/// `java.util.Random`.
struct JavaRandom(u64);

impl JavaRandom {
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> Self {
        Self((seed.cast_unsigned() ^ 0x5_DEEC_E66D) & Self::MASK)
    }

    fn from_system() -> Result<Self> {
        let seed = getrandom::u64()
            .map_err(|e| Error::execution(format!("the system has no random numbers: {e}")))?;
        Ok(Self(seed & Self::MASK))
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & Self::MASK;
        (self.0 >> (48 - bits)) as i32
    }

    fn double(&mut self) -> f64 {
        let high = i64::from(self.next(26)) << 27;
        let low = i64::from(self.next(27));
        (high + low) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, bound: i32) -> Result<i32> {
        if bound <= 0 {
            return Err(Error::execution("bound must be positive"));
        }
        if bound & (bound - 1) == 0 {
            return Ok(((i64::from(bound) * i64::from(self.next(31))) >> 31) as i32);
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return Ok(value);
            }
        }
    }
}

/// Where the numbers of a call come from.
enum Generator {
    /// One generator for all rows.
    Shared(Mutex<JavaRandom>),
    /// A new one for each row, seeded by the first argument.
    PerRow,
}

impl Generator {
    fn new(call: &Call<'_>, seeded: bool) -> Result<Self> {
        if !seeded {
            return Ok(Self::Shared(Mutex::new(JavaRandom::from_system()?)));
        }
        Ok(match call.args[0].literal {
            Some(ScalarValue::Int32(Some(seed))) => {
                Self::Shared(Mutex::new(JavaRandom::new(i64::from(seed))))
            }
            _ => Self::PerRow,
        })
    }

    /// Draws for every row; `columns` holds the arguments, the seed first if there is one.
    fn draw<O: Write>(
        &self,
        columns: &Columns,
        ctx: &EvalContext,
        to: &ArrowType,
        mut f: impl FnMut(&mut JavaRandom, usize) -> Result<O::Item>,
    ) -> Result<ColumnarValue> {
        // Constants have one row, the result has one for each row of the batch.
        let nulls = columns.nulls().filter(|nulls| nulls.len() == ctx.rows);
        let array = match self {
            Self::Shared(generator) => {
                let mut generator = generator.lock().unwrap_or_else(PoisonError::into_inner);
                O::collect(ctx.rows, nulls.as_ref(), to, |i| {
                    f(&mut generator, i).map(Some)
                })?
            }
            Self::PerRow => {
                let seeds = columns.column::<Int>(0)?;
                O::collect(ctx.rows, nulls.as_ref(), to, |i| {
                    let Some(seed) = seeds.get(i) else {
                        return Ok(None);
                    };
                    f(&mut JavaRandom::new(i64::from(seed)), i).map(Some)
                })?
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "RAND",
        "RAND([seed INT])",
        "A random number of 0.0 up to 1.0.",
        Forms(&[&[], &[Param::Int]], Returns::Strict(TypeKind::Double)),
        |call| {
            let generator = Generator::new(call, call.args.len() == 1)?;
            Ok(Box::new(move |args, ctx| {
                let columns = Columns::new(args, ctx)?;
                generator.draw::<Double>(&columns, ctx, &ArrowType::Float64, |random, _| {
                    Ok(random.double())
                })
            }))
        },
    )
    .random()
    .example("RAND(1)", "0.7308781907032909"),
    Builtin::new(
        "RAND_INTEGER",
        "RAND_INTEGER([seed INT, ] bound INT)",
        "A random integer of 0 up to the bound.",
        Forms(
            &[&[Param::Int], &[Param::Int, Param::Int]],
            Returns::Strict(TypeKind::Int),
        ),
        prepare_integer,
    )
    .random()
    .may_fail()
    .example("RAND_INTEGER(1, 100)", "85"),
    Builtin::new(
        "UUID",
        "UUID()",
        "A random universally unique identifier.",
        Forms(&[&[]], Returns::NotNull(TypeKind::Char(36))),
        |_| {
            let bits = Mutex::new(Xoshiro256PlusPlus::from_seed(system_seed()?));
            Ok(Box::new(move |_, ctx| {
                let mut bits = bits.lock().unwrap_or_else(PoisonError::into_inner);
                let array = collect_text(ctx.rows, None, |_, out| {
                    write_uuid(bits.next_u64(), bits.next_u64(), out);
                    Ok(Some(()))
                })?;
                Ok(ColumnarValue::Array(Arc::new(array)))
            }))
        },
    )
    .random(),
];

fn prepare_integer(call: &Call<'_>) -> Result<Kernel> {
    let seeded = call.args.len() == 2;
    let generator = Generator::new(call, seeded)?;
    Ok(Box::new(move |args, ctx| {
        let columns = Columns::new(args, ctx)?;
        let bound = columns.column::<Int>(usize::from(seeded))?;
        generator.draw::<Int>(&columns, ctx, &ArrowType::Int32, |random, i| {
            random.below(bound.value(i))
        })
    }))
}

fn system_seed() -> Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|e| Error::execution(format!("the system has no random numbers: {e}")))?;
    Ok(seed)
}

/// A version 4 identifier of random bits.
fn write_uuid(high: u64, low: u64, out: &mut String) {
    use std::fmt::Write as _;
    let high = high & !0xF000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let _ = write!(
        out,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_javas_numbers() {
        let mut random = JavaRandom::new(1);
        let first: Vec<f64> = (0..3).map(|_| random.double()).collect();
        assert_eq!(
            first,
            [0.7308781907032909, 0.41008081149220166, 0.20771484130971707]
        );
        let mut random = JavaRandom::new(1);
        let first: Vec<_> = (0..3).map(|_| random.below(100).ok()).collect();
        assert_eq!(first, [Some(85), Some(88), Some(47)]);
        assert!(random.below(0).is_err());
    }

    #[test]
    fn identifiers_are_of_version_4() {
        let mut out = String::new();
        write_uuid(u64::MAX, u64::MAX, &mut out);
        assert_eq!(out, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
