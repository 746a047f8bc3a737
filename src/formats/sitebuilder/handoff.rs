//! Converts between a sitebuilder's checkpoint and the hand-off that all formats share.

use chrono::{DateTime, Utc};

use super::layout::checkpoint_id;
use super::{Context, SitebuilderCheckpoint, Subtask, SubtaskStatus, TaskError, TaskStatus};
use crate::checkpoint::{DoneItem, Handoff, OpenItem, Status, Timestamp, VerificationItem};
use crate::formats::Number;
use crate::is_blank;

/// The type of an error reported without one.
pub(super) const BLOCKER: &str = "blocker";

pub(super) fn status(checkpoint: &SitebuilderCheckpoint) -> Status {
    match (checkpoint.state(), &checkpoint.status) {
        (Some(TaskStatus::InProgress), _) => Status::InProgress,
        (Some(TaskStatus::Blocked), _) => Status::Blocked,
        (Some(TaskStatus::Complete), _) => Status::Complete,
        (_, Some(unknown)) => Status::Other(unknown.as_str().to_owned()),
        (_, None) => Status::NotStarted,
    }
}

pub(super) fn handoff(checkpoint: &SitebuilderCheckpoint) -> Handoff {
    let subtasks = &checkpoint.subtasks;
    let items = &subtasks.items;
    let of = |status: &SubtaskStatus| {
        let status = status.clone();
        items.iter().filter(move |item| item.is(&status))
    };
    let mut view = Handoff {
        task: checkpoint.task_id.clone(),
        description: checkpoint.task_title.clone(),
        status: status(checkpoint),
        agent: checkpoint.agent.clone(),
        updated_at: checkpoint.updated_at.clone(),
        done: of(&SubtaskStatus::Complete)
            .map(|item| done(item, checkpoint))
            .collect(),
        in_progress: of(&SubtaskStatus::InProgress)
            .map(|item| OpenItem::new(subtasks.name(item)))
            .collect(),
        blockers: blockers(checkpoint),
        verification: verification(checkpoint),
        instructions: instructions(checkpoint),
        stated_done: checkpoint.subtasks.completed.map(super::progress::whole),
        stated_total: checkpoint.subtasks.total.map(super::progress::whole),
        ..Handoff::default()
    };
    if checkpoint.state() == Some(TaskStatus::Complete) {
        // In a complete task only the open criteria are left.
        view.in_progress.clear();
        view.pending = owned(checkpoint.open_criteria());
    } else {
        // A subtask whose id is complete in another entry is listed as well; the next agent can report it done.
        let open = items
            .iter()
            .filter(|item| !item.is(&SubtaskStatus::Complete));
        view.pending = open.map(|item| subtasks.name(item)).collect();
        if view.pending.is_empty() {
            view.pending
                .extend(checkpoint.context.next_to_process.clone());
        }
    }
    let files = crate::checkpoint::Checkpoint::files(checkpoint);
    view.files = owned(files);
    view
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

/// A finished subtask. Its output is often relative to a subfolder, so the full path is looked up in the lists of
/// files.
fn done(item: &Subtask, checkpoint: &SitebuilderCheckpoint) -> DoneItem {
    let mut done = DoneItem::new(checkpoint.subtasks.name(item));
    if let Some(output) = item.output.as_deref().filter(|output| !output.is_empty()) {
        let is_it = |file: &&String| {
            let start = file.strip_suffix(output);
            start.is_some_and(|start| start.is_empty() || start.ends_with('/'))
        };
        match checkpoint.files_modified.iter().find(is_it) {
            Some(modified) => done.files_modified.push(modified.clone()),
            None => {
                let created = checkpoint.files_created.iter().find(is_it);
                done.files_created
                    .push(created.map_or(output, String::as_str).to_owned());
            }
        }
    }
    done
}

/// The errors that block, and in a blocked task also those that do not state whether they do.
fn blockers(checkpoint: &SitebuilderCheckpoint) -> Vec<String> {
    let blocked = checkpoint.state() == Some(TaskStatus::Blocked);
    let blocks = |error: &&TaskError| error.blocking.unwrap_or(blocked);
    let blocking = checkpoint.errors.iter().filter(blocks).map(message);
    let blocking: Vec<_> = blocking.collect();
    if blocking.is_empty() && blocked {
        return checkpoint.errors.iter().map(message).collect();
    }
    blocking
}

fn message(error: &TaskError) -> String {
    match (error.kind.as_deref(), error.message.as_deref()) {
        (Some(BLOCKER) | None, Some(message)) => message.to_owned(),
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (Some(kind), None) => kind.to_owned(),
        (None, None) => "an error without a message".to_owned(),
    }
}

fn verification(checkpoint: &SitebuilderCheckpoint) -> Option<VerificationItem> {
    let criteria = &checkpoint.acceptance_criteria_met;
    (!criteria.is_empty()).then(|| VerificationItem {
        contract: None,
        results: criteria
            .iter()
            .map(|(name, met)| {
                let state = if *met == Some(true) {
                    "passed"
                } else {
                    "pending"
                };
                (name.clone(), state.to_owned())
            })
            .collect(),
    })
}

fn instructions(checkpoint: &SitebuilderCheckpoint) -> Vec<String> {
    let context = &checkpoint.context;
    let is_open = checkpoint.state() != Some(TaskStatus::Complete);
    let mut lines = Vec::new();
    let texts = [&context.notes, &checkpoint.resume_instructions];
    if is_open {
        lines.extend(texts.into_iter().flatten().cloned());
    } else {
        lines.extend(context.notes.clone());
        let open = checkpoint.open_criteria();
        if !open.is_empty() {
            lines.push(format!(
                "Only these acceptance criteria are left; do what they need and no more: {}",
                open.join(", ")
            ));
        }
    }
    lines.retain(|line| !is_blank(line));
    if is_open {
        let last = context.last_processed.iter();
        lines.extend(last.map(|last| format!("Last processed: {last}")));
        let next = context.next_to_process.iter();
        lines.extend(next.map(|next| format!("Next to process: {next}")));
    }
    lines.extend(counts(checkpoint));
    lines.extend(failures(checkpoint).filter(|_| is_open));
    let blockers = blockers(checkpoint);
    let errors = checkpoint.errors.iter().map(message);
    lines.extend(
        errors
            .filter(|error| !blockers.contains(error))
            .map(|error| format!("An error that does not block: {error}")),
    );
    let scores = checkpoint.review_scores.iter();
    lines.extend(scores.filter_map(|(agent, score)| {
        score.map(|score| format!("Review score of {agent}: {score}"))
    }));
    lines
}

/// A sentence with the counts, if not all subtasks are listed.
fn counts(checkpoint: &SitebuilderCheckpoint) -> Option<String> {
    let subtasks = &checkpoint.subtasks;
    let (total, completed) = (subtasks.total?, subtasks.completed?);
    if subtasks.lists_all() {
        return None;
    }
    let failed = subtasks.failed.filter(|failed| *failed > 0.0);
    let failed = failed.map_or_else(String::new, |failed| {
        format!(" and {} failed", Number::from(failed))
    });
    let (total, completed) = (Number::from(total), Number::from(completed));
    Some(format!(
        "{completed} of {total} subtasks are complete{failed}; not all of them are listed here"
    ))
}

/// A sentence with the subtasks that failed.
fn failures(checkpoint: &SitebuilderCheckpoint) -> Option<String> {
    let subtasks = &checkpoint.subtasks;
    let failed: Vec<_> = subtasks
        .items
        .iter()
        .filter(|item| item.is(&SubtaskStatus::Failed))
        .map(|item| subtasks.name(item))
        .collect();
    (!failed.is_empty()).then(|| format!("These subtasks failed before: {}", failed.join(", ")))
}

/// Builds a checkpoint from a hand-off. The format has no member for decisions, a phase and earlier agents.
pub(super) fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> SitebuilderCheckpoint {
    let stamp = Timestamp::like(handoff.updated_at.as_ref(), now);
    let mut items: Vec<Subtask> = Vec::new();
    let done = handoff.done.iter().map(|item| {
        let mut subtask = Subtask::new(&item.text, SubtaskStatus::Complete);
        let files = item.files_created.iter().chain(&item.files_modified);
        subtask.output = files.into_iter().next().cloned();
        subtask
    });
    items.extend(done);
    let begun = handoff.in_progress.iter();
    items.extend(begun.map(|item| Subtask::new(&item.text, SubtaskStatus::InProgress)));
    let pending = handoff
        .pending
        .iter()
        .filter(|step| !handoff.in_progress.iter().any(|item| item.text == **step));
    items.extend(pending.map(|step| Subtask::new(step, SubtaskStatus::Pending)));

    let modified = |file: &String| {
        let mut done = handoff.done.iter();
        done.any(|item| item.files_modified.contains(file) && !item.files_created.contains(file))
    };
    let mut files = handoff.files.clone();
    let of_steps = handoff
        .done
        .iter()
        .flat_map(|item| item.files_created.iter().chain(&item.files_modified));
    for file in of_steps {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    let (files_modified, files_created) = files.into_iter().partition(modified);

    let criteria: std::collections::BTreeMap<_, _> = handoff
        .verification
        .iter()
        .flat_map(|shown| &shown.results)
        .map(|(activity, result)| {
            let met = match result.as_str() {
                "passed" => Some(true),
                "skipped" => None,
                _ => Some(false),
            };
            (activity.clone(), met)
        })
        .collect();
    let all_met = !criteria.values().any(|met| *met == Some(false));

    let mut errors: Vec<TaskError> = Vec::new();
    let mut because = |message: &str| {
        errors.push(TaskError {
            kind: Some(BLOCKER.to_owned()),
            message: Some(message.to_owned()),
            timestamp: None,
            blocking: Some(true),
        });
    };
    for blocker in &handoff.blockers {
        because(blocker);
    }
    let status = match handoff.status {
        Status::Complete if all_met => TaskStatus::Complete,
        Status::Failed | Status::Blocked => TaskStatus::Blocked,
        _ => TaskStatus::InProgress,
    };
    if status == TaskStatus::Blocked && handoff.blockers.is_empty() {
        because("The previous agent could not continue and recorded no reason");
    }
    let complete = status == TaskStatus::Complete;
    let (notes, resume_instructions) = match handoff.instructions.as_slice() {
        [] => (None, None),
        [only] => (None, Some(only.clone())),
        [first, rest @ ..] => (Some(first.clone()), Some(rest.join("\n"))),
    };
    let mut made = SitebuilderCheckpoint {
        checkpoint_id: Some(checkpoint_id(
            handoff.agent.as_deref().unwrap_or("agent"),
            handoff.task.as_deref().unwrap_or("task"),
            now,
        )),
        agent: handoff.agent.clone(),
        task_id: handoff.task.clone(),
        task_title: handoff.description.clone(),
        status: Some(status),
        updated_at: Some(stamp),
        completed_at: complete
            .then(|| {
                handoff
                    .updated_at
                    .clone()
                    .filter(|stamp| stamp.time().is_some())
            })
            .flatten()
            .or_else(|| complete.then(|| Timestamp::like(None, now))),
        files_created,
        files_modified,
        acceptance_criteria_met: criteria,
        errors,
        context: Context {
            notes,
            ..Context::default()
        },
        resumable: Some(!complete),
        resume_instructions,
        ..SitebuilderCheckpoint::default()
    };
    made.subtasks.items = items;
    if !made.subtasks.items.is_empty() {
        made.recount();
    }
    made
}
