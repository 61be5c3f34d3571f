use super::*;
use crate::operators::testing::{Harness, schema};
use crate::types::Schema;

/// `ORDER BY` by column names: `v`, `v DESC`, with nulls where Flink puts them unless said otherwise.
fn order(schema: &Schema, text: &str) -> Vec<SortColumn> {
    let column = |text: &str| {
        let descending = text.contains(" DESC");
        SortColumn {
            column: schema.index_of(text.split(' ').next().unwrap()).unwrap(),
            descending,
            nulls_first: match text {
                _ if text.contains("NULLS FIRST") => true,
                _ if text.contains("NULLS LAST") => false,
                _ => !descending,
            },
        }
    };
    text.split(", ")
        .filter(|t| !t.is_empty())
        .map(column)
        .collect()
}

#[derive(Clone)]
struct Case {
    columns: &'static str,
    partition_by: Vec<usize>,
    order_by: &'static str,
    strategy: RankStrategy,
    ranks: (u64, RankEnd),
    output_rank: bool,
}

impl Case {
    fn harness(self) -> Harness {
        let input = schema(self.columns);
        let output = match self.output_rank {
            true => format!("{}, rn BIGINT NOT NULL", self.columns),
            false => self.columns.to_string(),
        };
        let spec = RankSpec {
            partition_by: self.partition_by,
            order_by: order(&input, self.order_by),
            schema: input,
            strategy: self.strategy,
            rank_start: self.ranks.0,
            rank_end: self.ranks.1,
            output_rank: self.output_rank,
            generate_update_before: true,
            ttl_ms: None,
            output: schema(&output),
        };
        Harness::new(self.columns, &output, move |context| {
            Rank::new(&spec, context)
        })
    }
}

fn top(n: u64) -> (u64, RankEnd) {
    (1, RankEnd::Constant(n))
}

const T: &str = "k STRING, id INT, v INT";
const APPEND: &str = "+I|a|1|10
    +I|a|2|20
    +I|a|3|5
    +I|a|4|20
    +I|a|5|30
    +I|b|6|\\N
    +I|b|7|1
    +I|a|8|1";
const RETRACT: &str = "+I|a|1|10
    +I|a|2|20
    +I|a|3|5
    -D|a|2|20
    -U|a|3|5
    +U|a|3|15
    +I|a|4|15
    -D|a|1|10
    -D|a|3|15
    -D|a|4|15
    -D|a|4|15";

#[test]
fn append_only_input_with_rank() {
    Case {
        columns: T,
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: top(2),
        output_rank: true,
    }
    .harness()
    .check(
        APPEND,
        "+I[a, 1, 10, 1]
         -U[a, 1, 10, 1]
         +U[a, 2, 20, 1]
         +I[a, 1, 10, 2]
         -U[a, 1, 10, 2]
         +U[a, 4, 20, 2]
         -U[a, 2, 20, 1]
         +U[a, 5, 30, 1]
         -U[a, 4, 20, 2]
         +U[a, 2, 20, 2]
         +I[b, 6, null, 1]
         -U[b, 6, null, 1]
         +U[b, 7, 1, 1]
         +I[b, 6, null, 2]",
    );
}

#[test]
fn append_only_input_without_rank() {
    Case {
        columns: T,
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        APPEND,
        "+I[a, 1, 10]
         +I[a, 2, 20]
         -D[a, 1, 10]
         +I[a, 4, 20]
         -D[a, 4, 20]
         +I[a, 5, 30]
         +I[b, 6, null]
         +I[b, 7, 1]",
    );
}

#[test]
fn the_only_row_of_a_partition_is_updated() {
    Case {
        columns: T,
        partition_by: vec![0],
        order_by: "v",
        strategy: RankStrategy::AppendFast,
        ranks: top(1),
        output_rank: false,
    }
    .harness()
    .check(
        APPEND,
        "+I[a, 1, 10]
         -U[a, 1, 10]
         +U[a, 3, 5]
         +I[b, 6, null]
         -U[a, 3, 5]
         +U[a, 8, 1]",
    );
}

#[test]
fn order_by_with_limit() {
    Case {
        columns: T,
        partition_by: vec![],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: top(3),
        output_rank: false,
    }
    .harness()
    .check(
        APPEND,
        "+I[a, 1, 10]
         +I[a, 2, 20]
         +I[a, 3, 5]
         -D[a, 3, 5]
         +I[a, 4, 20]
         -D[a, 1, 10]
         +I[a, 5, 30]",
    );
}

