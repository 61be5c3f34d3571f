//! The shape of a built-in: a constant that says its name, forms, result type, kernel and
//! description, so that a simple function is a few lines in the file of its topic.

use std::fmt;
use std::sync::Arc;

use super::doc::{FunctionDoc, FunctionKind};
use super::kernel::Call;
use super::signature::{Param, Returns, match_forms};
use super::{Arg, Determinism, Environment, FunctionRef, Kernel, ScalarFunction, Signature};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// How the types of a call are found.
pub(super) enum Resolve {
    /// One of several lists of parameters, and one rule for the result.
    Forms(&'static [&'static [Param]], Returns),
    /// By code. The refusal of a call that does not fit is made by [`Builtin::refuse`].
    Custom(fn(&Builtin, &[Arg]) -> Result<Signature>),
}

/// A built-in scalar function.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// One form a line, names and types of the parameters.
    pub(super) signature: &'static str,
    pub(super) summary: &'static str,
    pub(super) example: (&'static str, &'static str),
    pub(super) resolve: Resolve,
    pub(super) prepare: fn(&Call<'_>) -> Result<Kernel>,
    pub(super) determinism: Determinism,
    pub(super) may_fail: bool,
    /// From which argument on NULL may stand without a type.
    pub(super) null_from: usize,
}

impl Builtin {
    /// A deterministic function that fails on no data.
    pub(super) const fn new(
        name: &'static str,
        signature: &'static str,
        summary: &'static str,
        resolve: Resolve,
        prepare: fn(&Call<'_>) -> Result<Kernel>,
    ) -> Self {
        Self {
            name,
            signature,
            summary,
            example: ("", ""),
            resolve,
            prepare,
            determinism: Determinism::Deterministic,
            may_fail: false,
            null_from: usize::MAX,
        }
    }

    /// With an example and what it gives.
    pub(super) const fn example(mut self, example: &'static str, result: &'static str) -> Self {
        self.example = (example, result);
        self
    }

    /// The same function under another name.
    pub(super) const fn alias(mut self, name: &'static str, signature: &'static str) -> Self {
        self.name = name;
        self.signature = signature;
        self
    }

    /// It depends on the clock or the watermark.
    pub(super) const fn dynamic(mut self) -> Self {
        self.determinism = Determinism::Dynamic;
        self
    }

    /// It differs from call to call.
    pub(super) const fn random(mut self) -> Self {
        self.determinism = Determinism::Random;
        self
    }

    /// NULL may stand without a type for argument `index` and those behind it.
    pub(super) const fn null_from(mut self, index: usize) -> Self {
        self.null_from = index;
        self
    }

    /// It can fail on data.
    pub(super) const fn may_fail(mut self) -> Self {
        self.may_fail = true;
        self
    }

    /// What a person reads.
    pub(super) fn doc(&self, topic: &'static str) -> FunctionDoc {
        FunctionDoc::new(FunctionKind::Scalar, topic, self.signature, self.summary)
            .example(self.example.0, self.example.1)
    }

    /// As the registry hands it out.
    pub(super) fn function(&'static self) -> FunctionRef {
        Arc::new(self)
    }
}

/// The refusal of NULL where its type matters.
pub(crate) fn untyped_null() -> Error {
    Error::plan("Illegal use of 'NULL'").hint("give it a type: CAST(NULL AS ...)")
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ScalarFunction for &'static Builtin {
    fn name(&self) -> &str {
        self.name
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let typed = &args[..args.len().min(self.null_from)];
        if typed.iter().any(|arg| arg.data_type.kind == TypeKind::Null) {
            return Err(untyped_null());
        }
        match &self.resolve {
            Resolve::Forms(forms, returns) => match_forms(self, forms, returns, args),
            Resolve::Custom(resolve) => resolve(self, args),
        }
    }

    fn prepare(&self, args: &[Arg], returns: &DataType, env: &Environment) -> Result<Kernel> {
        (self.prepare)(&Call {
            name: self.name,
            args,
            returns,
            env,
        })
    }

    fn determinism(&self, args: usize) -> Determinism {
        // UNIX_TIMESTAMP reads the clock only when it has nothing else to read.
        if self.name == "UNIX_TIMESTAMP" && args > 0 {
            return Determinism::Deterministic;
        }
        self.determinism
    }

    fn may_fail(&self) -> bool {
        self.may_fail
    }

    fn may_fail_on(&self, args: &[Arg]) -> bool {
        // Only a VARIANT may be of the wrong kind for an index.
        let of_variant = || matches!(args, [of, ..] if of.data_type.kind == TypeKind::Variant);
        self.may_fail && (self.name != "ITEM" || of_variant())
    }
}
