//! The interactive prompt.