#[test]
fn limit_without_order() {
    Case {
        columns: T,
        partition_by: vec![],
        order_by: "",
        strategy: RankStrategy::AppendFast,
        ranks: top(3),
        output_rank: false,
    }
    .harness()
    .check(
        APPEND,
        "+I[a, 1, 10]
         +I[a, 2, 20]
         +I[a, 3, 5]",
    );
}

#[test]
fn retracting_input_with_rank() {
    Case {
        columns: T,
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: true,
    }
    .harness()
    .check(
        RETRACT,
        "+I[a, 1, 10, 1]
         -U[a, 1, 10, 1]
         +U[a, 2, 20, 1]
         +I[a, 1, 10, 2]
         -U[a, 2, 20, 1]
         +U[a, 1, 10, 1]
         -U[a, 1, 10, 2]
         +U[a, 3, 5, 2]
         -D[a, 3, 5, 2]
         -U[a, 1, 10, 1]
         +U[a, 3, 15, 1]
         +I[a, 1, 10, 2]
         -U[a, 1, 10, 2]
         +U[a, 4, 15, 2]
         -U[a, 3, 15, 1]
         +U[a, 4, 15, 1]
         -D[a, 4, 15, 2]
         -D[a, 4, 15, 1]",
    );
}

#[test]
fn retracting_input_without_rank() {
    Case {
        columns: T,
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        RETRACT,
        "+I[a, 1, 10]
         +I[a, 2, 20]
         -D[a, 2, 20]
         +I[a, 3, 5]
         -D[a, 3, 5]
         +I[a, 3, 15]
         -D[a, 1, 10]
         +I[a, 4, 15]
         -D[a, 3, 15]
         -D[a, 4, 15]",
    );
}

#[test]
fn a_range_of_ranks_of_append_only_input() {
    Case {
        columns: "v INT",
        partition_by: vec![],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: (2, RankEnd::Constant(3)),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|10
         +I|20
         +I|30
         +I|25
         +I|5",
        "+I[10]
         -U[10]
         +U[20]
         +I[10]
         -U[20]
         +U[25]
         -U[10]
         +U[20]",
    );
}

#[test]
fn a_range_of_ranks_with_rank() {
    Case {
        columns: "v INT",
        partition_by: vec![],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: (2, RankEnd::Constant(3)),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|10
         +I|20
         +I|30
         +I|25
         +I|5",
        "+I[10, 2]
         -U[10, 2]
         +U[20, 2]
         +I[10, 3]
         -U[20, 2]
         +U[25, 2]
         -U[10, 3]
         +U[20, 3]",
    );
}

#[test]
fn a_range_of_ranks_shows_every_shift() {
    Case {
        columns: "v INT",
        partition_by: vec![],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: (2, RankEnd::Constant(3)),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|10
         +I|20
         +I|30
         +I|25
         -D|30
         +I|5
         -D|20
         -D|25",
        "+I[10]
         -U[10]
         +U[20]
         +I[10]
         -U[20]
         +U[25]
         -U[10]
         +U[20]
         -U[25]
         +U[20]
         -U[20]
         +U[10]
         -U[20]
         +U[10]
         -U[10]
         +U[5]
         -U[10]
         +U[5]
         -D[5]",
    );
}

#[test]
fn nulls_sort_low() {
    Case {
        columns: "id INT, v INT, s STRING",
        partition_by: vec![],
        order_by: "v",
        strategy: RankStrategy::AppendFast,
        ranks: top(2),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|1|3|c
         +I|2|\\N|a
         +I|3|3|\\N
         +I|4|1|d
         +I|5|\\N|\\N
         +I|6|3|a",
        "+I[1, 3, c, 1]
         -U[1, 3, c, 1]
         +U[2, null, a, 1]
         +I[1, 3, c, 2]
         -U[1, 3, c, 2]
         +U[4, 1, d, 2]
         -U[4, 1, d, 2]
         +U[5, null, null, 2]",
    );
}

#[test]
fn nulls_sort_last_when_descending() {
    Case {
        columns: "id INT, v INT, s STRING",
        partition_by: vec![],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: top(2),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|1|3|c
         +I|2|\\N|a
         +I|3|3|\\N
         +I|4|1|d
         +I|5|\\N|\\N
         +I|6|3|a",
        "+I[1, 3, c, 1]
         +I[2, null, a, 2]
         -U[2, null, a, 2]
         +U[3, 3, null, 2]",
    );
}

