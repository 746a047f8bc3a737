//! Properties of every checkpoint and every text.

use crate::common::{key, time};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::{
    CompletedStep, CurrentStep, Decision, Metadata, TaskCheckpoint, Verification,
    VerificationResult,
};
use agent_checkpoint::formats::{Formats, violations};
use agent_checkpoint::json::{Document, Kind, Node, salvage};
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Outcome, Put};
use agent_checkpoint::strategies::{json_object, restyled, valid};
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, DropReason, Dropped, ErrorKind, Limits, RuleContext,
};
use proptest::prelude::*;

fn stored(text: &str) -> MemoryStore {
    let store = MemoryStore::new();
    let document = Document::from_text(text).unwrap();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
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
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_valid_checkpoint_comes_back_from_its_text_equal_and_valid(task in any::<TaskCheckpoint>()) {
        let document = Document::new(&task).unwrap();
        let reading = document.read::<TaskCheckpoint>().unwrap();
        prop_assert_eq!(violations(&document, &reading, &RuleContext::none()), vec![]);
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
            format.violations(&loaded.document, &RuleContext::none().with_now(time("2026-01-01T00:00:00Z"))).unwrap();
            format.inspect(&loaded.document, &RuleContext::none()).unwrap();
        }
    }

    /// For any text, a change either succeeds and reads back, with all members that the type does not declare still
    /// there, or is refused with nothing written.
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

        // Dropped and remaining steps together are the original ones, in order.
        let mut all: Vec<CompletedStep> = truncation
            .dropped
            .iter()
            .filter(|piece| piece.pointer.starts_with("/completedSteps/"))
            .map(|piece| serde_json::from_value(piece.value.clone()).unwrap())
            .collect();
        all.extend(small.completed_steps.iter().cloned());
        prop_assert_eq!(&all, &task.completed_steps);
        // Every changed text is recorded whole.
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
            // No item is dropped for a size that cannot be reached.
            let for_size = |piece: &Dropped| matches!(piece.reason, DropReason::Bytes(_));
            prop_assert!(!truncation.dropped.iter().any(for_size));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// One slip in a text on one line

/// A text with one mistake, and its position.
#[derive(Clone, Copy, Debug)]
enum Slip {
    QuoteGone,
    QuoteTwice,
    BracketTwice,
}

fn slip() -> impl Strategy<Value = Slip> {
    prop_oneof![
        4 => Just(Slip::QuoteGone),
        1 => Just(Slip::QuoteTwice),
        4 => Just(Slip::BracketTwice),
    ]
}

/// The positions of all unescaped quotes, and of all bytes between strings.
fn outside_strings(text: &str) -> (Vec<usize>, Vec<usize>) {
    let (mut quotes, mut between) = (Vec::new(), Vec::new());
    let (mut is_inside, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'"' && !is_escaped {
            is_inside = !is_inside;
            quotes.push(at);
        } else if !is_inside {
            between.push(at);
        }
        is_escaped = is_inside && byte == b'\\' && !is_escaped;
    }
    (quotes, between)
}

impl Slip {
    fn in_text(self, text: &str, index: prop::sample::Index) -> (String, usize) {
        let (quotes, mut between) = outside_strings(text);
        let mut slipped = text.to_owned();
        let at = match self {
            Slip::QuoteGone => {
                let at = *index.get(&quotes);
                slipped.remove(at);
                at
            }
            Slip::QuoteTwice => {
                let at = *index.get(&quotes);
                slipped.insert(at, '"');
                at
            }
            Slip::BracketTwice => {
                between.retain(|&at| b"{}[]".contains(&text.as_bytes()[at]));
                let at = *index.get(&between);
                slipped.insert(at, char::from(text.as_bytes()[at]));
                at
            }
        };
        (slipped, at)
    }
}

/// Whether one value is contained in the other, at its place and in its order.
fn is_part(part: Node<'_>, whole: Node<'_>) -> bool {
    match part.kind() {
        Kind::Object => {
            let has = |(name, part): (std::borrow::Cow<'_, str>, Node<'_>)| {
                whole.get(&name).is_some_and(|whole| is_part(part, whole))
            };
            whole.kind() == Kind::Object && part.members().all(has)
        }
        Kind::Array => {
            let mut elements = whole.elements();
            let has = |part| elements.any(|whole| is_part(part, whole));
            whole.kind() == Kind::Array && part.elements().all(has)
        }
        _ => part.raw() == whole.raw(),
    }
}

/// Whether the doubled bracket can be a different one than that at `at`.
fn is_another_doubled(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let ends = |at: usize| (at..bytes.len()).find(|&end| bytes[end] != bytes[at]);
    let own = ends(at);
    let mut between = outside_strings(text).1.into_iter().filter(|&other| {
        other > 0 && bytes[other] == bytes[other - 1] && b"{}[]".contains(&bytes[other])
    });
    between.any(|other| {
        let mut without = text.to_owned();
        without.remove(other);
        ends(other) != own && Document::from_text(without).is_ok()
    })
}

fn one_slip_costs_one_member(
    text: &str,
    slip: Slip,
    index: prop::sample::Index,
) -> Result<(), TestCaseError> {
    let whole = Document::from_text(text).unwrap();
    let (slipped, at) = slip.in_text(text, index);
    if Document::from_text(slipped.as_str()).is_ok() {
        return Ok(()); // A quote that is doubled in an empty text, say.
    }
    let Some(salvage) = salvage(slipped.as_bytes()) else {
        prop_assert!(whole.root().members().count() <= 1, "{}", slipped);
        return Ok(());
    };
    let kept = salvage.document;
    prop_assert!(!salvage.left_out.is_empty());
    if slipped.starts_with(kept.text()) {
        return Ok(()); // It begins with a whole object, and what is behind that is named.
    }
    prop_assert!(
        is_part(kept.root(), whole.root()),
        "{slipped}\n{}",
        kept.text()
    );
    if matches!(slip, Slip::BracketTwice) {
        let is_clear = !is_another_doubled(&slipped, at);
        prop_assert!(
            !is_clear || kept.text() == text,
            "{slipped}\n{}",
            kept.text()
        );
        return Ok(());
    }
    let mut begin = 1;
    for (name, node) in whole.root().members() {
        let end = node.range().end;
        if !(begin..=end).contains(&at) {
            let raw = kept.root().get(&name).map(|node| node.raw());
            prop_assert_eq!(raw, Some(node.raw()), "{}\n{}", slipped, kept.text());
        }
        begin = end;
    }
    Ok(())
}

macro_rules! one_slip {
    ($($name:ident: $type:ty),*) => {$(
        proptest! {
            #![proptest_config(crate::common::tries(256))]

            #[test]
            fn $name(value in valid::<$type>(), slip in slip(), index in any::<prop::sample::Index>()) {
                one_slip_costs_one_member(&serde_json::to_string(&value).unwrap(), slip, index)?;
            }
        }
    )*};
}

one_slip!(
    one_slip_in_a_task: TaskCheckpoint,
    one_slip_in_a_builder_state: BuilderState,
    one_slip_in_a_story: StoryCheckpoint,
    one_slip_in_a_story_state: PipelineState,
    one_slip_in_a_build: BuildCheckpoint,
    one_slip_in_an_agent_session: AgentCheckpoint,
    one_slip_in_a_sitebuilder: SitebuilderCheckpoint
);
