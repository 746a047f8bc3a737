//! Keeping what a save adds within the limits, so that the hand-off stays useful.
//!
//! The note on partial work and the reasons of new decisions are cut to their lengths. Then the oldest
//! finished steps are moved out, as few as cover what the save adds: steps against the limit of the list,
//! bytes against the target of the whole. What the checkpoint was over before, it stays over. Where the
//! steps that may go would not cover it, none goes for the size. Nothing else is cut for the size.
//!
//! What has no place in the new checkpoint is kept in the dropped log, and the checkpoint says how many
//! steps are there.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::{DroppedSteps, TaskCheckpoint};
use crate::checkpoint::{DropReason, Dropped, Limits, OverBudget, Truncation};
use crate::json::{Document, Kind, Node};

pub(super) fn shrink(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
) -> Truncation {
    let mut truncation = Truncation::default();
    keep_put_aside(checkpoint, before, &mut truncation);
    cut_note(checkpoint, limits, before, &mut truncation);
    cut_rationales(checkpoint, limits, before, &mut truncation);
    keep_newest_steps(checkpoint, limits, before, &mut truncation);
    fit_size(checkpoint, limits, before, &mut truncation);
    truncation
}

/// A step that was put aside for another goes back to the plan, which has no place for its note; one that was dropped
/// has no place at all. One in other words, with its note, is the same step.
fn keep_put_aside(
    checkpoint: &TaskCheckpoint,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let Some(step) = before.and_then(|before| before.current_step.as_ref()) else {
        return;
    };
    let now = checkpoint.current_step.as_ref();
    let is_left = step.description.as_ref().is_some_and(|text| {
        let dropped = TaskCheckpoint::dropping(text);
        let mut decisions = checkpoint.decisions.iter();
        checkpoint.pending_steps.contains(text)
            || decisions.any(|made| made.decision.as_ref() == Some(&dropped))
    });
    let is_current = now.is_some_and(|now| {
        now.description == step.description || now.partial_work == step.partial_work
    });
    if step.partial_work.is_some() && is_left && !is_current {
        let value = serde_json::to_value(step).unwrap_or_default();
        let dropped = Dropped::new("/currentStep", DropReason::PutAside, value);
        truncation.dropped.push(dropped);
    }
}

fn cut_note(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let old = before
        .and_then(|before| before.current_step.as_ref())
        .and_then(|step| step.partial_work.as_ref());
    let Some(step) = &mut checkpoint.current_step else {
        return;
    };
    let (Some(note), Some(limit)) = (&mut step.partial_work, limits.partial_work) else {
        return;
    };
    if Some(&*note) != old {
        let reason = DropReason::Characters(limit);
        cut(
            note,
            limit,
            reason,
            "/currentStep/partialWork",
            limits,
            truncation,
        );
    }
}

fn cut_rationales(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let Some(limit) = limits.rationale else {
        return;
    };
    let old: HashSet<&String> = before
        .into_iter()
        .flat_map(|before| &before.decisions)
        .filter_map(|decision| decision.rationale.as_ref())
        .collect();
    for (index, decision) in checkpoint.decisions.iter_mut().enumerate() {
        let Some(rationale) = &mut decision.rationale else {
            continue;
        };
        if !old.contains(rationale) {
            let pointer = format!("/decisions/{index}/rationale");
            let reason = DropReason::Characters(limit);
            cut(rationale, limit, reason, &pointer, limits, truncation);
        }
    }
}

/// Cuts one text and keeps the whole of it in the record.
fn cut(
    text: &mut String,
    limit: usize,
    reason: DropReason,
    pointer: &str,
    limits: &Limits,
    truncation: &mut Truncation,
) {
    if let Some(short) = limits.cut(text, limit) {
        let whole = Value::String(std::mem::replace(text, short));
        let dropped = Dropped::new(pointer, reason, whole);
        truncation.dropped.push(dropped);
    }
}

fn keep_newest_steps(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let Some(limit) = limits.completed_steps else {
        return;
    };
    let had = before.map_or(0, |before| before.completed_steps.len());
    let surplus = checkpoint
        .completed_steps
        .len()
        .saturating_sub(limit.max(had));
    move_out(
        checkpoint,
        surplus,
        0,
        DropReason::Elements(limit),
        limits,
        truncation,
    );
}

fn fit_size(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let Some(limit) = limits.total_bytes else {
        return;
    };
    let size = compact_size(checkpoint);
    if size <= limit {
        return;
    }
    let had = before.map_or(0, compact_size);
    if size <= had {
        return;
    }
    let gone = before_these(truncation);
    let surplus = steps_that_cover(checkpoint, size, limit.max(had), limits);
    move_out(
        checkpoint,
        surplus,
        gone,
        DropReason::Bytes(limit),
        limits,
        truncation,
    );
    let size = compact_size(checkpoint);
    if size > limit && size > had {
        let over = OverBudget::new(size, limit);
        truncation.over_budget = Some(name_longest(over, checkpoint));
    }
}