#[test]
fn nulls_where_asked() {
    Case {
        columns: "id INT, v INT, s STRING",
        partition_by: vec![],
        order_by: "v NULLS LAST, s DESC NULLS FIRST",
        strategy: RankStrategy::AppendFast,
        ranks: top(3),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|1|3|c
         +I|2|\\N|a
         +I|3|3|\\N
         +I|4|1|d
         +I|5|\\N|\\N
         +I|6|3|a",
        "+I[1, 3, c, 1]
         +I[2, null, a, 2]
         -U[1, 3, c, 1]
         +U[3, 3, null, 1]
         -U[2, null, a, 2]
         +U[1, 3, c, 2]
         +I[2, null, a, 3]
         -U[3, 3, null, 1]
         +U[4, 1, d, 1]
         -U[1, 3, c, 2]
         +U[3, 3, null, 2]
         -U[2, null, a, 3]
         +U[1, 3, c, 3]",
    );
}

#[test]
fn nulls_where_asked_descending() {
    Case {
        columns: "id INT, v INT, s STRING",
        partition_by: vec![],
        order_by: "v DESC NULLS FIRST, s NULLS LAST",
        strategy: RankStrategy::AppendFast,
        ranks: top(3),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|1|3|c
         +I|2|\\N|a
         +I|3|3|\\N
         +I|4|1|d
         +I|5|\\N|\\N
         +I|6|3|a",
        "+I[1, 3, c, 1]
         -U[1, 3, c, 1]
         +U[2, null, a, 1]
         +I[1, 3, c, 2]
         +I[3, 3, null, 3]
         -U[1, 3, c, 2]
         +U[5, null, null, 2]
         -U[3, 3, null, 3]
         +U[1, 3, c, 3]
         -U[1, 3, c, 3]
         +U[6, 3, a, 3]",
    );
}

#[test]
fn equal_rows_without_rank() {
    Case {
        columns: "k STRING, v INT",
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|a|5
         +I|a|7
         +I|a|7
         +I|a|3
         -D|a|7
         -D|a|3
         -D|a|7
         -U|a|5
         +U|a|6
         -D|a|6
         +I|b|1
         -U|b|1
         +U|a|2",
        "+I[a, 5]
         +I[a, 7]
         -D[a, 5]
         +I[a, 7]
         -D[a, 7]
         +I[a, 5]
         -D[a, 7]
         -D[a, 5]
         +I[a, 6]
         -D[a, 6]
         +I[b, 1]
         -D[b, 1]
         +I[a, 2]",
    );
}

#[test]
fn equal_rows_with_rank() {
    Case {
        columns: "k STRING, v INT",
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|a|5
         +I|a|7
         +I|a|7
         +I|a|3
         -D|a|7
         -D|a|3
         -D|a|7
         -U|a|5
         +U|a|6
         -D|a|6
         +I|b|1
         -U|b|1
         +U|a|2",
        "+I[a, 5, 1]
         -U[a, 5, 1]
         +U[a, 7, 1]
         +I[a, 5, 2]
         -U[a, 5, 2]
         +U[a, 7, 2]
         -U[a, 7, 1]
         +U[a, 7, 1]
         -U[a, 7, 2]
         +U[a, 5, 2]
         -U[a, 7, 1]
         +U[a, 5, 1]
         -D[a, 5, 2]
         -D[a, 5, 1]
         +I[a, 6, 1]
         -D[a, 6, 1]
         +I[b, 1, 1]
         -D[b, 1, 1]
         +I[a, 2, 1]",
    );
}

#[test]
fn the_first_of_retracting_input() {
    Case {
        columns: "k STRING, v INT",
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::Retract,
        ranks: top(1),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|a|5
         +I|a|7
         +I|a|7
         +I|a|3
         -D|a|7
         -D|a|3
         -D|a|7
         -U|a|5
         +U|a|6
         -D|a|6
         +I|b|1
         -U|b|1
         +U|a|2",
        "+I[a, 5]
         -D[a, 5]
         +I[a, 7]
         -D[a, 7]
         +I[a, 7]
         -D[a, 7]
         +I[a, 5]
         -D[a, 5]
         +I[a, 6]
         -D[a, 6]
         +I[b, 1]
         -D[b, 1]
         +I[a, 2]",
    );
}

