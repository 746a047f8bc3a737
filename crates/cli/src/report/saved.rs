//! The result of a change.

use agent_checkpoint::formats::SavedFiles;
use agent_checkpoint::store::Saved;
use agent_checkpoint::{DropReason, Dropped, OverBudget, Truncation};
use serde::Serialize;

use super::{count, violation};
use crate::address::Target;
use crate::global::Global;
use crate::output::Outcome;

/// Reports a save: one line per change for a person, or everything as JSON. Dropped items and new violations go to
/// standard error in either case.
pub(crate) fn report(
    outcome: &mut Outcome,
    target: &Target,
    global: &Global,
    saved: &Saved,
    lines: &[String],
) {
    report_of_plan(outcome, target, global, saved, lines, &[]);
}

/// A save as JSON, with the steps that left the plan.
#[derive(Serialize)]
struct OfPlan<'s> {
    #[serde(flatten)]
    saved: &'s Saved,
    left_plan: &'s [String],
}

/// Reports a save that may have taken steps out of the plan.
pub(crate) fn report_of_plan(
    outcome: &mut Outcome,
    target: &Target,
    global: &Global,
    saved: &Saved,
    lines: &[String],
    left_plan: &[String],
) {
    outcome.is_done = true;
    if global.json {
        outcome.json(&OfPlan { saved, left_plan });
    } else {
        for line in lines {
            outcome.line(crate::output::one_line(line));
        }
        if let Some(archive) = &saved.archive {
            let line = format!(
                "the checkpoint before was archived as {}",
                archive.display()
            );
            outcome.line(crate::output::one_line(&line));
        }
    }
    if let Some(reason) = &saved.came_back {
        outcome.warn(format!(
            "an older state had replaced the newest one, and this save continues from it: {reason}; `ckpt history` \
             lists the states"
        ));
        outcome.found();
    }
    if let Some(note) = of_size(&saved.truncation, target) {
        outcome.note(note);
    }
    for note in of_files(&saved.files, global) {
        outcome.note(note);
    }
    for found in &saved.transient {
        outcome.note(format!("until the next report: {}", violation(found)));
    }
    for found in &saved.violations {
        outcome.say("new violation", &violation(found));
        outcome.found();
    }
}

/// Notes on the files that the checkpoint names.
fn of_files(files: &SavedFiles, global: &Global) -> Vec<String> {
    let root = match global.root.as_os_str().is_empty() {
        true => ".".into(),
        false => global.root.display().to_string(),
    };
    let mut notes = Vec::new();
    if !files.taken_over.is_empty() {
        notes.push(format!(
            "changed since it was recorded, and now recorded in its new state, because work was reported: {}; if \
             another program changed it, check it before you continue",
            files.taken_over.join(", ")
        ));
    }
    if !files.missing.is_empty() {
        notes.push(format!(
            "not found in {root} (--root): {}; recorded anyway; `stale` reports it until it exists",
            files.missing.join(", ")
        ));
    }
    if !files.outside.is_empty() {
        notes.push(format!(
            "outside of the project {root} (--root), where no file is inspected: {}; `stale` and `resume` cannot \
             decide whether it changed, and report that each time",
            files.outside.join(", ")
        ));
    }
    notes
}

/// One line about the dropped items, the reason, where they are kept, and whether the checkpoint is above its target
/// size.
fn of_size(truncation: &Truncation, target: &Target) -> Option<String> {
    let mut parts = Vec::new();
    let steps = |dropped: &&Dropped| dropped.pointer.starts_with("/completedSteps/");
    let moved = truncation.dropped.iter().filter(steps).count();
    let mut reasons: Vec<String> = Vec::new();
    for dropped in truncation.dropped.iter().filter(steps) {
        let reason = dropped.reason.to_string();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if moved > 0 {
        parts.push(format!(
            "moved out {} ({})",
            count(moved, "oldest finished step"),
            reasons.join("; ")
        ));
    }
    for dropped in truncation.dropped.iter().filter(|dropped| !steps(dropped)) {
        parts.push(match dropped.pointer.as_str() {
            "" => "the checkpoint as it was before is kept".to_owned(),
            // A superseded list is not superseded work but a plan for a later stage.
            pointer if dropped.reason == DropReason::Superseded && dropped.value.is_array() => {
                format!("{pointer} does not belong in this stage, and comes back in the stage that it belongs in")
            }
            pointer => format!("cut {pointer} ({})", dropped.reason),
        });
    }
    if !parts.is_empty() {
        parts.push(match &truncation.kept_in {
            Some(place) => format!("its full text is kept in {place}"),
            None => "it is not kept".to_owned(),
        });
    }
    parts.extend(
        truncation
            .over_budget
            .as_ref()
            .map(|over| too_large(over, target)),
    );
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The note that a checkpoint is above its target size, with its largest part and how to make it smaller.
fn too_large(over: &OverBudget, target: &Target) -> String {
    let (bytes, limit, place) = (over.bytes, over.limit, target.words());
    let size = format!("the checkpoint has {bytes} bytes, more than its target of {limit}");
    let Some(pointer) = &over.longest else {
        return size;
    };
    let pointer = target.pointer_in_file(pointer);
    let longest = over.longest_bytes;
    match over.entries {
        Some(entries) => format!(
            "{size}: its longest list is {pointer} ({entries} entries, {longest} bytes); where some are no longer \
             needed, write it shorter with: ckpt set {place} '{pointer}=[…]'"
        ),
        None => format!(
            "{size}: its longest text is {pointer} ({longest} bytes), shorten it with: ckpt set {place} \
             '{pointer}=\"…\"'"
        ),
    }
}
