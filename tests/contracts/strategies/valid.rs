//! `any` and `valid`: values that break no rule.

use agent_checkpoint::formats::story_pipeline::StoryCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::strategies::{Examine, valid};
use proptest::arbitrary::{Arbitrary, any};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::common::cases;

use super::{for_each_type, sample, shrink_all_ways};

fn assert_valid<C: Examine>(value: &C) {
    let document = Document::new(value).unwrap();
    let violations = C::examine(&document).unwrap();
    assert!(violations.is_empty(), "{violations:?}\n{}", document.text());
    assert_eq!(document.read::<C>().unwrap().value, *value);
}

/// Even without the check that `valid` makes of each value.
fn any_has_no_violations<C: Arbitrary + Examine>() {
    for value in sample(&any::<C>(), cases(150) as usize) {
        assert_valid(&value);
    }
}
for_each_type!(any_has_no_violations);

fn shrinks_through_valid_values<C: Arbitrary + Examine>() {
    let seen = shrink_all_ways(&valid::<C>(), 6, |value| assert_valid(&value));
    assert!(seen > 200, "only {seen} steps");
}
for_each_type!(shrinks_through_valid_values);

/// Even with the shortest possible text.
#[test]
fn a_verdict_that_refuses_says_why() {
    let refused = any::<StoryCheckpoint>().prop_filter("nothing is refused", |story| {
        story.reason.is_some() || story.issues.is_some()
    });
    let mut runner = TestRunner::deterministic();
    for _ in 0..40 {
        let mut tree = refused.new_tree(&mut runner).unwrap();
        while tree.simplify() || tree.complicate() {}
        assert_valid(&tree.current());
    }
}
