//! Evaluates expressions on batches.
