//! The changes between two hand-offs.

use std::collections::{HashMap, HashSet};

use super::{Change, ChangeKind};
use crate::checkpoint::{Handoff, Timestamp};

pub(super) fn changes(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let mut changes = facts(before, after);
    changes.extend(steps(before, after));
    changes.extend(decisions(before, after));
    changes.extend(list(
        "blocker",
        (ChangeKind::BlockerRaised, ChangeKind::BlockerCleared),
        (&before.blockers, &after.blockers),
    ));
    changes.extend(files(before, after));
    changes.extend(verification(before, after));
    changes.extend(list(
        "instruction",
        (
            ChangeKind::InstructionGiven,
            ChangeKind::InstructionWithdrawn,
        ),
        (&before.instructions, &after.instructions),
    ));
    changes
}

fn text(stamp: Option<&Timestamp>) -> Option<&str> {
    stamp.map(Timestamp::text)
}

/// Changes of facts that a checkpoint has only once.
fn facts(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let status = |it: &Handoff| Some(it.status.as_str().to_owned());
    let stamp = |it: &Handoff| text(it.updated_at.as_ref()).map(str::to_owned);
    let fact = |kind, of: &dyn Fn(&Handoff) -> Option<String>| {
        let (from, to) = (of(before), of(after));
        (from != to).then(|| Change::new(kind).with_from_to(from.as_deref(), to.as_deref()))
    };
    let mut changes = Vec::new();
    changes.extend(fact(ChangeKind::Status, &status));
    changes.extend(fact(ChangeKind::Task, &|it| it.task.clone()));
    changes.extend(fact(ChangeKind::Description, &|it| it.description.clone()));
    changes.extend(fact(ChangeKind::Phase, &|it| it.phase.clone()));
    changes.extend(fact(ChangeKind::Agent, &|it| it.agent.clone()));
    changes.extend(list(
        "agent",
        (ChangeKind::AgentLeft, ChangeKind::AgentForgotten),
        (&before.previous_agents, &after.previous_agents),
    ));
    changes.extend(fact(ChangeKind::Stamp, &stamp));
    changes
}

/// The texts added to a list, and those removed from it.
fn list(
    name: &'static str,
    (come, gone): (ChangeKind, ChangeKind),
    (before, after): (&[String], &[String]),
) -> Vec<Change> {
    let (old, new) = (
        before.iter().map(String::as_str),
        after.iter().map(String::as_str),
    );
    let come = |text| Change::new(come).with(name, Some(text));
    let gone = |text| Change::new(gone).with(name, Some(text));
    let mut changes: Vec<Change> = more(new.clone(), old.clone()).map(come).collect();
    changes.extend(more(old, new).map(gone));
    changes
}

/// The texts that occur more often in `these` than in `those`, each as often as the difference, in the order of
/// `these`.
fn more<'t>(
    these: impl Iterator<Item = &'t str>,
    those: impl Iterator<Item = &'t str>,
) -> impl Iterator<Item = &'t str> {
    let mut there = Counts::of(those);
    these.filter(move |text| !there.take(text))
}

/// How often each text occurs.
#[derive(Default)]
struct Counts<'t>(HashMap<&'t str, usize>);

