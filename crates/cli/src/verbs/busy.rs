//! Shows on a terminal that a long scan is running.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::is_quiet;

/// A shorter scan shows nothing.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// The progress display; empty if standard error is no terminal.
pub(super) struct Busy {
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Busy {
    pub(super) fn new() -> Busy {
        Busy {
            began: Instant::now(),
            bar: None,
        }
    }

    pub(super) fn tell(&mut self, rows: usize) {
        if self.bar.is_none() && !is_quiet() && self.began.elapsed() > SHOWN_AFTER {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} checkpoints") {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(u64::try_from(rows).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
