//! What came of a change.

use agent_checkpoint::Saved;
use agent_checkpoint::checkpoint::{Dropped, FilesTold, OverBudget};
use serde::Serialize;

use super::violation;
use crate::address::Target;
use crate::args::Global;
use crate::output::Outcome;

/// Reports a save: a line for each thing that was done, for a person, or the whole of it as JSON; what was cut and what is wrong
/// now goes to standard error in either case.
pub(crate) fn report(
    outcome: &mut Outcome,
    target: &Target,
    global: &Global,
    saved: &Saved,
    lines: &[String],
) {
    report_of_plan(outcome, target, global, saved, lines, &[]);
}

/// A save as JSON, with what left the plan.
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
    for dropped in &saved.truncation.dropped {
        outcome.note(cut(dropped, saved.truncation.kept_in.as_deref()));
    }
    for note in of_files(&saved.files, global) {
        outcome.note(note);
    }
    if let Some(over) = &saved.truncation.over_budget {
        outcome.warn(too_large(over, target));
        outcome.found();
    }
    for found in &saved.transient {
        outcome.note(format!("until the next report: {}", violation(found)));
    }
    for found in &saved.violations {
        outcome.say("new violation", &violation(found));
        outcome.found();
    }
}

/// What is to be known of the files that the checkpoint names.
fn of_files(files: &FilesTold, global: &Global) -> Vec<String> {
    let root = match global.root.as_os_str().is_empty() {
        true => ".".into(),
        false => global.root.display().to_string(),
    };
    let mut notes = Vec::new();
    if !files.taken_over.is_empty() {
        notes.push(format!(
            "changed since it was recorded, and recorded as it is now, since work was reported: {}; if that is not \
             this agent's doing, look at it before going on",
            files.taken_over.join(", ")
        ));
    }
    if !files.missing.is_empty() {
        notes.push(format!(
            "not there in {root} (--root): {}; recorded all the same, and told by `stale` until it is there",
            files.missing.join(", ")
        ));
    }
    if !files.outside.is_empty() {
        notes.push(format!(
            "outside of the project {root} (--root), where nothing is looked at: {}; `stale` and `resume` cannot \
             tell whether it changed, and will say so each time",
            files.outside.join(", ")
        ));
    }
    notes
}

/// What was cut, why, and where it is.
fn cut(dropped: &Dropped, kept_in: Option<&str>) -> String {
    let kept = match kept_in {
        Some(place) => format!("the whole of it is kept in {place}"),
        None => "it is not kept".to_owned(),
    };
    if dropped.pointer.is_empty() {
        return format!("the checkpoint as it was before is put aside; {kept}");
    }
    format!("cut {} ({}); {kept}", dropped.pointer, dropped.reason)
}

/// That a checkpoint is too large, where most of it is, and what makes it smaller.
fn too_large(over: &OverBudget, target: &Target) -> String {
    let (bytes, limit, place) = (over.bytes, over.limit, target.path.display());
    let pointer = over.longest.as_deref().unwrap_or_default();
    let pointer = target.pointer_in_file(pointer);
    format!(
        "the checkpoint has {bytes} bytes, more than the {limit} it should have, and nothing that may be cut would \
         bring it there; its longest text is {pointer}, shorten it with: ckpt set {place} '{pointer}=\"…\"'"
    )
}
