//! A process that has nothing to do with the host and uses as much processor time as a flood did, at the same moments.

use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::process::{Load, used_by_this_thread};

/// How long a thread runs before it looks at how much time it has used, and how long it waits when it is ahead.
const SLICE: Duration = Duration::from_millis(1);

/// Reads a [`Load`] a line and repeats them until it is killed.
pub fn run() {
    let loads: Vec<Load> = std::io::stdin().lock().lines().map(|line| Load::parse(&line.unwrap())).collect();
    let loads = Arc::new(loads);
    let threads = loads.iter().map(|load| load.threads).max().unwrap_or(0);
    let began = Instant::now();
    let start = |nth| {
        let loads = Arc::clone(&loads);
        std::thread::spawn(move || burn(&loads, nth, began))
    };
    let workers: Vec<_> = (0..threads).map(start).collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// Runs whenever it has had less than its share.
fn burn(loads: &[Load], nth: u32, began: Instant) {
    let (mut due, mut ended) = (Duration::ZERO, began);
    for load in loads.iter().cycle() {
        let share = if nth < load.threads { load.used / load.threads } else { Duration::ZERO };
        let until = ended + load.took;
        while Instant::now() < until {
            let gone = ended.elapsed().as_secs_f64() / load.took.as_secs_f64();
            if used_by_this_thread() > due + share.mul_f64(gone) {
                std::thread::sleep(SLICE);
                continue;
            }
            let slice = Instant::now();
            while slice.elapsed() < SLICE {
                std::hint::spin_loop();
            }
        }
        (due, ended) = (due + share, until);
    }
}
