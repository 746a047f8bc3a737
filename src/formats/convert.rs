//! Converts a hand-off to another format.

use std::any::Any;
use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::checkpoint::{Checkpoint, Error, ErrorKind, Handoff, Result, Status, Timestamp};
use crate::is_blank;
use crate::json::{Document, Kind, Node};

/// A checkpoint converted to another format, with what was lost and what was made up.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Converted<C> {
    /// The checkpoint in the other format.
    pub checkpoint: C,
    /// Values that the other format cannot hold, one readable line each; empty when nothing is lost.
    pub not_held: Vec<String>,
    /// Values that the other format requires and the hand-off lacks, so that they were made up: one readable line each.
    pub made_up: Vec<String>,
}

impl<C> Converted<C> {
    /// Changes the form of the checkpoint and keeps the two lists.
    pub(crate) fn try_map<T>(self, form: impl FnOnce(C) -> Result<T>) -> Result<Converted<T>> {
        Ok(Converted {
            checkpoint: form(self.checkpoint)?,
            not_held: self.not_held,
            made_up: self.made_up,
        })
    }
}

/// Converts a hand-off to a checkpoint of another format.
///
/// Losses are found by comparing the given hand-off with that of the result, so nothing is lost without being listed.
///
/// # Errors
///
/// [`ErrorKind::Refused`] when the format cannot be made from a hand-off.
pub fn convert<C: Checkpoint>(handoff: &Handoff, now: DateTime<Utc>) -> Result<Converted<C>> {
    let Some(checkpoint) = C::from_handoff(handoff, now) else {
        return Err(Error::new(ErrorKind::Refused {
            detail: format!("{} cannot be made from another format", C::FORMAT),
        }));
    };
    let held = checkpoint.handoff();
    Ok(Converted {
        not_held: differences(handoff, &held),
        made_up: made_up(handoff, &held),
        checkpoint,
    })
}

/// Converts a checkpoint to another format, from the checkpoint itself.
///
/// In its own format it is returned unchanged, with everything that a hand-off lacks, such as counts of items that are
/// not listed. For another format this is [`convert`] of its hand-off.
///
/// # Errors
///
/// [`ErrorKind::Refused`] when the format is another and cannot be made from a hand-off.
pub fn convert_from<S: Checkpoint, C: Checkpoint>(
    source: &S,
    now: DateTime<Utc>,
) -> Result<Converted<C>> {
    let same: &dyn Any = source;
    match same.downcast_ref::<C>() {
        Some(same) => Ok(Converted {
            checkpoint: same.clone(),
            not_held: Vec::new(),
            made_up: Vec::new(),
        }),
        None => convert(&source.handoff(), now),
    }
}

/// The phase of a task that does not name one.
const USUAL_PHASE: &str = "implementation";

/// The stamps that `held` has and `wanted` lacks.
fn made_up(wanted: &Handoff, held: &Handoff) -> Vec<String> {
    let done = made_up_times(&wanted.done, &held.done, |it| (&it.text, &it.at));
    let decided = made_up_times(&wanted.decisions, &held.decisions, |it| (&it.text, &it.at));
    let (steps, wanted_steps) = (&held.in_progress, &wanted.in_progress);
    let begun = made_up_times(wanted_steps, steps, |it| (&it.text, &it.started_at));
    let all = [
        ("time of finished steps", done),
        ("start of steps in progress", begun),
        ("time of decisions", decided),
    ];
    all.into_iter()
        .filter_map(|(what, times)| {
            Some(format!("{what} (of {}): {}", times.len(), times.first()?))
        })
        .collect()
}

/// The times in `held` of items that have none in `wanted`.
fn made_up_times<'h, T>(
    wanted: &[T],
    held: &'h [T],
    parts: fn(&T) -> (&String, &Option<Timestamp>),
) -> Vec<&'h Timestamp> {
    let lacks_time = |text: &String| {
        let own = wanted.iter().map(parts).find(|(own, _)| *own == text);
        own.is_some_and(|(_, time)| time.is_none())
    };
    let made_up = held.iter().map(parts).filter(|(text, _)| lacks_time(text));
    made_up.filter_map(|(_, time)| time.as_ref()).collect()
}

