//! What holds for every checkpoint and for every text.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use agent_checkpoint::checkpoint::{DropReason, Dropped, violations};
use agent_checkpoint::formats::BuilderState;
use agent_checkpoint::formats::task::{
    CompletedStep, CurrentStep, Decision, Metadata, TaskCheckpoint, Verification,
    VerificationResult,
};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::PutOptions;
use agent_checkpoint::strategies::{json_object, restyled};
use agent_checkpoint::{
    Checkpoint, CheckpointStore, CheckpointStoreExt, ErrorKind, Formats, Knowledge, Limits,
    MemoryStore, Outcome,
};
use common::{key, time};
use proptest::prelude::*;

fn stored(text: &str) -> MemoryStore {
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store.put(&key("a"), &document, &PutOptions::new()).unwrap();
    store
}

#[test]
fn an_empty_object_is_every_struct() {
    fn check<T: serde::de::DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
        assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    }
    check::<TaskCheckpoint>();
    check::<CompletedStep>();
    check::<CurrentStep>();
    check::<Decision>();
    check::<Verification>();
    check::<VerificationResult>();
    check::<Metadata>();
    check::<BuilderState>();
}

proptest! {
    #[test]
    fn a_valid_checkpoint_comes_back_from_its_text_equal_and_valid(task in any::<TaskCheckpoint>()) {
        let document = Document::new(&task).unwrap();
        let reading = document.read::<TaskCheckpoint>().unwrap();
        prop_assert_eq!(violations(&document, &reading, &Knowledge::none()), vec![]);
        prop_assert_eq!(reading.value, task);
    }

    #[test]
    fn any_object_loads_or_is_reported_and_an_unchanged_save_writes_nothing(
        text in json_object().prop_flat_map(restyled)
    ) {
        let store = stored(&text);
        let tasks = store.checkpoints::<TaskCheckpoint>();
        let loaded = tasks.get(&key("a")).unwrap();
        prop_assert_eq!(loaded.document.text(), &text);
        match tasks.update(&key("a"), |_| {}) {
            Ok(saved) => prop_assert_eq!(saved.outcome, Outcome::Unchanged),
            Err(error) => {
                let newer = matches!(error.kind(), ErrorKind::NewerSchema { .. });
                let unknown = loaded.violations.iter().any(|v| v.pointer == "/schemaVersion");
                prop_assert!(newer || unknown, "{error}");
            }
        }
        for format in Formats::default().iter() {
            (format.examine)(&loaded.document, &Knowledge::none().with_now(time("2026-01-01T00:00:00Z"))).unwrap();
            (format.open)(&loaded.document, &Knowledge::none()).unwrap();
        }
    }

    /// Whatever the text is like, a change either goes through and reads back, with all that the
    /// type does not know still there, or is refused with nothing written.
    #[test]
    fn a_change_goes_through_whole_or_not_at_all(
        text in json_object().prop_flat_map(restyled),
        wanted in any::<TaskCheckpoint>(),
    ) {
        let store = stored(&text);
        let tasks = store.checkpoints::<TaskCheckpoint>().with_limits(Limits::unlimited());
        let result = tasks.update(&key("a"), |task| {
            task.decisions.clone_from(&wanted.decisions);
            task.blockers.push("b".to_owned());
        });
        let after = store.load(&key("a")).unwrap().unwrap().document;
        if result.is_err() {
            prop_assert_eq!(after.text(), &text);
            return Ok(());
        }
        let read = after.read::<TaskCheckpoint>().unwrap().value;
        prop_assert_eq!(&read.decisions, &wanted.decisions);
        prop_assert_eq!(read.blockers.last().map(String::as_str), Some("b"));
        let before = Document::from_text(text).unwrap();
        for (name, value) in before.root().members() {
            let known = ["decisions", "blockers", "metadata"].contains(&&*name);
            let now = after.root().get(&name).map(|node| node.raw());
            prop_assert!(known || now == Some(value.raw()), "{name}");
        }
    }

    #[test]
    fn shrinking_drops_nothing_silently(
        task in any::<TaskCheckpoint>(),
        before in proptest::option::of(any::<TaskCheckpoint>()),
        steps in 0..12_usize,
        bytes in 200..4000_usize,
        note in 0..80_usize,
    ) {
        let mut limits = Limits::default();
        limits.completed_steps = Some(steps);
        limits.total_bytes = Some(bytes);
        limits.partial_work = Some(note);
        limits.rationale = Some(note);
        let mut small = task.clone();
        let truncation = small.shrink(&limits, before.as_ref());

        prop_assert_eq!(&small.pending_steps, &task.pending_steps);
        prop_assert_eq!(&small.blockers, &task.blockers);
        prop_assert_eq!(&small.verification, &task.verification);
        let texts = |task: &TaskCheckpoint| -> Vec<_> {
            task.decisions.iter().map(|decision| decision.decision.clone()).collect()
        };
        prop_assert_eq!(texts(&small), texts(&task));

        // What is gone and what is left are what was there, in order.
        let mut all: Vec<CompletedStep> = truncation
            .dropped
            .iter()
            .filter(|piece| piece.pointer.starts_with("/completedSteps/"))
            .map(|piece| serde_json::from_value(piece.value.clone()).unwrap())
            .collect();
        all.extend(small.completed_steps.iter().cloned());
        prop_assert_eq!(&all, &task.completed_steps);
        // Every text that differs is in the record, whole.
        for (index, (old, new)) in task.decisions.iter().zip(&small.decisions).enumerate() {
            if old.rationale != new.rationale {
                let pointer = format!("/decisions/{index}/rationale");
                let kept = truncation.dropped.iter().find(|piece| piece.pointer == pointer).unwrap();
                prop_assert_eq!(kept.value.as_str(), old.rationale.as_deref());
            }
        }
        let size = serde_json::to_vec(&small).unwrap().len();
        let grew = before.as_ref().is_none_or(|before| size > serde_json::to_vec(before).unwrap().len());
        prop_assert!(truncation.over_budget.is_none() || size > bytes);
        prop_assert!(truncation.over_budget.is_some() || size <= bytes || !grew);
        if truncation.over_budget.is_some() {
            // Nothing goes for a size that it would not bring.
            let for_size = |piece: &Dropped| matches!(piece.reason, DropReason::Bytes(_));
            prop_assert!(!truncation.dropped.iter().any(for_size));
        }
    }
}
