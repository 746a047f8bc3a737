//! Proves stores and formats that others write.
//!
//! Feature `testkit`.

pub mod checkpoint;
mod child;
mod clock;
mod conformance;
mod harness;
mod macros;
mod report;
mod rule;
mod rules;
mod scene;
mod seam;

pub use clock::MovableClock;
pub use conformance::{Conformance, report, serve};
#[doc(hidden)]
pub use conformance::{test, test_name};
pub use harness::{Harness, Place};
pub use report::{Line, Report, Verdict};
pub use rule::{Need, Rule};
pub use rules::rules;
pub use seam::fail_call;
