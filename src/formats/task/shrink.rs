//! Cutting what a save adds to its limits, so that the hand-off stays useful.
//!
//! What has no place in the new checkpoint is kept too. In this order, each only as far as needed: the note on partial work and the reasons of new
//! decisions to their lengths, finished steps to the newest, then for the size of the whole the
//! oldest finished steps, reasons, and the note. Where all of these together would not bring it within
//! its size, none of them is cut for it. Pending steps, decisions, blockers, the current step and the
//! words of a finished one are never cut.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::TaskCheckpoint;
use crate::checkpoint::{DropReason, Dropped, Limits, OverBudget, Truncation};
use crate::json::{Document, Kind, Node};

/// How short a reason and a note become before the checkpoint is called over its size.
const SHORTEST_TEXT: usize = 40;

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

/// A step that was put aside for another goes back to the plan, which has no place for its note.
fn keep_put_aside(
    checkpoint: &TaskCheckpoint,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let Some(step) = before.and_then(|before| before.current_step.as_ref()) else {
        return;
    };
    let now = checkpoint.current_step.as_ref();
    let is_pending = step
        .description
        .as_ref()
        .is_some_and(|text| checkpoint.pending_steps.contains(text));
    let is_current = now.is_some_and(|now| now.description == step.description);
    if step.partial_work.is_some() && is_pending && !is_current {
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
        let whole = std::mem::replace(text, short);
        // A text may be cut twice, for its length and then for the size: the record keeps it whole.
        if !truncation.dropped.iter().any(|cut| cut.pointer == pointer) {
            let value = Value::String(whole);
            truncation
                .dropped
                .push(Dropped::new(pointer, reason, value));
        }
    }
}

fn keep_newest_steps(
    checkpoint: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
    truncation: &mut Truncation,
) {
    let count = checkpoint.completed_steps.len();
    let lengthened = before.is_none_or(|before| count > before.completed_steps.len());
    let Some(limit) = limits.completed_steps else {
        return;
    };
    if lengthened && count > limit {
        drop_oldest_steps(
            checkpoint,
            count - limit,
            DropReason::Elements(limit),
            truncation,
        );
    }
}

fn drop_oldest_steps(
    checkpoint: &mut TaskCheckpoint,
    count: usize,
    reason: DropReason,
    truncation: &mut Truncation,
) {
    let gone_before = truncation
        .dropped
        .iter()
        .filter(|dropped| dropped.pointer.starts_with("/completedSteps/"))
        .count();
    for (index, step) in checkpoint.completed_steps.drain(..count).enumerate() {
        let pointer = format!("/completedSteps/{}", gone_before + index);
        let value = serde_json::to_value(step).unwrap_or_default();
        truncation
            .dropped
            .push(Dropped::new(pointer, reason, value));
    }
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
    if size <= limit || before.is_some_and(|before| size <= compact_size(before)) {
        return;
    }
    let whole = checkpoint.clone();
    let cut_so_far = truncation.dropped.len();
    cut_to_size(checkpoint, size, limit, limits, truncation);
    let cut_to = compact_size(checkpoint);
    if cut_to <= limit {
        return;
    }
    // What does not bring it within its size is no reason to lose anything: one long text would take all
    // finished steps with it.
    *checkpoint = whole;
    truncation.dropped.truncate(cut_so_far);
    let over = OverBudget::new(size, limit);
    truncation.over_budget = Some(match longest_text(checkpoint) {
        Some(pointer) => over.with_longest(pointer),
        None => over,
    });
}

/// Cuts what may be cut, as far as needed.
fn cut_to_size(
    checkpoint: &mut TaskCheckpoint,
    mut size: usize,
    limit: usize,
    limits: &Limits,
    truncation: &mut Truncation,
) {
    let reason = DropReason::Bytes(limit);

    let mut oldest = 0;
    let droppable = checkpoint
        .completed_steps
        .len()
        .saturating_sub(limits.steps_kept_over_size);
    while size > limit && oldest < droppable {
        size -= compact_size(&checkpoint.completed_steps[oldest]) + 1;
        oldest += 1;
    }
    drop_oldest_steps(checkpoint, oldest, reason, truncation);

    for (index, decision) in checkpoint.decisions.iter_mut().enumerate() {
        if size <= limit {
            break;
        }
        if let Some(rationale) = &mut decision.rationale {
            let pointer = format!("/decisions/{index}/rationale");
            size -= shorten(rationale, reason, &pointer, limits, truncation);
        }
    }
    if size > limit
        && let Some(note) = checkpoint
            .current_step
            .as_mut()
            .and_then(|step| step.partial_work.as_mut())
    {
        shorten(note, reason, "/currentStep/partialWork", limits, truncation);
    }
}

