//! Lookups that run on threads of their own while later rows arrive.
//!
//! Rows are looked up in pieces of a batch. Results come out in the order of the rows, or as soon as
//! they are there. All that is in flight comes out before a watermark or a barrier passes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::matcher::{Keys, Matcher};
use super::{AsyncLookup, LookupJoinSpec};
use crate::changelog::ChangeBatch;
use crate::connectors::lookup::{LookedUp, Lookup};
use crate::error::{Error, Result};
use crate::operators::OperatorContext;
use crate::runtime::clock::Clock;
use crate::runtime::output::Output;

/// Threads of one subtask. A cache is not shared: with one there is one thread.
const THREADS: usize = 4;
/// How long after a look at the results the next one is due.
const POLL_MS: i64 = 1;

struct Request {
    number: u64,
    keys: Vec<ArrayRef>,
    len: usize,
    now_ms: i64,
}

struct Response {
    number: u64,
    found: Result<LookedUp>,
}

/// A piece of a batch whose lookups run, or wait for their turn to come out.
struct Piece {
    number: u64,
    batch: ChangeBatch,
    rows: UInt32Array,
    /// `None` while they run.
    found: Option<Result<LookedUp>>,
}

/// The lookups that run.
pub(super) struct InFlight {
    options: AsyncLookup,
    /// Rows of a piece.
    piece: usize,
    requests: Sender<Request>,
    responses: Receiver<Response>,
    pieces: VecDeque<Piece>,
    rows: usize,
    next: u64,
    clock: Arc<dyn Clock>,
    seen_ms: i64,
    /// Columns of the table.
    columns: SchemaRef,
}

impl InFlight {
    /// Opens the table once a thread.
    pub(super) fn new(
        spec: &LookupJoinSpec,
        options: AsyncLookup,
        context: &OperatorContext,
    ) -> Result<Self> {
        let capacity = options.capacity.max(1);
        let threads = match spec.table.cache {
            Some(_) => 1,
            None => THREADS.min(capacity),
        };
        let (requests, todo) = unbounded();
        let (done, responses) = unbounded();
        for _ in 0..threads {
            let lookup = spec.open()?;
            let (todo, done) = (todo.clone(), done.clone());
            std::thread::Builder::new()
                .name("lookup".into())
                .spawn(move || serve(lookup, &todo, &done))
                .map_err(|e| Error::internal(format!("no thread for lookups: {e}")))?;
        }
        Ok(Self {
            options,
            piece: capacity.div_ceil(threads),
            requests,
            responses,
            pieces: VecDeque::new(),
            rows: 0,
            next: 0,
            clock: Arc::clone(&context.clock),
            seen_ms: i64::MIN,
            columns: spec.table.columns.to_arrow(),
        })
    }

    /// Starts the lookups of a batch, and emits what has come back.
    pub(super) fn process(
        &mut self,
        batch: ChangeBatch,
        matcher: &Matcher,
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.seen_ms = self.clock.now_ms();
        for start in (0..batch.len()).step_by(self.piece) {
            let piece = batch.slice(start, self.piece.min(batch.len() - start));
            self.emit_ready(matcher, out)?;
            while self.rows > 0 && self.rows + piece.len() > self.options.capacity {
                self.wait()?;
                self.emit_ready(matcher, out)?;
            }
            self.start(piece, matcher)?;
        }
        self.emit_ready(matcher, out)
    }

    fn start(&mut self, batch: ChangeBatch, matcher: &Matcher) -> Result<()> {
        let Keys { rows, columns } = matcher.keys(batch.rows())?;
        let number = self.next;
        self.next += 1;
        self.rows += batch.len();
        let request = Request {
            number,
            keys: columns,
            len: rows.len(),
            now_ms: self.seen_ms,
        };
        let nothing = request.len == 0;
        self.pieces.push_back(Piece {
            number,
            batch,
            rows,
            found: nothing.then(|| Ok(self.nothing())),
        });
        if nothing {
            return Ok(());
        }
        self.requests.send(request).map_err(|_| gone())
    }

    fn nothing(&self) -> LookedUp {
        LookedUp {
            keys: UInt32Array::from(Vec::<u32>::new()),
            rows: RecordBatch::new_empty(Arc::clone(&self.columns)),
        }
    }

    /// Takes up what has come back, and emits what may come out.
    pub(super) fn emit_ready(&mut self, matcher: &Matcher, out: &mut Output<'_>) -> Result<()> {
        while let Ok(response) = self.responses.try_recv() {
            self.take_up(response);
        }
        while let Some(at) = self.pieces.iter().position(|piece| piece.found.is_some()) {
            if self.options.ordered && at > 0 {
                break;
            }
            let Some(piece) = self.pieces.remove(at) else {
                break;
            };
            self.rows -= piece.batch.len();
            let found = match piece.found {
                Some(found) => matcher.matches(piece.batch.rows(), &piece.rows, found?)?,
                None => break,
            };
            let found = matcher.padded(found, piece.batch.len())?;
            matcher.emit(found, &piece.batch, out)?;
        }
        Ok(())
    }

    /// Waits for all lookups and emits what they found.
    pub(super) fn complete(&mut self, matcher: &Matcher, out: &mut Output<'_>) -> Result<()> {
        self.emit_ready(matcher, out)?;
        while !self.pieces.is_empty() {
            self.wait()?;
            self.emit_ready(matcher, out)?;
        }
        Ok(())
    }

    /// Waits for one lookup.
    fn wait(&mut self) -> Result<()> {
        match self.responses.recv_timeout(self.options.timeout) {
            Ok(response) => {
                self.take_up(response);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Err(Error::connector(format!(
                "Async function call has timed out: a lookup took longer than {}.",
                seconds(self.options.timeout)
            ))
            .hint("raise 'table.exec.async-lookup.timeout', or 'timeout' of the LOOKUP hint")),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    fn take_up(&mut self, response: Response) {
        let mut pieces = self.pieces.iter_mut();
        if let Some(piece) = pieces.find(|piece| piece.number == response.number) {
            piece.found = Some(response.found);
        }
    }

    /// Notes the time of a look at the results.
    pub(super) fn seen_at(&mut self, now_ms: i64) {
        self.seen_ms = now_ms;
    }

    /// When to look for results, without more input.
    pub(super) fn next_timer(&self) -> Option<i64> {
        (!self.pieces.is_empty()).then(|| self.seen_ms.saturating_add(POLL_MS))
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn gone() -> Error {
    Error::internal("the threads of a lookup join are gone")
}

/// Runs lookups until the join is gone.
fn serve(mut lookup: Box<dyn Lookup>, todo: &Receiver<Request>, done: &Sender<Response>) {
    while let Ok(request) = todo.recv() {
        let found = lookup.lookup(&request.keys, request.len, request.now_ms);
        let number = request.number;
        if done.send(Response { number, found }).is_err() {
            break;
        }
    }
}
