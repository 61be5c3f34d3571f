use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringArray};
use datafusion::common::ScalarValue;

use super::*;
use crate::functions::Arg;
use crate::operators::group_aggregate::{GroupAggregate, GroupAggregateSpec};
use crate::operators::testing::{Harness, schema};
use crate::types::{Column, DataType, Schema, TypeKind};

/// Calls from text over the columns of `input`: `SUM(v)`, `LISTAGG(DISTINCT s, '-') FILTER ok`,
/// `PERCENTILE(v, 0.5)`.
fn call(text: &str, input: &Schema, grouped: bool) -> AggregateCall {
    let (text, filter) = match text.split_once(" FILTER ") {
        Some((text, filter)) => (text, Some(input.index_of(filter).unwrap())),
        None => (text, None),
    };
    let (name, args) = text.trim_end_matches(')').split_once('(').unwrap();
    let distinct = args.starts_with("DISTINCT ");
    let mut columns = Vec::new();
    let mut arguments = Vec::new();
    for arg in args.trim_start_matches("DISTINCT ").split(", ") {
        let column = input.index_of(arg);
        let (data_type, literal) = if arg.is_empty() {
            continue;
        } else if let Some(column) = column {
            (input.columns[column].data_type.clone(), None)
        } else if let Some(text) = arg.strip_prefix('\'') {
            let text = text.trim_end_matches('\'');
            (TypeKind::STRING.not_null(), Some(ScalarValue::from(text)))
        } else {
            let number: f64 = arg.parse().unwrap();
            (TypeKind::Double.not_null(), Some(ScalarValue::from(number)))
        };
        columns.push(column);
        arguments.push(Arg { data_type, literal });
    }
    let context = CallContext {
        grouped,
        filtered: filter.is_some(),
        distinct,
    };
    let function = resolve(name, &arguments, context).unwrap();
    let args = function.positions().iter().map(|i| columns[*i].unwrap());
    AggregateCall {
        args: args.collect(),
        function,
        filter,
        distinct,
    }
}

/// `SELECT k, calls FROM input GROUP BY k`, with the types that the calls have.
fn query(input: &str, calls: &[&str], retracting: bool) -> Harness {
    let columns = schema(input);
    let calls: Vec<_> = calls.iter().map(|c| call(c, &columns, true)).collect();
    let mut output = vec![columns.columns[0].clone()];
    for call in &calls {
        output.push(Column::new("x", call.function.returns().clone()));
    }
    let spec = GroupAggregateSpec {
        input_types: columns.types(),
        group_keys: vec![0],
        aggregates: calls,
        input_retracts: retracting,
        emit_update_before: true,
        ttl_ms: None,
        mini_batch: None,
        output: Schema::new(output.clone()),
    };
    let mut harness = Harness::new(input, input, move |context| {
        GroupAggregate::new(spec.clone(), context)
    });
    harness.output = Schema::new(output);
    harness
}

#[test]
fn the_neighbour_takes_the_place_of_a_withdrawn_first_or_last_value() {
    let harness = query(
        "k STRING, v INT",
        &["FIRST_VALUE(v)", "LAST_VALUE(v)", "COUNT()"],
        true,
    );
    harness.check(
        r"+I|a|1
          +I|a|2
          +I|a|1
          -D|a|1
          +I|a|3
          -D|a|3
          -U|a|2
          +U|a|5
          -D|a|1
          -D|a|5
          +I|a|\N",
        "+I[a, 1, 1, 1]
         -U[a, 1, 1, 1]
         +U[a, 1, 2, 2]
         -U[a, 1, 2, 2]
         +U[a, 1, 1, 3]
         -U[a, 1, 1, 3]
         +U[a, 2, 1, 2]
         -U[a, 2, 1, 2]
         +U[a, 2, 3, 3]
         -U[a, 2, 3, 3]
         +U[a, 2, 1, 2]
         -U[a, 2, 1, 2]
         +U[a, 1, 1, 1]
         -U[a, 1, 1, 1]
         +U[a, 1, 5, 2]
         -U[a, 1, 5, 2]
         +U[a, 5, 5, 1]
         -D[a, 5, 5, 1]
         +I[a, null, null, 1]",
    );
}

