//! Aggregate functions: types by Flink's rules, state in columns, retractable.
