//! Closed-loop load: a fixed number of callers, each making its next call when the last one is answered.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::{BenchOptions, BenchReport, BenchStopwatch, RuntimeFlavour, WARM_UP, nanoseconds};

/// Runs `main` as a task on a new runtime of this flavour.
///
/// As a task, because on the runtime with two workers the calling thread is not one of them.
pub fn block_on<T: Send + 'static>(flavour: RuntimeFlavour, main: impl Future<Output = T> + Send + 'static) -> T {
    let mut builder = match flavour {
        RuntimeFlavour::Current => Builder::new_current_thread(),
        RuntimeFlavour::Multi => Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(main).await.unwrap() })
}

/// Measures `call`: warms up, then has `options.conc` callers make one call at a time.
///
/// With `options.calls`, all callers together make exactly that many calls, without a warm-up. A failing call must
/// panic, which ends the measurement.
pub async fn run_closed_loop<Call, Answer>(implementation: &str, options: &BenchOptions, call: Call) -> BenchReport
where
    Call: Fn() -> Answer + Clone + Send + 'static,
    Answer: Future<Output = ()> + Send + 'static,
{
    if options.calls.is_none() {
        run_callers(options.conc, &call, &StopCondition::after(WARM_UP)).await;
    }
    let stopwatch = BenchStopwatch::start();
    let until = match options.calls {
        Some(calls) => StopCondition::Calls(calls, Arc::new(AtomicUsize::new(0))),
        None => StopCondition::after(options.time),
    };
    let latencies = run_callers(options.conc, &call, &until).await;
    BenchReport::new(implementation, options.flavour.name(), options, stopwatch.stop(latencies))
}

/// The condition at which a caller stops.
#[derive(Clone)]
enum StopCondition {
    Time(Instant),
    /// Number of started calls, counted over all callers.
    Calls(usize, Arc<AtomicUsize>),
}

impl StopCondition {
    fn after(time: Duration) -> Self {
        Self::Time(Instant::now() + time)
    }

    fn is_reached(&self, now: Instant) -> bool {
        match self {
            Self::Time(end) => now >= *end,
            Self::Calls(limit, begun) => begun.fetch_add(1, Ordering::Relaxed) >= *limit,
        }
    }
}

/// Runs all callers. Returns the latency of every call in nanoseconds, in no particular order.
async fn run_callers<Call, Answer>(conc: usize, call: &Call, until: &StopCondition) -> Vec<u64>
where
    Call: Fn() -> Answer + Clone + Send + 'static,
    Answer: Future<Output = ()> + Send + 'static,
{
    let mut callers = JoinSet::new();
    for _ in 0..conc {
        callers.spawn(run_caller(call.clone(), until.clone()));
    }
    callers.join_all().await.concat()
}

async fn run_caller<Call, Answer>(call: Call, until: StopCondition) -> Vec<u64>
where
    Call: Fn() -> Answer,
    Answer: Future<Output = ()>,
{
    let mut latencies = Vec::with_capacity(1 << 16);
    let mut begun = Instant::now();
    while !until.is_reached(begun) {
        call().await;
        let answered = Instant::now();
        latencies.push(nanoseconds(answered - begun));
        begun = answered;
    }
    latencies
}