#[test]
fn insertions_alone_keep_one_value() {
    let calls = ["FIRST_VALUE(d)", "LAST_VALUE(d)", "MIN(d)", "MAX(d)"];
    // NaN never displaces another value, and differs from itself.
    query("k STRING, d DOUBLE", &calls, false).check(
        r"+I|a|\N
          +I|a|1.5
          +I|a|NaN
          +I|a|-2
          +I|b|NaN
          +I|b|1",
        "+I[a, null, null, null, null]
         -U[a, null, null, null, null]
         +U[a, 1.5, 1.5, 1.5, 1.5]
         -U[a, 1.5, 1.5, 1.5, 1.5]
         +U[a, 1.5, NaN, 1.5, 1.5]
         -U[a, 1.5, NaN, 1.5, 1.5]
         +U[a, 1.5, -2.0, -2.0, 1.5]
         +I[b, NaN, NaN, NaN, NaN]
         -U[b, NaN, NaN, NaN, NaN]
         +U[b, NaN, 1.0, NaN, NaN]",
    );
    query("k STRING, d DOUBLE", &["MIN(d)", "MAX(d)"], true).check(
        "+I|a|NaN
         +I|a|1
         +I|a|NaN
         -D|a|NaN",
        "+I[a, NaN, NaN]
         -U[a, NaN, NaN]
         +U[a, 1.0, NaN]
         -U[a, 1.0, NaN]
         +U[a, 1.0, NaN]
         -U[a, 1.0, NaN]
         +U[a, 1.0, NaN]",
    );
}

#[test]
fn extremes_of_all_kinds_fall_back_to_the_next_value() {
    let input = "k STRING, s STRING, b BOOLEAN, t TIMESTAMP(3), m DECIMAL(8,3)";
    let calls = ["MIN(s)", "MAX(s)", "MAX(b)", "MIN(t)", "MAX(m)"];
    query(input, &calls, true).check(
        r"+I|a|b|false|2024-01-01T00:00:00|1.5
          +I|a|ä|true|2024-01-02T00:00:00|-2
          +I|a|B|\N|2023-12-31T23:59:59.999|10
          -D|a|B|\N|2023-12-31T23:59:59.999|10
          -D|a|ä|true|2024-01-02T00:00:00|-2",
        "+I[a, b, b, false, 2024-01-01T00:00, 1.500]
         -U[a, b, b, false, 2024-01-01T00:00, 1.500]
         +U[a, b, ä, true, 2024-01-01T00:00, 1.500]
         -U[a, b, ä, true, 2024-01-01T00:00, 1.500]
         +U[a, B, ä, true, 2023-12-31T23:59:59.999, 10.000]
         -U[a, B, ä, true, 2023-12-31T23:59:59.999, 10.000]
         +U[a, b, ä, true, 2024-01-01T00:00, 1.500]
         -U[a, b, ä, true, 2024-01-01T00:00, 1.500]
         +U[a, b, b, false, 2024-01-01T00:00, 1.500]",
    );
}

#[test]
fn sums_and_means_have_the_width_of_their_type() {
    let calls = ["SUM(t)", "AVG(t)", "SUM(i)", "AVG(i)", "SUM(b)", "$SUM0(b)"];
    query("k STRING, t TINYINT, i INT, b BIGINT", &calls, true).check(
        r"+I|a|100|2147483647|9223372036854775807
          +I|a|27|1|1
          +I|a|1|1|1
          -D|a|1|1|1
          -D|a|27|1|1
          -D|a|100|2147483647|9223372036854775807
          +I|a|\N|\N|\N",
        "+I[a, 100, 100, 2147483647, 2147483647, 9223372036854775807, 9223372036854775807]
         -U[a, 100, 100, 2147483647, 2147483647, 9223372036854775807, 9223372036854775807]
         +U[a, 127, 63, -2147483648, 1073741824, -9223372036854775808, -9223372036854775808]
         -U[a, 127, 63, -2147483648, 1073741824, -9223372036854775808, -9223372036854775808]
         +U[a, -128, 42, -2147483647, 715827883, -9223372036854775807, -9223372036854775807]
         -U[a, -128, 42, -2147483647, 715827883, -9223372036854775807, -9223372036854775807]
         +U[a, 127, 63, -2147483648, 1073741824, -9223372036854775808, -9223372036854775808]
         -U[a, 127, 63, -2147483648, 1073741824, -9223372036854775808, -9223372036854775808]
         +U[a, 100, 100, 2147483647, 2147483647, 9223372036854775807, 9223372036854775807]
         -D[a, 100, 100, 2147483647, 2147483647, 9223372036854775807, 9223372036854775807]
         +I[a, null, null, null, null, null, 0]",
    );
}