/// Where the longest text of a checkpoint is.
fn longest_text(checkpoint: &TaskCheckpoint) -> Option<String> {
    let document = Document::new(checkpoint).ok()?;
    let mut longest = (0, None);
    measure(document.root(), &mut longest);
    longest.1
}

fn measure(node: Node<'_>, longest: &mut (usize, Option<String>)) {
    match node.kind() {
        Kind::Object => node
            .members()
            .for_each(|(_, member)| measure(member, longest)),
        Kind::Array => node
            .elements()
            .for_each(|element| measure(element, longest)),
        Kind::String if node.raw().len() > longest.0 => {
            *longest = (node.raw().len(), Some(node.pointer().to_string()));
        }
        _ => {}
    }
}

/// Cuts a text to its shortest, where that makes it smaller (the mark has bytes too), and says by how
/// many bytes.
fn shorten(
    text: &mut String,
    reason: DropReason,
    pointer: &str,
    limits: &Limits,
    truncation: &mut Truncation,
) -> usize {
    let long = compact_size(text);
    let short = limits
        .cut(text, SHORTEST_TEXT)
        .map_or(long, |short| compact_size(&short));
    if short >= long {
        return 0;
    }
    cut(text, SHORTEST_TEXT, reason, pointer, limits, truncation);
    long - short
}

/// The bytes of a value in its compact form.
fn compact_size<T: Serialize>(value: &T) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::{CompletedStep, CurrentStep, Decision};
    use super::*;

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
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(11)));
        assert_eq!(checkpoint.completed_steps, steps(12)[2..]);
        let gone: Vec<_> = truncation.dropped.iter().map(|d| &*d.pointer).collect();
        assert_eq!(gone, ["/completedSteps/0", "/completedSteps/1"]);
        let value: CompletedStep =
            serde_json::from_value(truncation.dropped[1].value.clone()).unwrap();
        assert_eq!(value, steps(2)[1]);
    }

    #[test]
    fn a_list_that_was_long_before_is_left_alone() {
        let mut checkpoint = task(12);
        checkpoint.blockers.push("x".into());
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(12)));
        assert!(truncation.is_empty());
        assert_eq!(checkpoint.completed_steps.len(), 12);
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
        assert_eq!(over.longest.unwrap(), "/pendingSteps/100");
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

        // What is too many or too long by itself goes all the same.
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
        let now = chrono::DateTime::UNIX_EPOCH;
        let mut before = TaskCheckpoint::begin("dev", ["one", "two"], now);
        before.start_step("one", now).unwrap();
        before.note_progress("half", chrono::Utc::now()).unwrap();
        let mut after = before.clone();
        after.start_step("two", now).unwrap();
        let truncation = shrink(&mut after, &Limits::default(), Some(&before));
        assert_eq!(truncation.dropped.len(), 1);
        assert_eq!(truncation.dropped[0].reason, DropReason::PutAside);
        assert_eq!(truncation.dropped[0].value["partialWork"], "half");
        // A step that was finished needs its note no more.
        let mut after = before.clone();
        after
            .finish_step(&super::super::StepDone::current(), now)
            .unwrap();
        assert!(shrink(&mut after, &Limits::default(), Some(&before)).is_empty());
    }

    #[test]
    fn a_text_that_the_mark_would_make_longer_is_left() {
        let mut checkpoint = task(0);
        checkpoint.decisions = vec![Decision {
            rationale: Some("x".repeat(41)),
            ..Decision::new("b")
        }];
        let limits = Limits {
            total_bytes: Some(1),
            ..Limits::default()
        };
        let truncation = shrink(&mut checkpoint, &limits, None);
        assert!(truncation.dropped.is_empty());
        assert!(truncation.over_budget.is_some());
        assert_eq!(checkpoint.decisions[0].rationale, Some("x".repeat(41)));
    }
}
