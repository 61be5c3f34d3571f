//! The pattern of a MATCH_RECOGNIZE clause.

/// What MATCH_RECOGNIZE looks for and gives.
#[derive(Debug, Clone)]
pub struct MatchSpec {}