#[test]
fn floating_point_sums_are_rounded_to_their_type() {
    let calls = ["SUM(f)", "AVG(f)", "SUM(d)", "AVG(d)"];
    query("k STRING, f FLOAT, d DOUBLE", &calls, true).check(
        "+I|a|0.1|0.1
         +I|a|0.2|0.2
         +I|a|0.7|0.7
         -D|a|0.1|0.1",
        "+I[a, 0.1, 0.1, 0.1, 0.1]
         -U[a, 0.1, 0.1, 0.1, 0.1]
         +U[a, 0.3, 0.15, 0.30000000000000004, 0.15000000000000002]
         -U[a, 0.3, 0.15, 0.30000000000000004, 0.15000000000000002]
         +U[a, 1.0, 0.33333334, 1.0, 0.3333333333333333]
         -U[a, 1.0, 0.33333334, 1.0, 0.3333333333333333]
         +U[a, 0.9, 0.45, 0.9, 0.45]",
    );
}

#[test]
fn a_decimal_sum_is_null_while_it_does_not_fit() {
    let calls = ["SUM(m)", "AVG(m)", "AVG(n)"];
    query("k STRING, m DECIMAL(38,2), n DECIMAL(20,8)", &calls, true).check(
        "+I|a|999999999999999999999999999999999999.99|1.00000001
         +I|a|0.01|1.00000002
         +I|a|5.00|0.33333333
         -D|a|999999999999999999999999999999999999.99|1.00000001",
        "+I[a, 999999999999999999999999999999999999.99, null, 1.00000001]
         -U[a, 999999999999999999999999999999999999.99, null, 1.00000001]
         +U[a, null, null, 1.00000002]
         -U[a, null, null, 1.00000002]
         +U[a, null, null, 0.77777779]
         -U[a, null, null, 0.77777779]
         +U[a, 5.01, 2.505000, 0.66666668]",
    );
}

#[test]
fn spreads_have_the_type_of_a_mean_and_show_every_change_below() {
    let calls = [
        "STDDEV_POP(d)",
        "STDDEV_POP(f)",
        "STDDEV_POP(i)",
        "VAR_POP(m)",
        "VAR_SAMP(s)",
    ];
    let input = "k STRING, d DOUBLE, f FLOAT, i INT, m DECIMAL(6,2), s SMALLINT";
    query(input, &calls, true).check(
        "+I|a|0.1|0.1|3|1.25|300
         +I|a|0.2|0.2|4|1.26|400
         +I|a|0.7|0.7|9|9.99|999
         -D|a|0.1|0.1|3|1.25|300",
        "+I[a, 0.0, 0.0, 0, 0.000000, null]
         -U[a, 0.0, 0.0, 0, 0.000000, null]
         +U[a, 0.049999999999999996, 0.05, 0, 0.000025, 5000]
         -U[a, 0.049999999999999996, 0.05, 0, 0.000025, 5000]
         +U[a, 0.262466929133727, 0.26246694, 2, 16.955622, 11828]
         -U[a, 0.262466929133727, 0.26246694, 2, 16.955622, 11828]
         +U[a, 0.24999999999999992, 0.25, 2, 19.053225, -17208]",
    );
    query("k STRING, d DOUBLE", &["VAR_POP(d)"], true).check(
        r"+I|a|1
          +I|a|1
          +I|a|\N",
        "+I[a, 0.0]
         -U[a, 0.0]
         +U[a, 0.0]",
    );
}