/// The values of `wanted` that `held` lacks.
fn differences(wanted: &Handoff, held: &Handoff) -> Vec<String> {
    let mut lost = Vec::new();
    let mut text = |what: &str, wanted: Option<&str>, held: Option<&str>| {
        if let Some(wanted) = wanted.filter(|wanted| Some(*wanted) != held) {
            lost.push(format!("{what}: {wanted}"));
        }
    };
    text("task", wanted.task.as_deref(), held.task.as_deref());
    text(
        "description",
        wanted.description.as_deref(),
        held.description.as_deref(),
    );
    // A format need not distinguish a task that has not started from one with nothing done yet.
    let may_be_either = |status: &Status| matches!(status, Status::NotStarted | Status::InProgress);
    let is_same = wanted.status == held.status
        || (may_be_either(&wanted.status)
            && may_be_either(&held.status)
            && held.done.is_empty()
            && held.in_progress.is_empty());
    let status = (!is_same).then(|| wanted.status.as_str());
    text("status", status, Some(held.status.as_str()));
    // A task is in this phase unless another is named, so its loss is no loss.
    let phase = wanted
        .phase
        .as_deref()
        .filter(|phase| *phase != USUAL_PHASE);
    text("phase", phase, held.phase.as_deref());
    text("agent", wanted.agent.as_deref(), held.agent.as_deref());
    let list = |what: &str, wanted: &[String], held: &[String], lost: &mut Vec<String>| {
        let missing = wanted.iter().filter(|item| !held.contains(item));
        lost.extend(missing.map(|item| format!("{what}: {item}")));
    };
    list(
        "previous agent",
        &wanted.previous_agents,
        &held.previous_agents,
        &mut lost,
    );
    for done in &wanted.done {
        match held.done.iter().find(|item| item.text == done.text) {
            None => lost.push(format!("finished: {}", done.text)),
            Some(item) => {
                let at = done.at.as_ref().filter(|at| Some(*at) != item.at.as_ref());
                lost.extend(at.map(|at| format!("time of {}: {at}", done.text)));
                let file = format!("file of {}", done.text);
                list(&file, &done.files_created, &item.files_created, &mut lost);
                list(&file, &done.files_modified, &item.files_modified, &mut lost);
            }
        }
    }
    let elsewhere = wanted.done_elsewhere.saturating_sub(held.done_elsewhere);
    if elsewhere > 0 {
        let place = wanted.elsewhere.as_deref().unwrap_or("a dropped log");
        lost.push(format!("{elsewhere} finished before, moved to {place}"));
    }
    for open in &wanted.in_progress {
        match held.in_progress.iter().find(|item| item.text == open.text) {
            None => lost.push(format!("in progress: {}", open.text)),
            Some(item) => {
                let note = open.note.as_ref().filter(|_| item.note != open.note);
                lost.extend(note.map(|note| format!("note on {}: {note}", open.text)));
                let start = open
                    .started_at
                    .as_ref()
                    .filter(|_| item.started_at != open.started_at);
                lost.extend(start.map(|start| format!("start of {}: {start}", open.text)));
            }
        }
    }
    list("pending", &wanted.pending, &held.pending, &mut lost);
    for decision in &wanted.decisions {
        match held
            .decisions
            .iter()
            .find(|made| made.text == decision.text)
        {
            None => lost.push(format!("decision: {}", decision.text)),
            Some(made) => {
                let reason = decision.rationale.as_ref();
                let reason = reason.filter(|_| made.rationale != decision.rationale);
                lost.extend(reason.map(|why| format!("reason of {}: {why}", decision.text)));
                let at = decision.at.as_ref().filter(|_| made.at != decision.at);
                lost.extend(at.map(|at| format!("time of {}: {at}", decision.text)));
            }
        }
    }
    list("blocker", &wanted.blockers, &held.blockers, &mut lost);
    list("file", &wanted.files, &held.files, &mut lost);
    // A format may join several instructions into one text.
    let is_told = |item: &&String| {
        held.instructions
            .iter()
            .any(|line| line.contains(item.as_str()))
    };
    let untold = wanted.instructions.iter().filter(|item| !is_told(item));
    lost.extend(untold.map(|item| format!("instruction: {item}")));
    if let Some(verification) = &wanted.verification {
        let shown = held.verification.clone().unwrap_or_default();
        if verification.contract.is_some() && shown.contract != verification.contract {
            let contract = verification.contract.as_deref().unwrap_or_default();
            lost.push(format!("verification contract: {contract}"));
        }
        for result in &verification.results {
            if !shown.results.contains(result) {
                lost.push(format!("verification of {}: {}", result.0, result.1));
            }
        }
    }
    lost
}

