//! Where a graph is cut into tasks.
//!
//! Vertices share a task, and so a thread, when the edge between them leads from subtask i to subtask
//! i: a forward edge, or any edge between two vertices of parallelism 1. Such an edge is cut all the
//! same when the tasks would wait for each other in a circle: a task that is blocked on a full
//! channel must never be needed to empty it.

use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, Input};

/// The vertices of a graph by task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The task of every vertex. Edges between vertices of one task are calls.
    pub(super) task_of: Vec<usize>,
    /// The vertices of every task, in the order of the graph.
    pub(super) tasks: Vec<Vec<usize>>,
}

/// Whether the edge to a consumer of parallelism `to` leads from subtask i to subtask i only.
pub(super) fn is_direct(input: &Input, from: usize, to: usize) -> bool {
    from == to && (from == 1 || input.distribution == Distribution::Forward)
}

/// Cuts `graph`.
pub(super) fn cut(graph: &Graph) -> Result<Cut> {
    check(graph)?;
    let vertices = graph.vertices();
    let mut task_of: Vec<usize> = (0..vertices.len()).collect();
    for (to, vertex) in vertices.iter().enumerate() {
        for input in &vertex.inputs {
            let from = graph.vertex(input.from);
            if is_direct(input, from.parallelism, vertex.parallelism) {
                let (kept, gone) = (task_of[input.from.0], task_of[to]);
                let merged: Vec<_> = task_of
                    .iter()
                    .map(|t| if *t == gone { kept } else { *t })
                    .collect();
                if is_runnable(graph, &merged) {
                    task_of = merged;
                }
            }
        }
    }
    let mut numbers: Vec<usize> = task_of.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let mut tasks = vec![Vec::new(); numbers.len()];
    for (vertex, task) in task_of.iter_mut().enumerate() {
        *task = numbers.partition_point(|n| n < task);
        tasks[*task].push(vertex);
    }
    Ok(Cut { task_of, tasks })
}

fn check(graph: &Graph) -> Result<()> {
    for vertex in graph.vertices() {
        let fault = |what: &str| Err(Error::internal(what).context(vertex.description.clone()));
        if vertex.parallelism == 0 {
            return fault("a vertex without subtasks");
        }
        for input in &vertex.inputs {
            let from = graph.vertex(input.from).parallelism;
            match input.distribution {
                Distribution::Forward if from != vertex.parallelism => {
                    return fault("a forward edge between different parallelisms");
                }
                Distribution::Single if vertex.parallelism != 1 => {
                    return fault("a single input of several subtasks");
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether no task is its own successor, and no channel leads from a task to itself.
fn is_runnable(graph: &Graph, task_of: &[usize]) -> bool {
    let mut edges = Vec::new();
    for (to, vertex) in graph.vertices().iter().enumerate() {
        for input in &vertex.inputs {
            let parallelism = graph.vertex(input.from).parallelism;
            let (from, to) = (task_of[input.from.0], task_of[to]);
            if from != to {
                edges.push((from, to));
            } else if !is_direct(input, parallelism, vertex.parallelism) {
                return false;
            }
        }
    }
    // Take away tasks without predecessors until none is left, or only circles.
    let mut left: Vec<usize> = task_of.to_vec();
    left.sort_unstable();
    left.dedup();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|task| edges.iter().any(|(_, to)| to == task));
        edges.retain(|(from, _)| left.contains(from));
        if left.len() == before {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Distribution::{Forward, Hash, Rebalance, Single};
    use crate::graph::VertexId;
    use crate::runtime::testing::{Builder, Pass, operator};

    fn graph(vertices: &[(usize, &[(usize, Distribution)])]) -> Graph {
        let mut built = Graph::default();
        for (parallelism, inputs) in vertices {
            let mut vertex = Builder::new("V", operator(|| Pass { tag: false }));
            for (from, distribution) in *inputs {
                vertex = vertex.from(VertexId(*from), distribution.clone());
            }
            vertex.parallelism(*parallelism).add(&mut built);
        }
        built
    }

    fn hash() -> Distribution {
        Hash(vec![0])
    }

    #[test]
    fn everything_of_parallelism_one_is_one_task() {
        let graph = graph(&[
            (1, &[]),
            (1, &[]),
            (1, &[(0, hash()), (1, Rebalance)]),
            (1, &[(2, Single)]),
        ]);
        assert_eq!(cut(&graph).unwrap().tasks, [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn an_exchange_cuts() {
        let graph = graph(&[(3, &[]), (3, &[(0, hash())]), (3, &[(1, Forward)])]);
        assert_eq!(cut(&graph).unwrap().tasks, [vec![0], vec![1, 2]]);
    }

    #[test]
    fn source_and_sink_do_not_share_a_task_around_an_exchange() {
        let graph = graph(&[
            (1, &[]),
            (3, &[(0, hash())]),
            (1, &[(1, Single), (0, Forward)]),
        ]);
        assert_eq!(cut(&graph).unwrap().tasks, [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn a_forward_edge_beside_an_exchange_is_cut() {
        let graph = graph(&[(3, &[]), (3, &[(0, Forward), (0, hash())])]);
        assert_eq!(cut(&graph).unwrap().tasks, [vec![0], vec![1]]);
    }

    #[test]
    fn forward_edges_between_different_parallelisms_are_refused() {
        assert!(cut(&graph(&[(3, &[]), (2, &[(0, Forward)])])).is_err());
        assert!(cut(&graph(&[(3, &[]), (2, &[(0, Single)])])).is_err());
    }
}
