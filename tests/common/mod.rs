//! Helpers that several test files share.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

/// Declares that a test's store does not hand out these small traits.
macro_rules! hands_out_no {
    ($($name:ident: $small:ident),*) => {
        $(fn $name(&self) -> Option<&dyn agent_checkpoint::store::$small> {
            None
        })*
    };
}
pub(crate) use hands_out_no;

pub(crate) mod children;
pub(crate) mod only_swaps;

use std::path::Path;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::{
    Checkpoint, FixedClock, Key, Operation, OperationContext, Report, Result, Timestamp,
};
use chrono::{DateTime, Utc};
use proptest::test_runner::Config as ProptestConfig;

/// The example of the builder-state protocol: a host file with one checkpoint.
pub(crate) const EXAMPLE: &str = include_str!("../fixtures/builder-state-example.json");

/// How many of these cases are tried: of 256, the number in `AGENT_CHECKPOINT_CASES`. `PROPTEST_CASES` is not used,
/// because it overrides the configuration of every property.
pub(crate) fn cases(of: u32) -> u32 {
    let now = std::env::var("AGENT_CHECKPOINT_CASES").ok();
    let now = now.map_or(256, |now| now.parse().unwrap());
    (of * now.min(256) / 256).max(1)
}

/// The configuration for this many tries of a property. Failures are not stored in a file: each becomes a separate
/// test.
pub(crate) fn tries(of: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases(of))
    }
}

/// The positions of a long sequence that are tried: the first, and then every n-th.
pub(crate) fn places() -> impl Iterator<Item = usize> {
    (0..).step_by(256 / cases(256) as usize)
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn time(text: &str) -> DateTime<Utc> {
    Timestamp::parse(text).time().unwrap().to_utc()
}

pub(crate) fn clock(text: &str) -> FixedClock {
    FixedClock(time(text))
}

pub(crate) fn task(plan: &[&str]) -> TaskCheckpoint {
    TaskCheckpoint::begin("dev", plan.iter().copied(), time("2026-03-02T08:00:00Z"))
}

/// Applies reports to a checkpoint, each in the form of a batch: an operation, a finished step, or a report with
/// `force`.
pub(crate) trait Reporting: Checkpoint {
    /// Applies a report without an agent, at an arbitrary time.
    fn report(&mut self, report: impl Into<Report>) -> Result<()> {
        self.report_at(report, time("2026-03-02T08:10:00Z"))
    }

    fn report_at(&mut self, report: impl Into<Report>, now: DateTime<Utc>) -> Result<()> {
        self.report_in(report, OperationContext::at(now))
    }

    fn report_in(
        &mut self,
        report: impl Into<Report>,
        context: OperationContext<'_>,
    ) -> Result<()> {
        let report = report.into();
        self.apply(&report.operation, &context.with_force(report.force))
    }
}

impl<C: Checkpoint> Reporting for C {}

/// The report that a step begins.
pub(crate) fn start(text: &str) -> Operation {
    let text = text.to_owned();
    Operation::StepStart { text }
}

/// The report of a line of `ckpt batch`.
pub(crate) fn line(json: &str) -> Report {
    json.parse().unwrap()
}

/// Makes the next save of a store look for abandoned temporary files again, as it does an hour later.
pub(crate) fn an_hour_passes_since_the_sweep(folder: &Path) {
    for name in tree(folder) {
        let path = folder.join(&name);
        if name.ends_with(".agent-checkpoint/swept") {
            std::fs::remove_file(path).unwrap();
        } else if name.ends_with(".lock") {
            let text = std::fs::read(&path).unwrap();
            std::fs::write(&path, &text[..text.len().min(512)]).unwrap();
        }
    }
}

/// The names below a folder, at any depth, sorted.
pub(crate) fn tree(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            }
            names.push(name);
        }
    }
    names.sort();
    names
}
