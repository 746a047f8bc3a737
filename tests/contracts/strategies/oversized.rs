//! `oversized`: valid except for its size, and the result of saving it.

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::store::MemoryStore;
use agent_checkpoint::strategies::{Examine, oversized};
use agent_checkpoint::{Checkpoint, Checkpoints, Key, Limits};
use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;

use crate::common::cases;

use super::{assert_share, for_each_type, sample, shrink_all_ways};

fn size<C: Examine>(value: &C) -> usize {
    serde_json::to_vec(value).unwrap().len()
}

fn assert_oversized<C: Examine>(value: &C) {
    assert!(size(value) > 2048, "{}", size(value));
    let document = Document::new(value).unwrap();
    let violations = C::examine(&document).unwrap();
    let mut others = violations
        .iter()
        .filter(|found| found.code != Code::TOO_LONG);
    assert_eq!(others.next(), None, "{}", document.text());
    assert_eq!(document.read::<C>().unwrap().value, *value);
}

fn is_valid_but_for_its_size<C: Arbitrary + Examine>() {
    for value in sample(&oversized::<C>(), cases(60) as usize) {
        assert_oversized(&value);
    }
}
for_each_type!(is_valid_but_for_its_size);

fn stays_oversized_when_it_shrinks<C: Arbitrary + Examine>() {
    let seen = shrink_all_ways(&oversized::<C>(), 2, |value| assert_oversized(&value));
    assert!(seen > 50, "only {seen} steps");
}
for_each_type!(stays_oversized_when_it_shrinks);

#[test]
fn it_is_large_in_texts_and_in_lists() {
    let tasks = sample(&oversized::<TaskCheckpoint>(), 400);
    let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.chars().count() > 200);
    let with_text = tasks.iter().filter(|task| {
        let notes = task.current_step.iter().map(|step| &step.partial_work);
        let reasons = task.decisions.iter().map(|decision| &decision.rationale);
        notes.chain(reasons).any(long)
    });
    assert!(with_text.count() > 10);
    let with_steps = tasks.iter().filter(|task| task.completed_steps.len() > 12);
    assert!(with_steps.count() > 10);
    let large = tasks.iter().filter(|task| size(*task) > 5120);
    assert_share("over 5,120 bytes", large.count(), tasks.len(), 0.5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::common::cases(64)))]

    /// Items that a save drops are recorded whole. If the checkpoint is still too large, the save reports that.
    #[test]
    fn a_save_cuts_or_says_that_it_is_over(task in oversized::<TaskCheckpoint>()) {
        let limits = Limits::default();
        let whole = serde_json::to_value(&task).unwrap();
        let mut cut = task.clone();
        let truncation = cut.shrink(&limits, None);
        prop_assert!(!truncation.is_empty());
        for dropped in &truncation.dropped {
            prop_assert_eq!(whole.pointer(&dropped.pointer), Some(&dropped.value), "{}", dropped.pointer);
        }
        match truncation.over_budget {
            None => prop_assert!(size(&cut) <= 2048),
            Some(over) => prop_assert_eq!((over.bytes, over.limit), (size(&cut), 2048)),
        }
        // The remaining steps and the dropped items are all the steps there were.
        let gone = task.completed_steps.len() - cut.completed_steps.len();
        let recorded = truncation.dropped.iter().filter(|dropped| dropped.pointer.starts_with("/completedSteps/"));
        prop_assert_eq!(gone, recorded.count());
        prop_assert_eq!(&task.pending_steps, &cut.pending_steps);

        let store = MemoryStore::new();
        let tasks = Checkpoints::<TaskCheckpoint>::new(store.clone());
        let saved = tasks.create(&Key::new("a").unwrap(), &task).unwrap();
        prop_assert!(!saved.truncation.is_empty());
    }
}
