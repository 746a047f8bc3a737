//! Keeps what a save adds within the limits, so that the hand-off stays useful.
//!
//! First the note on partial work and the reasons of new decisions are cut to their maximum lengths. Then the oldest
//! finished steps are moved out, as few as needed to offset what this save adds: steps against the limit of the list,
//! bytes against the target size of the checkpoint. An excess from before the save stays. If moving out all steps that
//! may go would not be enough, none is moved out for the size. Nothing else is cut for the size.
//!
//! Everything removed is kept in the dropped log, and the checkpoint states how many steps are there.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::{DroppedSteps, TaskCheckpoint};
use crate::checkpoint::{DropReason, Dropped, Limits, OverBudget, Truncation};
use crate::json::{Document, Kind, Node};

pub(super) fn shrink(
    task: &mut TaskCheckpoint,
    limits: &Limits,
    before: Option<&TaskCheckpoint>,
) -> Truncation {
    let mut shrinking = Shrinking {
        task,
        limits,
        before,
        moved_out: 0,
        truncation: Truncation::default(),
    };
    shrinking.keep_superseded();
    shrinking.cut_note();
    shrinking.cut_rationales();
    shrinking.keep_newest_steps();
    shrinking.fit_size();
    shrinking.truncation
}

struct Shrinking<'s> {
    task: &'s mut TaskCheckpoint,
    limits: &'s Limits,
    before: Option<&'s TaskCheckpoint>,
    /// The number of finished steps moved out so far.
    moved_out: usize,
    truncation: Truncation,
}

impl Shrinking<'_> {
    /// Keeps the former current step with its note, if another step replaced it or it was dropped: the plan has no
    /// place for the note. A reworded step with the same note is the same step.
    fn keep_superseded(&mut self) {
        let Some(step) = self.before.and_then(|before| before.current_step.as_ref()) else {
            return;
        };
        let is_left = step.description.as_ref().is_some_and(|text| {
            let dropped = TaskCheckpoint::dropping(text);
            let mut decisions = self.task.decisions.iter();
            self.task.pending_steps.contains(text)
                || decisions.any(|made| made.decision.as_ref() == Some(&dropped))
        });
        let is_current = self.task.current_step.as_ref().is_some_and(|now| {
            now.description == step.description || now.partial_work == step.partial_work
        });
        if step.partial_work.is_some() && is_left && !is_current {
            let value = serde_json::to_value(step).unwrap_or_default();
            let dropped = Dropped::new("/currentStep", DropReason::Superseded, value);
            self.truncation.dropped.push(dropped);
        }
    }

    fn cut_note(&mut self) {
        let old = self.before.and_then(|before| before.current_step.as_ref());
        let old = old.and_then(|step| step.partial_work.as_ref());
        let step = self.task.current_step.as_mut();
        let note = step.and_then(|step| step.partial_work.as_mut());
        if let (Some(note), Some(limit)) = (note, self.limits.partial_work)
            && Some(&*note) != old
        {
            let cut = cut(note, limit, "/currentStep/partialWork", self.limits);
            self.truncation.dropped.extend(cut);
        }
    }

    fn cut_rationales(&mut self) {
        let Some(limit) = self.limits.rationale else {
            return;
        };
        let old = self.before.into_iter().flat_map(|before| &before.decisions);
        let old: HashSet<&String> = old.filter_map(|made| made.rationale.as_ref()).collect();
        for (index, decision) in self.task.decisions.iter_mut().enumerate() {
            if let Some(rationale) = decision.rationale.as_mut()
                && !old.contains(rationale)
            {
                let pointer = format!("/decisions/{index}/rationale");
                let cut = cut(rationale, limit, &pointer, self.limits);
                self.truncation.dropped.extend(cut);
            }
        }
    }

    fn keep_newest_steps(&mut self) {
        let Some(limit) = self.limits.completed_steps else {
            return;
        };
        let had = self.before.map_or(0, |before| before.completed_steps.len());
        let surplus = self
            .task
            .completed_steps
            .len()
            .saturating_sub(limit.max(had));
        self.move_out(surplus, DropReason::Elements(limit));
    }

    fn fit_size(&mut self) {
        let Some(limit) = self.limits.total_bytes else {
            return;
        };
        let size = compact_size(self.task);
        if size <= limit {
            return;
        }
        let had = self.before.map_or(0, compact_size);
        if size <= had {
            return;
        }
        let surplus = self.steps_that_cover(size, limit.max(had));
        self.move_out(surplus, DropReason::Bytes(limit));
        let size = compact_size(self.task);
        if size > limit && size > had {
            let over = OverBudget::new(size, limit);
            self.truncation.over_budget = Some(name_longest(over, self.task));
        }
    }

    /// The number of oldest steps to move out so that `size` bytes become `allowed`; 0 if even all steps that may go
    /// are not enough, since one long text would otherwise remove them all.
    fn steps_that_cover(&self, size: usize, allowed: usize) -> usize {
        let steps = &self.task.completed_steps;
        let may_go = steps.len().saturating_sub(self.limits.steps_kept_over_size);
        // The member that counts dropped steps has bytes, too.
        let member = |dropped: Option<&DroppedSteps>| {
            dropped.map_or(0, |dropped| compact_size(dropped) + ",\"dropped\":".len())
        };
        let rest = size - member(self.task.dropped.as_ref());
        let mut freed = 0;
        for (step, count) in steps.iter().take(may_go).zip(1..) {
            freed += compact_size(step) + 1;
            if rest + member(Some(&self.counted(count))) <= allowed + freed {
                return count;
            }
        }
        0
    }

    /// The count of steps in the dropped log after `more` are moved out.
    fn counted(&self, more: usize) -> DroppedSteps {
        let dropped = self.task.dropped.clone().unwrap_or_default();
        let before = dropped.completed_steps.unwrap_or(0);
        DroppedSteps {
            completed_steps: Some(before.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))),
            place: self.limits.dropped_log.clone().or(dropped.place),
        }
    }

    /// Moves the oldest steps out.
    fn move_out(&mut self, count: usize, reason: DropReason) {
        if count == 0 {
            return;
        }
        self.task.dropped = Some(self.counted(count));
        for (step, index) in self
            .task
            .completed_steps
            .drain(..count)
            .zip(self.moved_out..)
        {
            let pointer = format!("/completedSteps/{index}");
            let value = serde_json::to_value(step).unwrap_or_default();
            let dropped = Dropped::new(pointer, reason, value);
            self.truncation.dropped.push(dropped);
        }
        self.moved_out += count;
    }
}