#[test]
fn lists_keep_the_order_of_arrival() {
    let input = "k STRING, v INT, s STRING, ok BOOLEAN";
    let calls = [
        "LISTAGG(s)",
        "LISTAGG(DISTINCT s, '-')",
        "LISTAGG(s) FILTER ok",
        "ARRAY_AGG(v)",
        "ARRAY_AGG(DISTINCT v, 'IGNORE NULLS')",
        "JSON_ARRAYAGG('NULL', s)",
        "JSON_ARRAYAGG('ABSENT', s)",
    ];
    query(input, &calls, true).check(
        r"+I|a|1|x|true
          +I|a|\N|\N|false
          +I|a|1|x|false
          +I|a|2|y|true
          -D|a|1|x|true
          -D|a|\N|\N|false
          -D|a|9|z|true",
        r"+I[a, x, x, x, [1], [1], [x], [x]]
          -U[a, x, x, x, [1], [1], [x], [x]]
          +U[a, x, x, x, [1, null], [1], [x,null], [x]]
          -U[a, x, x, x, [1, null], [1], [x,null], [x]]
          +U[a, x,x, x, x, [1, null, 1], [1], [x,null,x], [x,x]]
          -U[a, x,x, x, x, [1, null, 1], [1], [x,null,x], [x,x]]
          +U[a, x,x,y, x-y, x,y, [1, null, 1, 2], [1, 2], [x,null,x,y], [x,x,y]]
          -U[a, x,x,y, x-y, x,y, [1, null, 1, 2], [1, 2], [x,null,x,y], [x,x,y]]
          +U[a, x,y, x-y, y, [null, 1, 2], [1, 2], [null,x,y], [x,y]]
          -U[a, x,y, x-y, y, [null, 1, 2], [1, 2], [null,x,y], [x,y]]
          +U[a, x,y, x-y, y, [1, 2], [1, 2], [x,y], [x,y]]",
    );
}

#[test]
fn multisets_objects_and_percentiles_follow_withdrawals() {
    let input = "k STRING, s STRING, v INT, n INT, j STRING";
    let calls = [
        "COLLECT(v)",
        "PERCENTILE(v, 0.25)",
        "PERCENTILE(v, 0.5, n)",
        "JSON_OBJECTAGG('NULL', s, j)",
        "JSON_OBJECTAGG('ABSENT', s, j)",
    ];
    query(input, &calls, true).check(
        r#"+I|a|x|10|1|1
           +I|a|b"|20|3|"q"
           +I|a|z|\N|5|\N
           +I|a|y|40|0|4
           -D|a|x|10|1|1
           +I|a|x|40|-1|5"#,
        r#"+I[a, {10=1}, 10.0, 10.0, {"x":1}, {"x":1}]
           -U[a, {10=1}, 10.0, 10.0, {"x":1}, {"x":1}]
           +U[a, {20=1, 10=1}, 12.5, 20.0, {"b\"":"q","x":1}, {"b\"":"q","x":1}]
           -U[a, {20=1, 10=1}, 12.5, 20.0, {"b\"":"q","x":1}, {"b\"":"q","x":1}]
           +U[a, {20=1, 10=1}, 12.5, 20.0, {"b\"":"q","x":1,"z":null}, {"b\"":"q","x":1}]
           -U[a, {20=1, 10=1}, 12.5, 20.0, {"b\"":"q","x":1,"z":null}, {"b\"":"q","x":1}]
           +U[a, {20=1, 40=1, 10=1}, 15.0, 20.0, {"b\"":"q","x":1,"y":4,"z":null}, {"b\"":"q","x":1,"y":4}]
           -U[a, {20=1, 40=1, 10=1}, 15.0, 20.0, {"b\"":"q","x":1,"y":4,"z":null}, {"b\"":"q","x":1,"y":4}]
           +U[a, {20=1, 40=1}, 25.0, 20.0, {"b\"":"q","y":4,"z":null}, {"b\"":"q","y":4}]
           -U[a, {20=1, 40=1}, 25.0, 20.0, {"b\"":"q","y":4,"z":null}, {"b\"":"q","y":4}]
           +U[a, {20=1, 40=2}, 30.0, 20.0, {"b\"":"q","x":5,"y":4,"z":null}, {"b\"":"q","x":5,"y":4}]"#,
    );
}