/// How many steps were moved out already.
fn before_these(truncation: &Truncation) -> usize {
    let pointers = truncation.dropped.iter().map(|dropped| &dropped.pointer);
    pointers
        .filter(|pointer| pointer.starts_with("/completedSteps/"))
        .count()
}

/// How many of the oldest steps must go so that `size` bytes become `allowed`; none where those that may go
/// would not do: one long text would take all of them with it.
fn steps_that_cover(
    checkpoint: &TaskCheckpoint,
    size: usize,
    allowed: usize,
    limits: &Limits,
) -> usize {
    let steps = &checkpoint.completed_steps;
    let may_go = steps.len().saturating_sub(limits.steps_kept_over_size);
    // The member that counts them has bytes, too.
    let member = |dropped: Option<&DroppedSteps>| {
        dropped.map_or(0, |dropped| compact_size(dropped) + ",\"dropped\":".len())
    };
    let rest = size - member(checkpoint.dropped.as_ref());
    let mut freed = 0;
    for (step, count) in steps.iter().take(may_go).zip(1..) {
        freed += compact_size(step) + 1;
        let counted = counted(checkpoint.dropped.clone(), count, limits);
        if rest + member(Some(&counted)) <= allowed + freed {
            return count;
        }
    }
    0
}

/// The count of the steps that are only in the dropped log, with so many more.
fn counted(dropped: Option<DroppedSteps>, more: usize, limits: &Limits) -> DroppedSteps {
    let dropped = dropped.unwrap_or_default();
    let before = dropped.completed_steps.unwrap_or(0);
    DroppedSteps {
        completed_steps: Some(before.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))),
        place: limits.dropped_log.clone().or(dropped.place),
    }
}

/// Moves the oldest steps out, of which `gone` went before.
fn move_out(
    checkpoint: &mut TaskCheckpoint,
    count: usize,
    gone: usize,
    reason: DropReason,
    limits: &Limits,
    truncation: &mut Truncation,
) {
    if count == 0 {
        return;
    }
    for (step, index) in checkpoint.completed_steps.drain(..count).zip(gone..) {
        let pointer = format!("/completedSteps/{index}");
        let value = serde_json::to_value(step).unwrap_or_default();
        truncation
            .dropped
            .push(Dropped::new(pointer, reason, value));
    }
    checkpoint.dropped = Some(counted(checkpoint.dropped.take(), count, limits));
}

/// Names the part of a checkpoint that has most of its bytes and can be made smaller: a list, or a free text.
fn name_longest(over: OverBudget, checkpoint: &TaskCheckpoint) -> OverBudget {
    let compact = serde_json::to_string(checkpoint).ok();
    let Some(document) = compact.and_then(|text| Document::from_text(text).ok()) else {
        return over;
    };
    match longest(document.root()) {
        Some(part) => {
            let entries = part.elements().count();
            let entries = (part.kind() == Kind::Array).then_some(entries);
            over.with_longest(part.pointer(), part.raw().len(), entries)
        }
        None => over,
    }
}

/// Members that hold no free text: times and words of the schema.
const NOT_FREE: [&str; 8] = [
    "timestamp",
    "startedAt",
    "lastUpdatedAt",
    "runAt",
    "phase",
    "status",
    "reason",
    "dropped",
];