/// Cuts a text; returns the whole of it for the dropped log.
fn cut(text: &mut String, limit: usize, pointer: &str, limits: &Limits) -> Option<Dropped> {
    let short = limits.cut(text, limit)?;
    let whole = Value::String(std::mem::replace(text, short));
    Some(Dropped::new(pointer, DropReason::Characters(limit), whole))
}

/// Names the largest part of a checkpoint that can be made smaller: a list or a free text.
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

/// Members without free text: times and words of the schema.
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

/// The longest list below a node, or the part of it that alone makes up more than half.
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

/// The size of a value in compact JSON, in bytes.
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
        // The checkpoint states how many were dropped in all.
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
        // Nothing is moved out if that would not be enough.
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
        // The largest part is the list of file names.
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

        // A step too many is moved out nevertheless.
        checkpoint.completed_steps.push(CompletedStep::new("more"));
        let truncation = shrink(&mut checkpoint, &Limits::default(), Some(&task(9)));
        assert_eq!(checkpoint.completed_steps.len(), 10);
        assert_eq!(truncation.dropped.len(), 1);
        assert!(truncation.over_budget.is_some());

        // With three newer steps the long one may be moved out.
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
        assert_eq!(truncation.dropped[0].reason, DropReason::Superseded);
        // Dropped logs of 0.1 have it under this name.
        let written = serde_json::to_value(DropReason::Superseded).unwrap();
        assert_eq!(written, "put-aside");
        assert_eq!(truncation.dropped[0].value["partialWork"], "half");
        // The note of a finished step is not kept.
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
