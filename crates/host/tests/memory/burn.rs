//! A process that has nothing to do with the host and uses a given amount of processor time.

use std::time::{Duration, Instant};

/// How long a thread runs before it looks at how much time it has used, and how long it waits when it is ahead.
const SLICE: Duration = Duration::from_millis(1);

/// `THREADS MILLICORES SECONDS`
pub fn run(arguments: &[String]) {
    let number = |at: usize| arguments[at].parse::<u32>().unwrap();
    let (threads, millicores, seconds) = (number(0), number(1), number(2));
    let share = f64::from(millicores) / 1000.0 / f64::from(threads);
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let workers: Vec<_> = (0..threads).map(|_| std::thread::spawn(move || burn(share, until))).collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// Runs whenever it has had less than its share.
fn burn(share: f64, until: Instant) {
    let began = Instant::now();
    while Instant::now() < until {
        if used() > began.elapsed().mul_f64(share) {
            std::thread::sleep(SLICE);
            continue;
        }
        let slice = Instant::now();
        while slice.elapsed() < SLICE {
            std::hint::spin_loop();
        }
    }
}

/// Processor time of this thread.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}
