//! Runs jobs on several threads and delivers their results in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How many jobs are queued for each thread, so that it need not wait for the next one.
const AHEAD: usize = 4;

/// More threads than this do not speed up a disk.
const MOST: usize = 256;

/// Runs `work` for each job on `threads` threads, and passes the results to `take` in the order of the jobs.
///
/// A few jobs are run on the calling thread, since they are not worth starting threads.
pub(super) fn in_order<J: Send, R: Send>(
    threads: usize,
    mut jobs: impl Iterator<Item = J>,
    work: impl Fn(J) -> R + Sync,
    mut take: impl FnMut(R),
) {
    let threads = threads.min(MOST);
    let first: VecDeque<J> = jobs.by_ref().take(threads * 2).collect();
    if threads < 2 || first.len() < threads * 2 {
        return first
            .into_iter()
            .chain(jobs)
            .for_each(|job| take(work(job)));
    }
    let mut jobs = first.into_iter().chain(jobs);
    let work = &work;
    std::thread::scope(|scope| {
        // Thread `n` gets every job whose index is `n` modulo the number of threads, which makes the order of results
        // known.
        let mut workers: Vec<(SyncSender<J>, Receiver<R>)> = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (give, given) = sync_channel(AHEAD);
            let (answer, answers) = sync_channel(AHEAD);
            scope.spawn(move || {
                for job in given {
                    if answer.send(work(job)).is_err() {
                        break;
                    }
                }
            });
            workers.push((give, answers));
        }
        // The end of the scope joins a thread that panicked, and passes the panic on.
        let (mut given, mut taken) = (0, 0);
        loop {
            while given < taken + threads * AHEAD {
                let Some(job) = jobs.next() else { break };
                if workers[given % threads].0.send(job).is_err() {
                    return;
                }
                given += 1;
            }
            if taken == given {
                return;
            }
            let Ok(result) = workers[taken % threads].1.recv() else {
                return;
            };
            taken += 1;
            take(result);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for threads in [0, 1, 2, 3, 8, usize::MAX] {
            for jobs in [0, 1, 5, 100] {
                let mut taken = Vec::new();
                let work = |job: u64| {
                    std::thread::sleep(std::time::Duration::from_micros(job * 7 % 11));
                    job * 2
                };
                in_order(threads, 0..jobs, work, |result| taken.push(result));
                let wanted: Vec<u64> = (0..jobs).map(|job| job * 2).collect();
                assert_eq!(taken, wanted, "{threads} threads");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_passed_on() {
        in_order(2, 0..100, |job| assert!(job != 50, "job 50"), |()| {});
    }
}