/// Lists the members of a source file whose value is nowhere in the converted file, including what no hand-off carries,
/// such as a session id and undeclared members.
///
/// A text counts as held when the result has an equal text, or has it as a whole part between line ends, `; `, `, `,
/// `: ` or dashes, since formats join texts. A number or boolean counts as held when a member of the same name has it.
/// Losses already in `not_held` are not listed again. A protocol's own book-keeping is no loss: the version, the reason
/// of the last save, ids of sessions and checkpoints, when the next checkpoint is due, counts, and `true` for whether
/// it can be resumed.
#[must_use]
pub fn members_not_held(source: &Document, held: &Document, not_held: &[String]) -> Vec<String> {
    let mut there = Leaves::default();
    there.gather(held.root(), "");
    not_held.iter().for_each(|line| there.add(line));
    let mut lost = Vec::new();
    walk(source.root(), "", &mut |name, node| {
        let is_held = match node.as_str() {
            Some(text) if is_blank(&text) => true,
            Some(text) => there.texts.contains(text.trim()),
            None => {
                let leaf = (name.to_owned(), node.raw().to_owned());
                // An id written as a number is compared by its digits.
                let is_id = matches!(name, "id" | "tasksCompleted" | "tasksRemaining");
                node.kind() == Kind::Null
                    || there.others.contains(&leaf)
                    || is_id && there.texts.contains(node.raw())
            }
        };
        if !is_held && !is_bookkeeping(name, &node) {
            lost.push(format!("{}: {}", node.pointer(), node.raw()));
        }
    });
    lost
}

/// Whether a member is the protocol's own book-keeping.
fn is_bookkeeping(name: &str, node: &Node<'_>) -> bool {
    match name {
        "schemaVersion"
        | "session_id"
        | "checkpoint_id"
        | "agent_type"
        | "progress_percent"
        | "next_checkpoint_expected"
        | "last_beat"
        | "interval_seconds" => true,
        "reason" => node.pointer().ends_with("/metadata/reason"),
        "phase" => node.as_str().is_some_and(|phase| phase == USUAL_PHASE),
        // The hand-off has the status in common terms; the status of a subtask shows in the list that holds it.
        "status" => {
            let pointer = node.pointer();
            !pointer.trim_start_matches('/').contains('/')
                || pointer.starts_with("/subtasks/items/")
                    && matches!(
                        &*node.as_str().unwrap_or_default(),
                        "pending" | "complete" | "completed" | "done"
                    )
        }
        "can_resume" | "resumable" => node.as_bool() == Some(true),
        "total" | "completed" => node.as_f64().is_some(),
        // The hand-off has the number and the place of dropped steps.
        "completedSteps" => {
            node.pointer().ends_with("/dropped/completedSteps") && node.as_f64().is_some()
        }
        "in" => {
            node.pointer().ends_with("/dropped/in")
                && node.as_str().is_some_and(|place| place.ends_with(".jsonl"))
        }
        _ => false,
    }
}

/// The texts of a document, and its numbers and booleans with their names.
#[derive(Default)]
struct Leaves {
    texts: HashSet<String>,
    others: HashSet<(String, String)>,
}

impl Leaves {
    fn gather(&mut self, node: Node<'_>, name: &str) {
        walk(node, name, &mut |name, node| match node.as_str() {
            Some(text) => self.add(&text),
            None => {
                self.others.insert((name.to_owned(), node.raw().to_owned()));
            }
        });
    }

    /// Adds a text, and the parts that it is joined of.
    fn add(&mut self, text: &str) {
        self.texts.insert(text.trim().to_owned());
        // The rest after a word such as `finished: …` may itself contain separators.
        let after = text
            .split_once(": ")
            .map(|(_, rest)| rest.trim().to_owned());
        self.texts.extend(after);
        for joint in ["\n", "; ", ", ", ": ", " — ", " - "] {
            let parts = text.split(joint).map(|part| part.trim().to_owned());
            self.texts.extend(parts);
        }
    }
}

/// Visits every scalar with the name of its member; in a list, with the name of the list.
fn walk<'d>(node: Node<'d>, name: &str, visit: &mut dyn FnMut(&str, Node<'d>)) {
    match node.kind() {
        Kind::Object => {
            for (name, member) in node.members() {
                walk(member, &name, visit);
            }
        }
        Kind::Array => node
            .elements()
            .for_each(|element| walk(element, name, visit)),
        _ => visit(name, node),
    }
}
