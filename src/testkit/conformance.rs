//! Running the rules.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::harness::Harness;
use super::report::{Line, Report, Verdict};
use super::rule::{Need, Rule};
use super::scene::Scene;
use super::{child, rules};

/// A run of the rules on one kind of store.
///
/// The macro [`store_conformance!`](crate::store_conformance) makes one for you; use this where there are no
/// tests, as in a tool that prints a [`Report`].
#[derive(Clone, Copy)]
#[must_use]
pub struct Conformance<'h> {
    harness: &'h dyn Harness,
    child: Option<&'h str>,
}

impl std::fmt::Debug for Conformance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conformance")
            .field("child", &self.child)
            .finish_non_exhaustive()
    }
}

impl<'h> Conformance<'h> {
    /// Rules on this kind of store, without other processes.
    pub fn of(harness: &'h dyn Harness) -> Self {
        Conformance {
            harness,
            child: None,
        }
    }

    /// Also the rules on several processes: `test` is the full name of a test of this very program that
    /// calls [`serve`], such as `my_store::testkit_child`. Only in a test program: another does not
    /// know the name, and its children fail at once.
    pub fn with_child(mut self, test: &'h str) -> Self {
        self.child = Some(test);
        self
    }

    /// What becomes of one rule, in a new place. A panic is a failure.
    pub fn judge(&self, rule: &Rule) -> Verdict {
        let ruling = catch_unwind(AssertUnwindSafe(|| {
            let scene = Scene::set(self.harness, self.child)?;
            scene.require(rule.needs)?;
            (rule.run)(&scene)
        }));
        match ruling {
            Ok(ruling) => Verdict::of(ruling),
            Err(panic) => Verdict::Failed(format!("panicked: {}", message(&*panic))),
        }
    }

    /// What becomes of every rule.
    pub fn report(&self) -> Report {
        let lines: Vec<Line> = rules()
            .map(|rule| Line::new(rule, self.judge(rule)))
            .collect();
        Report {
            unproved: self.unproved(&lines),
            lines,
        }
    }

    /// The promises for which no rule that needs them was tried to its end.
    fn unproved(&self, lines: &[Line]) -> Vec<&'static str> {
        let offered = catch_unwind(AssertUnwindSafe(|| {
            Scene::set(self.harness, self.child).map(|scene| scene.offered)
        }));
        // Where there is no place, every rule has failed.
        let Ok(Ok(offered)) = offered else {
            return Vec::new();
        };
        let is_proved = |need: Need| {
            let tried = |line: &Line| !matches!(line.verdict, Verdict::Skipped(_));
            let mut ruled = rules().zip(lines);
            ruled.any(|(rule, line)| rule.needs.contains(&need) && tried(line))
        };
        // What happens without power, and on other machines, no test of one program can show.
        let promises = [
            ("survives_power_loss", offered.survives_power_loss, None),
            (
                "excludes_processes",
                offered.excludes_processes,
                Some(Need::Processes),
            ),
            ("excludes_machines", offered.excludes_machines, None),
            ("claims", offered.claims, Some(Need::Claims)),
            ("history", offered.history, Some(Need::History)),
            ("recovery", offered.recovery, Some(Need::Recovery)),
            ("heartbeat", offered.heartbeat, Some(Need::Heartbeat)),
        ];
        let unproved = promises
            .into_iter()
            .filter(|(_, is_promised, need)| *is_promised && !need.is_some_and(is_proved));
        unproved.map(|(name, ..)| name).collect()
    }
}

/// What becomes of every rule on this kind of store, without other processes.
pub fn report(harness: &dyn Harness) -> Report {
    Conformance::of(harness).report()
}

/// Does what a parent wants of this program, when a rule started it as another process; else nothing. The
/// test that [`Conformance::with_child`] names is nothing but this call.
///
/// # Panics
///
/// When the store fails in this process; the parent says how.
#[allow(clippy::panic, reason = "that is how a test fails")]
pub fn serve(harness: &dyn Harness) {
    if !child::run(harness) {
        panic!("this process could not do its part");
    }
}

/// One rule as a test: see [`store_conformance!`](crate::store_conformance).
///
/// # Panics
///
/// When the store breaks the rule.
#[doc(hidden)]
#[allow(clippy::panic, reason = "that is how a test fails")]
pub fn test(conformance: Conformance<'_>, module: &str, name: &str) {
    let Some(rule) = rules().find(|rule| rule.name == name) else {
        panic!("there is no rule {name}");
    };
    match conformance.judge(rule) {
        Verdict::Held => {}
        Verdict::Skipped(why) => {
            // Past the capture of passing tests: what was not proved is always seen.
            let line = format!("SKIPPED {module}::{name} ({why})\n");
            let _seen = std::io::stderr().write_all(line.as_bytes());
        }
        Verdict::Failed(why) => panic!("{}\n{why}", rule.about),
    }
}

/// The name of a test as the test harness has it: without the crate.
#[doc(hidden)]
#[must_use]
pub fn test_name(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// What a panic said.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}
