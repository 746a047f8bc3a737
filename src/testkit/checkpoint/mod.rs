//! Proves a [`Checkpoint`] type: what a format's struct must keep so that no file of it is lost or spoilt.
//!
//! Samples are checkpoints of your type: give some that have something in every field. In a property test
//! call [`check`] on each that the strategy makes; else make tests with
//! [`checkpoint_conformance!`](crate::checkpoint_conformance).

mod places;
mod reading;
mod reports;
mod writing;

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::checkpoint::Checkpoint;

use super::conformance::message;
use super::report::{Line, Report, Verdict};
use super::rule::Ruling;

/// One rule that a checkpoint type keeps.
#[non_exhaustive]
pub struct Check<C> {
    /// Its name, which is that of its test.
    pub name: &'static str,
    /// What it proves.
    pub about: &'static str,
    run: fn(&[C]) -> Ruling,
}

impl<C> fmt::Debug for Check<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("name", &self.name).finish()
    }
}

impl<C: Checkpoint> Check<C> {
    /// What becomes of it on these samples. A panic is a failure.
    pub fn judge(&self, samples: &[C]) -> Verdict {
        let ruling = catch_unwind(AssertUnwindSafe(|| (self.run)(samples)));
        match ruling {
            Ok(ruling) => Verdict::of(ruling),
            Err(panic) => Verdict::Failed(format!("panicked: {}", message(&*panic))),
        }
    }
}

// Not derived: whether the checkpoints can be copied is nothing to a check of them.
impl<C> Clone for Check<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Check<C> {}

/// All checks, in the order of a report.
pub fn checks<C: Checkpoint>() -> impl Iterator<Item = Check<C>> {
    let check = |name, about, run| Check { name, about, run };
    [
        check(
            "an_empty_object_reads",
            "`{}` reads without a violation, and what it reads as is written and read again.",
            reading::an_empty_object_reads,
        ),
        check(
            "what_is_written_reads_back",
            "A checkpoint that is written reads back as it was, with no violation of its shape.",
            reading::what_is_written_reads_back,
        ),
        check(
            "what_does_not_fit_is_a_violation_and_costs_only_itself",
            "A value of another type, at any place, is a violation, and all beside it is read.",
            reading::what_does_not_fit_is_a_violation_and_costs_only_itself,
        ),
        check(
            "a_save_that_changes_nothing_changes_no_byte",
            "Written over the text it was read from, an unchanged checkpoint leaves every byte.",
            writing::a_save_that_changes_nothing_changes_no_byte,
        ),
        check(
            "a_changed_value_changes_only_its_bytes",
            "One value changed changes the bytes of that value, and no others.",
            writing::a_changed_value_changes_only_its_bytes,
        ),
        check(
            "unknown_keys_are_passed_over_and_stay",
            "A key that the type does not know is read past, at any depth, and stays when others change.",
            writing::unknown_keys_are_passed_over_and_stay,
        ),
        check(
            "the_format_has_a_name_and_keeps_its_version",
            "The format's name is lower case, and the version that is set is the version it says it has.",
            reports::the_format_has_a_name_and_keeps_its_version,
        ),
        check(
            "a_stamp_is_the_time_of_the_last_change",
            "A stamp sets the time of the last change, is read again, and moves with each later one.",
            reports::a_stamp_is_the_time_of_the_last_change,
        ),
        check(
            "what_is_cut_is_recorded",
            "Every text that goes to keep within limits is in the record of what was cut, whole.",
            reports::what_is_cut_is_recorded,
        ),
        check(
            "whatever_was_read_can_be_reported",
            "Hand-off, status, files, violations and plan come of whatever was read; each file once.",
            reports::whatever_was_read_can_be_reported,
        ),
        check(
            "a_refused_operation_changes_nothing",
            "An operation that the format lacks is refused as such, and a refused one changes nothing.",
            reports::a_refused_operation_changes_nothing,
        ),
    ]
    .into_iter()
}

/// What becomes of every check on these samples.
pub fn check<C: Checkpoint>(samples: &[C]) -> Report {
    let lines = checks::<C>().map(|check| Line {
        rule: check.name,
        about: check.about,
        verdict: check.judge(samples),
    });
    Report {
        lines: lines.collect(),
        unproved: Vec::new(),
    }
}

/// One check as a test: see [`checkpoint_conformance!`](crate::checkpoint_conformance).
///
/// # Panics
///
/// When the type breaks it.
#[doc(hidden)]
#[allow(clippy::panic, reason = "that is how a test fails")]
pub fn test<C: Checkpoint>(samples: &[C], module: &str, name: &str) {
    let Some(check) = checks::<C>().find(|check| check.name == name) else {
        panic!("there is no check {name}");
    };
    match check.judge(samples) {
        Verdict::Held => {}
        Verdict::Skipped(why) => {
            let line = format!("SKIPPED {module}::{name} ({why})\n");
            let _seen = std::io::stderr().write_all(line.as_bytes());
        }
        Verdict::Failed(why) => panic!("{}\n{why}", check.about),
    }
}

#[cfg(test)]
mod tests {
    /// The macro has the names, the list of checks has all the rest.
    #[test]
    fn every_check_is_a_test_and_every_test_is_a_check() {
        let checks = super::checks::<crate::formats::task::TaskCheckpoint>();
        let names: Vec<&str> = checks.map(|check| check.name).collect();
        assert_eq!(names, crate::__checkpoint_checks!(names));
    }
}