#[test]
fn improving_input_with_rank() {
    Case {
        columns: "k STRING, c BIGINT",
        partition_by: vec![],
        order_by: "c DESC",
        strategy: RankStrategy::UpdateFast(vec![0]),
        ranks: top(3),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|a|1
         +I|b|1
         +I|c|1
         +I|d|1
         +U|c|2
         +U|d|2
         +U|d|3
         +U|b|2
         +U|b|3
         +U|b|4
         +U|a|2",
        "+I[a, 1, 1]
         +I[b, 1, 2]
         +I[c, 1, 3]
         -U[a, 1, 1]
         -U[c, 1, 3]
         +U[c, 2, 1]
         -U[b, 1, 2]
         +U[a, 1, 2]
         +U[b, 1, 3]
         -U[a, 1, 2]
         +U[d, 2, 2]
         -U[b, 1, 3]
         +U[a, 1, 3]
         -U[c, 2, 1]
         -U[d, 2, 2]
         +U[d, 3, 1]
         +U[c, 2, 2]
         -U[a, 1, 3]
         +U[b, 2, 3]
         -U[c, 2, 2]
         -U[b, 2, 3]
         +U[b, 3, 2]
         +U[c, 2, 3]
         -U[d, 3, 1]
         -U[b, 3, 2]
         +U[b, 4, 1]
         +U[d, 3, 2]",
    );
}

#[test]
fn improving_input_without_rank() {
    Case {
        columns: "k STRING, c BIGINT",
        partition_by: vec![],
        order_by: "c DESC",
        strategy: RankStrategy::UpdateFast(vec![0]),
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|a|1
         +I|b|1
         +I|c|1
         +I|d|1
         +U|c|2
         +U|d|2
         +U|d|3
         +U|b|2
         +U|b|3
         +U|b|4
         +U|a|2",
        "+I[a, 1]
         +I[b, 1]
         -D[b, 1]
         +I[c, 2]
         -D[a, 1]
         +I[d, 2]
         -U[d, 2]
         +U[d, 3]
         -D[c, 2]
         +I[b, 3]
         -U[b, 3]
         +U[b, 4]",
    );
}

#[test]
fn other_columns_of_improving_input() {
    Case {
        columns: "k STRING, c BIGINT, mx INT",
        partition_by: vec![],
        order_by: "mx DESC",
        strategy: RankStrategy::UpdateFast(vec![0]),
        ranks: (2, RankEnd::Constant(3)),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|a|1|1
         +I|b|1|1
         +I|c|1|1
         +I|d|1|1
         +U|c|2|1
         +U|d|2|1
         +U|d|3|1
         +U|b|2|1
         +U|b|3|1
         +U|b|4|1
         +U|a|2|5",
        "+I[b, 1, 1]
         +I[c, 1, 1]
         -U[c, 1, 1]
         +U[c, 2, 1]
         -U[b, 1, 1]
         +U[b, 2, 1]
         -U[b, 2, 1]
         +U[b, 3, 1]
         -U[b, 3, 1]
         +U[b, 4, 1]",
    );
}

#[test]
fn the_best_of_improving_input() {
    Case {
        columns: "k STRING, c BIGINT, mx INT",
        partition_by: vec![],
        order_by: "mx DESC",
        strategy: RankStrategy::UpdateFast(vec![0]),
        ranks: top(1),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|a|1|1
         +I|b|1|1
         +U|b|2|1
         +U|a|3|1
         +U|b|3|2",
        "+I[a, 1, 1]
         -U[a, 1, 1]
         +U[a, 3, 1]
         -U[a, 3, 1]
         +U[b, 3, 2]",
    );
}

#[test]
fn a_row_that_breaks_its_promise_moves_down() {
    Case {
        columns: "k STRING, c BIGINT",
        partition_by: vec![],
        order_by: "c DESC",
        strategy: RankStrategy::UpdateFast(vec![0]),
        ranks: top(3),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|a|3
         +I|b|2
         +I|c|1
         +U|a|0",
        "+I[a, 3, 1]
         +I[b, 2, 2]
         +I[c, 1, 3]
         -U[a, 3, 1]
         -U[b, 2, 2]
         +U[b, 2, 1]
         -U[c, 1, 3]
         +U[c, 1, 2]
         +U[a, 0, 3]",
    );
}

