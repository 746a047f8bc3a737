//! Turns of the threads of one store to write.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A queue of writers. Each writer is served in order of arrival, as soon as the one before it is done, so none waits
/// forever. SQLite allows one write at a time, and a waiter that only polls it finds out later.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    next: u64,
    /// The first one has its turn. Each has its own condition variable, so that only the next one is woken.
    waiting: VecDeque<(u64, Arc<Condvar>)>,
}

/// Ends the turn when it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'t> {
    turn: &'t Turn,
    number: u64,
}

impl Turn {
    fn line(&self) -> MutexGuard<'_, Line> {
        // A panic cannot leave the line half changed, so a poisoned lock is harmless.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn; `None` if it has not come at `until`.
    pub(crate) fn wait(&self, until: Instant) -> Option<Held<'_>> {
        let mut line = self.line();
        let number = line.next;
        line.next += 1;
        let moved = Arc::new(Condvar::new());
        line.waiting.push_back((number, Arc::clone(&moved)));
        // From here on, dropping `held` gives up the place in the line.
        let held = Held { turn: self, number };
        while line.waiting.front().map(|(first, _)| *first) != Some(number) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(line);
                return None;
            }
            let woken = moved.wait_timeout(line, left);
            line = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut line = self.turn.line();
        line.waiting.retain(|(number, _)| *number != self.number);
        if let Some((_, next)) = line.waiting.front() {
            next.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot go on should say where"
    )]

    use std::time::Duration;

    use super::*;

    #[test]
    fn turns_come_in_order_and_one_that_gives_up_holds_up_nobody() {
        let turn = Turn::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        let late = Instant::now() + Duration::from_secs(60);
        let first = turn.wait(late).unwrap();
        assert!(turn.wait(soon()).is_none(), "while the first has its turn");
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (turn, order) = (&turn, &order);
                scope.spawn(move || {
                    let _held = turn.wait(late).unwrap();
                    order.lock().unwrap().push(number);
                });
                while turn.line().waiting.len() < number + 2 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(turn.line().waiting.is_empty());
    }
}
