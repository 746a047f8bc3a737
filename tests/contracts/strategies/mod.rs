//! The values of the library's strategies, and that shrinking keeps their promises.

mod any_shape;
mod as_agents_write_it;
mod oversized;
mod shares;
mod valid;
mod with_unknown_fields;

use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Makes a test for each type of checkpoint from a function that is generic over the type.
macro_rules! for_each_type {
    ($function:ident) => {
        mod $function {
            #[test]
            fn of_a_task() {
                super::$function::<super::super::TaskCheckpoint>();
            }
            #[test]
            fn of_a_host_file() {
                super::$function::<super::super::BuilderState>();
            }
            #[test]
            fn of_an_agent() {
                super::$function::<super::super::AgentCheckpoint>();
            }
            #[test]
            fn of_a_sitebuilder() {
                super::$function::<super::super::SitebuilderCheckpoint>();
            }
            #[test]
            fn of_a_story() {
                super::$function::<super::super::StoryCheckpoint>();
            }
            #[test]
            fn of_a_pipeline() {
                super::$function::<super::super::PipelineState>();
            }
            #[test]
            fn of_a_build() {
                super::$function::<super::super::BuildCheckpoint>();
            }
        }
    };
}
pub(crate) use for_each_type;

/// Values of a strategy, the same on every run.
fn sample<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    let mut next = || strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| next()).collect()
}

/// Shrinks values in every way that a failing test may, with every sequence of the answers *still fails* and *does
/// not*, and calls `check` with each value on the way. Returns how many there were.
fn shrink_all_ways<S: Strategy>(strategy: &S, count: usize, check: impl Fn(S::Value)) -> usize {
    const STEPS: usize = 60;
    let mut runner = TestRunner::deterministic();
    let mut seen = 0;
    for _ in 0..count {
        let mut tree = strategy.new_tree(&mut runner).unwrap();
        // A fixed sequence decides which steps are undone.
        let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..STEPS {
            bits = bits.rotate_left(7).wrapping_mul(5).wrapping_add(1);
            let moved = if bits.is_multiple_of(3) {
                tree.complicate()
            } else {
                tree.simplify()
            };
            if !moved && !tree.simplify() {
                break;
            }
            check(tree.current());
            seen += 1;
        }
    }
    seen
}

/// Asserts that a share is what a page says, within the tolerance for this many values.
fn assert_share(what: &str, count: usize, of: usize, expected: f64) {
    let share = count as f64 / of as f64;
    // The random deviation for this many values, plus the rounding on the pages.
    let off = 2.5 * (expected * (1.0 - expected) / of as f64).sqrt() + 0.01;
    assert!(
        (share - expected).abs() < off,
        "{what}: {share:.3}, not {expected}"
    );
}