#[test]
fn the_first_row_of_a_partition_tells_how_many() {
    Case {
        columns: "k STRING, v INT, n INT",
        partition_by: vec![0],
        order_by: "v DESC",
        strategy: RankStrategy::AppendFast,
        ranks: (1, RankEnd::Column(2)),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|a|1|2
         +I|a|3|2
         +I|a|2|1
         +I|b|5|1
         +I|b|7|3
         +I|b|6|3",
        "+I[a, 1, 2, 1]
         -U[a, 1, 2, 1]
         +U[a, 3, 2, 1]
         +I[a, 1, 2, 2]
         -U[a, 1, 2, 2]
         +U[a, 2, 1, 2]
         +I[b, 5, 1, 1]
         -U[b, 5, 1, 1]
         +U[b, 7, 3, 1]",
    );
}

#[test]
fn the_first_rows_by_arrival() {
    Case {
        columns: "k STRING, v INT",
        partition_by: vec![0],
        order_by: "",
        strategy: RankStrategy::AppendFast,
        ranks: (2, RankEnd::Constant(2)),
        output_rank: true,
    }
    .harness()
    .check(
        "+I|a|1
         +I|a|3
         +I|a|2
         +I|b|5",
        "+I[a, 3, 2]",
    );
}

#[test]
fn limit_refills_from_later_rows() {
    Case {
        columns: "id INT, v STRING",
        partition_by: vec![],
        order_by: "",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|1|p
         +I|2|q
         +I|3|r
         -D|1|p
         -U|3|r
         +U|3|t
         -D|2|q",
        "+I[1, p]
         +I[2, q]
         -D[1, p]
         +I[3, r]
         -D[3, r]
         +I[3, t]
         -D[2, q]",
    );
}

#[test]
fn order_by_with_limit_of_retracting_input() {
    Case {
        columns: "id INT, v INT",
        partition_by: vec![],
        order_by: "v",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|1|30
         +I|2|10
         +I|3|20
         +I|4|10
         -D|2|10
         -U|3|20
         +U|3|40",
        "+I[1, 30]
         +I[2, 10]
         -D[1, 30]
         +I[3, 20]
         -D[3, 20]
         +I[4, 10]
         -D[2, 10]
         +I[3, 20]
         -D[3, 20]
         +I[1, 30]",
    );
}

#[test]
fn order_by_with_limit_and_offset() {
    Case {
        columns: "id INT, v INT",
        partition_by: vec![],
        order_by: "v",
        strategy: RankStrategy::Retract,
        ranks: (2, RankEnd::Constant(3)),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|1|30
         +I|2|10
         +I|3|20
         +I|4|10
         -D|2|10
         -U|3|20
         +U|3|40",
        "+I[1, 30]
         -U[1, 30]
         +U[3, 20]
         +I[1, 30]
         -U[3, 20]
         +U[4, 10]
         -U[1, 30]
         +U[3, 20]
         -U[4, 10]
         +U[3, 20]
         -U[3, 20]
         +U[1, 30]
         -U[3, 20]
         +U[1, 30]
         -D[1, 30]
         +I[3, 40]",
    );
}

#[test]
fn all_ordered_columns_count() {
    Case {
        columns: "id INT, v INT",
        partition_by: vec![],
        order_by: "v DESC, id",
        strategy: RankStrategy::Retract,
        ranks: top(2),
        output_rank: false,
    }
    .harness()
    .check(
        "+I|1|30
         +I|2|10
         +I|3|20
         +I|4|10
         -D|2|10
         -U|3|20
         +U|3|40",
        "+I[1, 30]
         +I[2, 10]
         -D[2, 10]
         +I[3, 20]
         -D[3, 20]
         +I[4, 10]
         -D[4, 10]
         +I[3, 40]",
    );
}

#[test]
fn what_has_expired_is_not_ranked() {
    let input = schema("k STRING, v INT");
    let spec = RankSpec {
        partition_by: vec![0],
        order_by: order(&input, "v"),
        schema: input,
        strategy: RankStrategy::UpdateFast(vec![0, 1]),
        rank_start: 1,
        rank_end: RankEnd::Constant(2),
        output_rank: false,
        generate_update_before: true,
        ttl_ms: Some(5000),
        output: schema("k STRING, v INT"),
    };
    Harness::new("k STRING, v INT", "k STRING, v INT", move |context| {
        Rank::new(&spec, context)
    })
    .check(
        "+I|a|1
         +I|a|2
         +I|b|1
         @time 4000
         +I|b|2
         @time 5000
         +I|a|3
         +I|b|3
         @time 20000
         +I|a|3",
        "+I[a, 1]
         +I[a, 2]
         +I[b, 1]
         +I[b, 2]
         +I[a, 3]
         +I[a, 3]",
    );
}