#[test]
fn a_second_row_or_key_is_refused_where_there_may_be_only_one() {
    let harness = query("k STRING, v INT", &["SINGLE_VALUE(v)"], true);
    harness.check(
        "+I|a|3
         -U|a|3
         +U|a|4
         -D|a|4
         +I|a|5",
        "+I[a, 3]
         -D[a, 3]
         +I[a, 4]
         -D[a, 4]
         +I[a, 5]",
    );
    harness.check(
        "+I|a|5
         @flush
         +I|a|6",
        "+I[a, 5]
         ERROR SingleValueAggFunction received more than one element.",
    );
    query("k STRING, s STRING", &["JSON_OBJECTAGG('NULL', s, s)"], true).check(
        "+I|a|x
         @flush
         +I|a|x",
        r#"+I[a, {"x":x}]
           ERROR Key 'x' is already present. Duplicate keys are not allowed in JSON_OBJECTAGG. Please ensure that keys are unique."#,
    );
}

/// Every aggregate, fed to slices that are merged, agrees with one that saw all rows.
#[test]
fn merged_slices_are_as_good_as_one() {
    let input = schema("k STRING, v INT, s STRING, d DOUBLE, ok BOOLEAN");
    let by_value = [
        "COUNT()",
        "COUNT(v)",
        "COUNT(DISTINCT v)",
        "SUM(DISTINCT v) FILTER ok",
        "SUM(v)",
        "AVG(v)",
        "MIN(v)",
        "MAX(s)",
        "COLLECT(v)",
        "PERCENTILE(v, 0.3)",
        "BITMAP_BUILD_AGG(v)",
        "BITMAP_BUILD_CARDINALITY_AGG(v)",
    ];
    // Which of equal values is withdrawn makes a difference for these.
    let by_arrival = [
        "FIRST_VALUE(s)",
        "LAST_VALUE(s)",
        "LISTAGG(s)",
        "ARRAY_AGG(v)",
        "JSON_ARRAYAGG('NULL', s)",
    ];
    for retracting in [false, true] {
        let calls: Vec<_> = by_value
            .iter()
            .chain(by_arrival.iter().filter(|_| !retracting))
            .map(|text| call(text, &input, true))
            .collect();
        let mut set = AggregateSet::new(&calls, retracting).unwrap();
        set.resize(5);
        let mut state = 7_u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        // Rows for slices 1, 2 and 3, in this order, and all of them for slot 0.
        for slice in 1..=3_u32 {
            let rows = 40;
            let numbers: Vec<Option<i32>> = (0..rows)
                .map(|_| (random(8) > 0).then(|| i32::try_from(random(6)).unwrap()))
                .collect();
            let texts: Vec<Option<String>> =
                numbers.iter().map(|v| v.map(|v| format!("t{v}"))).collect();
            let mut weights: Vec<i8> = vec![1; rows];
            if retracting {
                // Withdraw, in the second half, some rows of the first.
                for weight in &mut weights[rows / 2..] {
                    *weight = if random(2) == 0 { -1 } else { 1 };
                }
            }
            let pick: Vec<usize> = (0..rows)
                .map(|i| if weights[i] < 0 { i - rows / 2 } else { i })
                .collect();
            let numbers: ArrayRef =
                Arc::new(Int32Array::from_iter(pick.iter().map(|i| numbers[*i])));
            let texts: ArrayRef = Arc::new(StringArray::from_iter(
                pick.iter().map(|i| texts[*i].clone()),
            ));
            let ok: ArrayRef = Arc::new(arrow::array::BooleanArray::from_iter(
                pick.iter().map(|i| Some(i % 3 > 0)),
            ));
            let columns = vec![
                Arc::clone(&texts),
                Arc::clone(&numbers),
                Arc::clone(&texts),
                numbers,
                ok,
            ];
            for slot in [0, slice] {
                set.update(&SetInput {
                    slots: &vec![slot; rows],
                    weights: retracting.then_some(&weights),
                    ends: None,
                    columns: &columns,
                })
                .unwrap();
            }
        }
        for slice in 1..=3 {
            set.merge(4, slice).unwrap();
        }
        assert_eq!(set.values(&[0]).unwrap(), set.values(&[4]).unwrap());
        let saved = set.save(&[4, 2]).unwrap();
        let mut restored = AggregateSet::new(&calls, retracting).unwrap();
        restored.resize(2);
        restored.load(&[1, 0], &saved).unwrap();
        assert_eq!(
            restored.values(&[1, 0]).unwrap(),
            set.values(&[4, 2]).unwrap()
        );
        restored.clear(1);
        restored.merge(1, 0).unwrap();
        assert_eq!(restored.values(&[1]).unwrap(), set.values(&[2]).unwrap());
    }
}