impl<'t> Counts<'t> {
    fn of(texts: impl IntoIterator<Item = &'t str>) -> Counts<'t> {
        let mut counts = Counts::default();
        for text in texts {
            *counts.0.entry(text).or_default() += 1;
        }
        counts
    }

    /// Takes one occurrence of the text away; returns whether there was one.
    fn take(&mut self, text: &str) -> bool {
        let count = self.0.get_mut(text).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Steps

/// The steps of a hand-off by their state. A step in progress that is also planned counts once.
struct Steps<'h> {
    finished: Vec<&'h str>,
    open: Vec<&'h str>,
    planned: Vec<&'h str>,
}

impl<'h> Steps<'h> {
    fn of(handoff: &'h Handoff) -> Steps<'h> {
        let open: Vec<&str> = handoff.in_progress.iter().map(|it| &*it.text).collect();
        let planned = handoff.pending.iter().map(String::as_str);
        Steps {
            finished: handoff.done.iter().map(|it| &*it.text).collect(),
            planned: more(planned, open.iter().copied()).collect(),
            open,
        }
    }

    /// The steps that occur more often than in `other`.
    fn more_than(&self, other: &Steps<'h>) -> Steps<'h> {
        let more = |these: &[&'h str], those: &[&'h str]| {
            more(these.iter().copied(), those.iter().copied()).collect()
        };
        Steps {
            finished: more(&self.finished, &other.finished),
            open: more(&self.open, &other.open),
            planned: more(&self.planned, &other.planned),
        }
    }
}

/// Matches each step that was added to one list with one that was removed from another.
fn steps(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let (old, new) = (Steps::of(before), Steps::of(after));
    let (left, come) = (old.more_than(&new), new.more_than(&old));
    let mut finished = Counts::of(left.finished.iter().copied());
    let mut open = Counts::of(left.open.iter().copied());
    let mut planned = Counts::of(left.planned.iter().copied());
    let step = |kind, text| Change::new(kind).with("step", Some(text));
    let mut changes = Vec::new();
    for text in come.finished {
        let was_open = open.take(text);
        if !was_open {
            planned.take(text);
        }
        let begun = before.in_progress.iter().find(|item| item.text == text);
        let begun = begun
            .filter(|_| was_open)
            .and_then(|it| it.started_at.as_ref());
        let done = after.done.iter().rfind(|item| item.text == text);
        let change = step(ChangeKind::StepFinished, text)
            .with("begun", begun.map(Timestamp::text))
            .with("at", done.and_then(|it| Some(it.at.as_ref()?.text())));
        changes.push(if was_open {
            change.leaving_plan(text)
        } else {
            change
        });
    }
    for text in come.open {
        if !planned.take(text) && finished.take(text) {
            changes.push(step(ChangeKind::StepReopened, text));
            continue;
        }
        let begun = after.in_progress.iter().rfind(|item| item.text == text);
        let change = step(ChangeKind::StepBegun, text)
            .with(
                "at",
                begun.and_then(|it| Some(it.started_at.as_ref()?.text())),
            )
            .with("note", begun.and_then(|it| it.note.as_deref()));
        changes.push(change);
    }
    // A step that was planned before and still is, but was in progress meanwhile, is not new in the plan.
    let (was, is) = (before.pending.iter(), after.pending.iter());
    let mut added = Counts::of(more(is.map(String::as_str), was.map(String::as_str)));
    for text in come.planned {
        if open.take(text) || finished.take(text) {
            changes.push(step(ChangeKind::StepReturned, text));
        } else if added.take(text) {
            changes.push(step(ChangeKind::StepAdded, text));
        }
    }
    for (texts, mut rest, was) in [
        (left.finished, finished, "finished"),
        (left.open, open, "in_progress"),
        (left.planned, planned, "planned"),
    ] {
        let dropped = texts.into_iter().filter(|text| rest.take(text));
        changes
            .extend(dropped.map(|text| step(ChangeKind::StepDropped, text).with("was", Some(was))));
    }
    changes.extend(notes(before, after));
    changes
}

/// Changed notes on steps that were in progress and still are.
fn notes(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let mut old: HashMap<&str, Vec<Option<&str>>> = HashMap::new();
    for item in before.in_progress.iter().rev() {
        let notes = old.entry(&item.text).or_default();
        notes.push(item.note.as_deref());
    }
    let mut changes = Vec::new();
    for item in &after.in_progress {
        let from = old.get_mut(item.text.as_str()).and_then(Vec::pop);
        let to = item.note.as_deref();
        if let Some(from) = from.filter(|from| *from != to) {
            let change = Change::new(ChangeKind::StepNoted).with("step", Some(&item.text));
            changes.push(change.with_from_to(from, to));
        }
    }
    changes
}

// ---------------------------------------------------------------------------------------------------------------------
// Decisions, files, verification

fn decisions(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let old = || before.decisions.iter().map(|item| &*item.text);
    let new = || after.decisions.iter().map(|item| &*item.text);
    let made = |decision| {
        let item = after.decisions.iter().rfind(|item| item.text == decision);
        Change::new(ChangeKind::DecisionMade)
            .with("decision", Some(decision))
            .with("rationale", item.and_then(|it| it.rationale.as_deref()))
            .with("at", item.and_then(|it| text(it.at.as_ref())))
    };
    let gone =
        |decision| Change::new(ChangeKind::DecisionWithdrawn).with("decision", Some(decision));
    let mut changes: Vec<Change> = more(new(), old()).map(made).collect();
    changes.extend(more(old(), new()).map(gone));
    changes
}

/// The files of a hand-off: each once, in order, with those that are listed as created or modified.
struct Files<'h> {
    all: Vec<&'h str>,
    created: HashSet<&'h str>,
    modified: HashSet<&'h str>,
}

impl<'h> Files<'h> {
    fn of(handoff: &'h Handoff) -> Files<'h> {
        let created = handoff.done.iter().flat_map(|item| &item.files_created);
        let modified = handoff.done.iter().flat_map(|item| &item.files_modified);
        let all = created.clone().chain(modified.clone());
        let all = all.chain(&handoff.files).map(String::as_str);
        let mut seen = HashSet::new();
        Files {
            all: all.filter(|file| seen.insert(*file)).collect(),
            created: created.map(String::as_str).collect(),
            modified: modified.map(String::as_str).collect(),
        }
    }
}

fn files(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let (old, new) = (Files::of(before), Files::of(after));
    let known: HashSet<&str> = old.all.iter().copied().collect();
    let named: HashSet<&str> = new.all.iter().copied().collect();
    let file = |kind, path| Change::new(kind).with("file", Some(path));
    let mut changes = Vec::new();
    for path in &new.all {
        if new.created.contains(path) && !old.created.contains(path) {
            changes.push(file(ChangeKind::FileCreated, path));
        } else if new.modified.contains(path) && !old.modified.contains(path) {
            changes.push(file(ChangeKind::FileModified, path));
        } else if !known.contains(path) {
            changes.push(file(ChangeKind::FileNamed, path));
        }
    }
    let gone = old.all.iter().filter(|path| !named.contains(*path));
    changes.extend(gone.map(|path| file(ChangeKind::FileForgotten, path)));
    changes
}

fn verification(before: &Handoff, after: &Handoff) -> Vec<Change> {
    fn contract(handoff: &Handoff) -> Option<&str> {
        handoff.verification.as_ref()?.contract.as_deref()
    }
    fn results(handoff: &Handoff) -> &[(String, String)] {
        let verification = handoff.verification.as_ref();
        verification.map_or(&[], |verification| &verification.results)
    }
    let result = |activity: &str, from, to| {
        let change = Change::new(ChangeKind::Verification).with("activity", Some(activity));
        change.with_from_to(from, to)
    };
    let mut changes = Vec::new();
    let (from, to) = (contract(before), contract(after));
    if from != to {
        changes.push(Change::new(ChangeKind::Contract).with_from_to(from, to));
    }
    let mut old: HashMap<&str, Vec<&str>> = HashMap::new();
    for (activity, result) in results(before).iter().rev() {
        old.entry(activity).or_default().push(result);
    }
    for (activity, to) in results(after) {
        let from = old.get_mut(activity.as_str()).and_then(Vec::pop);
        if from != Some(to) {
            changes.push(result(activity, from, Some(to)));
        }
    }
    for (activity, _) in results(before) {
        if let Some(from) = old.get_mut(activity.as_str()).and_then(Vec::pop) {
            changes.push(result(activity, Some(from), None));
        }
    }
    changes
}