/// The longest list below a node; what is in it instead, where that alone makes up most of it.
fn longest(node: Node<'_>) -> Option<Node<'_>> {
    let members = node.members();
    let members = members.filter(|(name, _)| !NOT_FREE.contains(&&**name));
    let members = members.map(|(_, member)| member);
    let heaviest = members
        .chain(node.elements())
        .max_by_key(|part| part.raw().len());
    let inside = heaviest.and_then(longest);
    match (node.kind(), inside) {
        (Kind::String, _) => Some(node),
        (Kind::Array, Some(inside)) if inside.raw().len() * 2 <= node.raw().len() => Some(node),
        (Kind::Array, None) => Some(node),
        (_, inside) => inside,
    }
}

/// The bytes of a value in its compact form.
fn compact_size<T: Serialize>(value: &T) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::{CompletedStep, CurrentStep, Decision};
    use super::*;
    use crate::checkpoint::{Checkpoint, Operation, OperationContext, StepDone};

    fn steps(count: usize) -> Vec<CompletedStep> {
        (0..count)
            .map(|index| CompletedStep::new(format!("step {index}")))
            .collect()
    }

    fn task(count: usize) -> TaskCheckpoint {
        TaskCheckpoint {
            completed_steps: steps(count),
            pending_steps: vec!["left".into()],
            ..TaskCheckpoint::default()
        }
    }

    #[test]
    fn the_newest_ten_steps_stay_and_the_rest_is_recorded_whole() {
        let mut checkpoint = task(12);
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(10)));
        assert_eq!(checkpoint.completed_steps, steps(12)[2..]);
        let gone: Vec<_> = truncation.dropped.iter().map(|d| &*d.pointer).collect();
        assert_eq!(gone, ["/completedSteps/0", "/completedSteps/1"]);
        let value: CompletedStep =
            serde_json::from_value(truncation.dropped[1].value.clone()).unwrap();
        assert_eq!(value, steps(2)[1]);
        // And the checkpoint says how many, as often as some go.
        assert_eq!(checkpoint.dropped.clone().unwrap().completed_steps, Some(2));
        let before = checkpoint.clone();
        checkpoint.completed_steps.push(CompletedStep::new("more"));
        let limits = Limits {
            dropped_log: Some("log".into()),
            ..Limits::default()
        };
        assert_eq!(
            shrink(&mut checkpoint, &limits, Some(&before))
                .dropped
                .len(),
            1
        );
        let dropped = checkpoint.dropped.unwrap();
        assert_eq!(dropped.completed_steps, Some(3));
        assert_eq!(dropped.place.as_deref(), Some("log"));
    }

    #[test]
    fn what_was_over_before_stays_over_and_only_what_a_save_adds_is_covered() {
        let mut before = task(30);
        for step in &mut before.completed_steps {
            step.files_created = vec!["f".repeat(200)];
        }
        let mut checkpoint = before.clone();
        checkpoint.blockers.push("x".into());
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&before));
        assert_eq!(
            truncation.dropped.len(),
            1,
            "a blocker is as long as a part of a step"
        );
        assert_eq!(checkpoint.completed_steps, before.completed_steps[1..]);
        assert!(compact_size(&checkpoint) <= compact_size(&before));
        assert!(truncation.over_budget.is_none());
        // Nothing was lengthened: nothing goes.
        let mut checkpoint = before.clone();
        checkpoint.pending_steps.clear();
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&before));
        assert!(truncation.is_empty());
        // One step more: one goes.
        let mut checkpoint = before.clone();
        checkpoint.completed_steps.push(CompletedStep::new("more"));
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&before));
        assert_eq!(truncation.dropped.len(), 1);
        assert_eq!(checkpoint.completed_steps.len(), 30);
    }

    #[test]
    fn texts_are_cut_only_when_a_save_sets_them() {
        let long = "x".repeat(300);
        let mut checkpoint = task(0);
        checkpoint.current_step = Some(CurrentStep {
            partial_work: Some(long.clone()),
            ..CurrentStep::new("a")
        });
        checkpoint.decisions = vec![Decision {
            rationale: Some(long.clone()),
            ..Decision::new("b")
        }];
        let before = checkpoint.clone();
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&before));
        assert!(truncation.is_empty());
        let truncation = shrink(&mut checkpoint, &Limits::default(), None);
        assert_eq!(truncation.dropped.len(), 2);
        assert!(truncation.dropped.iter().all(|d| d.value == long.as_str()));
        let note = checkpoint.current_step.unwrap().partial_work.unwrap();
        assert_eq!((note.chars().count(), note.ends_with('…')), (200, true));
        let rationale = checkpoint.decisions[0].rationale.as_ref().unwrap();
        assert_eq!(rationale.chars().count(), 100);
    }

    #[test]
    fn pending_steps_never_go_and_being_over_is_a_finding() {
        let mut checkpoint = task(10);
        checkpoint.pending_steps = (0..200).map(|n| format!("pending step {n}")).collect();
        let pending = checkpoint.pending_steps.clone();
        let truncation = shrink(&mut checkpoint, &Limits::default(), None);
        assert_eq!(checkpoint.pending_steps, pending);
        // Nothing goes for a size that it would not bring.
        assert_eq!(checkpoint.completed_steps, steps(10));
        assert_eq!(truncation.dropped, []);
        let over = truncation.over_budget.unwrap();
        assert_eq!(over.bytes, compact_size(&checkpoint));
        assert_eq!(over.limit, 2048);
        assert_eq!(over.longest.unwrap(), "/pendingSteps");
        assert_eq!(over.entries, Some(200));
        let list = serde_json::to_vec(&pending).unwrap().len();
        assert!(
            over.longest_bytes >= list,
            "{} of {list}",
            over.longest_bytes
        );
    }

    #[test]
    fn neither_a_stamp_nor_a_word_of_the_schema_is_called_too_long() {
        let mut checkpoint = task(0);
        checkpoint.pending_steps.clear();
        let now = crate::checkpoint::Timestamp::parse("2026-03-02T08:00:00.000000000Z");
        for number in 0..60 {
            checkpoint.decisions.push(Decision {
                timestamp: Some(now.clone()),
                ..Decision::new(format!("d{number}"))
            });
        }
        let over = shrink(&mut checkpoint, &Limits::default(), None);
        let over = over.over_budget.unwrap();
        assert_eq!(over.longest.as_deref(), Some("/decisions"));
        assert_eq!(over.entries, Some(60));
        // Through sixty names of files it is these.
        let mut step = CompletedStep::new("a");
        step.files_modified = (0..200).map(|n| format!("src/file{n}.rs")).collect();
        let mut checkpoint = task(0);
        checkpoint.completed_steps = vec![step];
        checkpoint.decisions = vec![Decision {
            rationale: Some("r".repeat(100)),
            ..Decision::new("b")
        }];
        let over = shrink(&mut checkpoint, &Limits::default(), None);
        let over = over.over_budget.unwrap();
        assert_eq!(
            over.longest.as_deref(),
            Some("/completedSteps/0/filesModified")
        );
        assert_eq!(over.entries, Some(200));
    }

    #[test]
    fn a_long_text_takes_no_finished_steps_with_it() {
        let reason = "r".repeat(90);
        let mut checkpoint = task(9);
        checkpoint
            .completed_steps
            .push(CompletedStep::new("x".repeat(3000)));
        checkpoint.decisions = vec![Decision {
            rationale: Some(reason.clone()),
            ..Decision::new("b")
        }];
        let whole = checkpoint.clone();
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(9)));
        assert_eq!(checkpoint, whole);
        assert_eq!(truncation.dropped, []);
        let over = truncation.over_budget.unwrap();
        assert_eq!(over.longest.unwrap(), "/completedSteps/9/step");

        // What is too many by itself goes all the same.
        checkpoint.completed_steps.push(CompletedStep::new("more"));
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(9)));
        assert_eq!(checkpoint.completed_steps.len(), 10);
        assert_eq!(truncation.dropped.len(), 1);
        assert!(truncation.over_budget.is_some());

        // Once three newer steps are there it goes as the oldest of those that go.
        for text in ["one", "two"] {
            checkpoint.completed_steps.push(CompletedStep::new(text));
        }
        let truncation = shrink(&mut checkpoint, &Limits::default(), None);
        assert!(truncation.over_budget.is_none());
        assert!(checkpoint.completed_steps.len() >= 3);
        assert!(compact_size(&checkpoint) <= 2048);
    }

    #[test]
    fn only_as_many_steps_go_as_the_size_needs() {
        let mut checkpoint = task(10);
        for step in &mut checkpoint.completed_steps {
            step.files_created = vec!["f".repeat(200)];
        }
        let truncation = shrink(&mut checkpoint, &Limits::default(), None);
        assert!(truncation.over_budget.is_none());
        let size = compact_size(&checkpoint);
        assert!(size <= 2048);
        assert!(size + 250 > 2048, "{size}: a step too many went");
    }

    #[test]
    fn the_note_of_a_step_that_is_put_aside_is_kept() {
        let context = OperationContext::at(chrono::DateTime::UNIX_EPOCH);
        let start = |text: &str| Operation::StepStart { text: text.into() };
        let text = "half".to_owned();
        let mut before = TaskCheckpoint::begin("dev", ["one", "two"], context.now);
        before.apply(&start("one"), &context).unwrap();
        before.apply(&Operation::Note { text }, &context).unwrap();
        let mut after = before.clone();
        after.apply(&start("two"), &context).unwrap();
        let truncation = shrink(&mut after, &Limits::default(), Some(&before));
        assert_eq!(truncation.dropped.len(), 1);
        assert_eq!(truncation.dropped[0].reason, DropReason::PutAside);
        assert_eq!(truncation.dropped[0].value["partialWork"], "half");
        // A step that was finished needs its note no more.
        let mut after = before.clone();
        let done = StepDone::current().into();
        after.apply(&done, &context).unwrap();
        assert!(shrink(&mut after, &Limits::default(), Some(&before)).is_empty());
    }

    #[test]
    fn reasons_are_not_cut_to_stumps_for_the_size_of_the_whole() {
        let reason = "It keeps the store serialisable and avoids a second lock on every save here";
        let mut checkpoint = task(0);
        for number in 0..40 {
            checkpoint.decisions.push(Decision {
                rationale: Some(reason.into()),
                ..Decision::new(format!("decision {number}"))
            });
        }
        let whole = checkpoint.clone();
        let truncation = shrink(&mut checkpoint, &Limits::default(), None);
        assert_eq!(checkpoint, whole);
        assert_eq!(truncation.dropped, []);
        assert_eq!(
            truncation.over_budget.unwrap().longest.as_deref(),
            Some("/decisions")
        );
    }
}
