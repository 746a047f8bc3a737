//! The same hand-off in another format.

use std::any::Any;

use chrono::{DateTime, Utc};

use crate::checkpoint::{Checkpoint, Error, ErrorKind, Handoff, Result};
use crate::json::{Document, Kind, Node};

/// A checkpoint in another format, and what it cannot hold.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Converted<C> {
    /// The checkpoint in the other format.
    pub checkpoint: C,
    /// What the other format cannot hold, for a person: one line each, empty when all is there.
    pub not_held: Vec<String>,
}

/// The same hand-off in another format.
///
/// What that format cannot hold is found by comparing the hand-off that goes in with the one that comes
/// out, so nothing is lost without being listed.
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
    let not_held = differences(handoff, &checkpoint.handoff());
    Ok(Converted {
        checkpoint,
        not_held,
    })
}

/// The same checkpoint in another format, from the checkpoint itself.
///
/// In its own format it stays as it is, with all that no hand-off tells, such as counts of items that
/// are not listed; in another it is [`convert`] of its hand-off.
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
        }),
        None => convert(&source.handoff(), now),
    }
}

/// What of `wanted` is not in `held`.
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
    text(
        "status",
        Some(wanted.status.as_str()),
        Some(held.status.as_str()),
    );
    text("phase", wanted.phase.as_deref(), held.phase.as_deref());
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
                let created = done.files_created.iter();
                let of_step = created
                    .filter(|file| !item.files_created.contains(file))
                    .chain(
                        done.files_modified
                            .iter()
                            .filter(|file| !item.files_modified.contains(file)),
                    )
                    .map(|file| format!("file of {}: {file}", done.text));
                lost.extend(of_step);
            }
        }
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
            .any(|told| told.contains(item.as_str()))
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

/// What of a source file stands nowhere in the converted one, member by member: also what no hand-off
/// tells, such as a session's id, and members that nobody declared.
///
/// A text is there when a text of the result has it within; a number or a truth value when a member of
/// the same name has it. `not_held` is what is known already, and is not told twice.
#[must_use]
pub fn members_not_held(source: &Document, held: &Document, not_held: &[String]) -> Vec<String> {
    let mut there = Leaves::default();
    there.gather(held.root(), "");
    let mut lost = Vec::new();
    walk(source.root(), "", &mut |name, node| {
        let is_held = match node.as_str() {
            Some(text) if text.trim().is_empty() => true,
            Some(text) => {
                let has = |held: &String| held.contains(&*text);
                there.texts.iter().any(has) || not_held.iter().any(has)
            }
            None => {
                let leaf = (name.to_owned(), node.raw().to_owned());
                node.kind() == Kind::Null || there.others.contains(&leaf)
            }
        };
        if !is_held {
            lost.push(format!("{}: {}", node.pointer(), node.raw()));
        }
    });
    lost
}

/// The texts of a document, and its numbers and truth values with their names.
#[derive(Default)]
struct Leaves {
    texts: Vec<String>,
    others: Vec<(String, String)>,
}

impl Leaves {
    fn gather(&mut self, node: Node<'_>, name: &str) {
        walk(node, name, &mut |name, node| match node.as_str() {
            Some(text) => self.texts.push(text.into_owned()),
            None => self.others.push((name.to_owned(), node.raw().to_owned())),
        });
    }
}

/// Visits every scalar with the name of the member that it, or the list it is in, stands under.
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