fn refusal(name: &str, types: &[TypeKind]) -> String {
    let args: Vec<Arg> = types
        .iter()
        .map(|kind| Arg {
            data_type: kind.clone().nullable(),
            literal: None,
        })
        .collect();
    let context = CallContext {
        grouped: false,
        filtered: false,
        distinct: name.starts_with("DISTINCT "),
    };
    let error = resolve(name.trim_start_matches("DISTINCT "), &args, context).unwrap_err();
    error.message().to_string()
}

#[test]
fn refusals_are_those_of_flink() {
    let array = TypeKind::Array(Box::new(TypeKind::Int.nullable()));
    for (name, types, expected) in [
        (
            "sum",
            vec![TypeKind::Char(3)],
            "Cannot apply 'SUM' to arguments of type 'SUM(<CHAR(3)>)'. Supported form(s): 'SUM(<NUMERIC>)'",
        ),
        (
            "MAX",
            vec![array.clone()],
            "Max aggregate function does not support type: ''ARRAY''.\nPlease re-check the data type.",
        ),
        (
            "MIN",
            vec![TypeKind::BYTES],
            "Min aggregate function does not support type: ''VARBINARY''.\nPlease re-check the data type.",
        ),
        (
            "COUNT",
            vec![TypeKind::Int, TypeKind::Int],
            "We now only support the count of one field.",
        ),
        (
            "DISTINCT COUNT",
            vec![TypeKind::Row(Vec::new())],
            "Distinct aggregate function does not support type: ROW.\nPlease re-check the data type.",
        ),
        (
            "LISTAGG",
            vec![TypeKind::STRING, TypeKind::STRING],
            "Argument to function 'LISTAGG' must be a literal",
        ),
        (
            "AVG",
            vec![],
            "Invalid number of arguments to function 'AVG'. Was expecting 1 arguments",
        ),
        (
            "PERCENTILE",
            vec![TypeKind::Int, TypeKind::Double],
            "Invalid input arguments.",
        ),
        (
            "ANY_VALUE",
            vec![TypeKind::Int],
            "No match found for function signature ANY_VALUE(<NUMERIC>)",
        ),
    ] {
        assert_eq!(refusal(name, &types), expected);
    }
}

#[test]
fn types_are_those_of_flink() {
    let returns = |name: &str, argument: DataType, grouped: bool, filtered: bool| {
        let arg = Arg {
            data_type: argument,
            literal: None,
        };
        let context = CallContext {
            grouped,
            filtered,
            distinct: false,
        };
        let function = resolve(name, &[arg], context).unwrap();
        function.returns().to_string()
    };
    let int = TypeKind::Int.not_null();
    let decimal = TypeKind::Decimal(6, 2).not_null();
    assert_eq!(returns("SUM", int.clone(), true, false), "INT NOT NULL");
    assert_eq!(returns("SUM", int.clone(), false, false), "INT");
    assert_eq!(returns("SUM", int.clone(), true, true), "INT");
    assert_eq!(
        returns("SUM", decimal.clone(), false, false),
        "DECIMAL(38, 2)"
    );
    assert_eq!(
        returns("AVG", decimal.clone(), true, false),
        "DECIMAL(38, 6) NOT NULL"
    );
    assert_eq!(returns("STDDEV", decimal, false, false), "DECIMAL(38, 6)");
    assert_eq!(
        returns("COUNT", int.clone(), false, true),
        "BIGINT NOT NULL"
    );
    assert_eq!(
        returns("ARRAY_AGG", int.clone(), false, false),
        "ARRAY<INT NOT NULL> NOT NULL"
    );
    assert_eq!(
        returns("COLLECT", int.clone(), false, true),
        "MULTISET<INT NOT NULL> NOT NULL"
    );
    assert_eq!(returns("LAST_VALUE", int, false, false), "INT");
    let text = TypeKind::VarChar(3).not_null();
    assert_eq!(
        returns("LISTAGG", text, false, false),
        "VARCHAR(3) NOT NULL"
    );
}
