//! What the common view of all formats tells.

use std::collections::{HashMap, HashSet};

use super::{Change, StepState};
use crate::checkpoint::{DecisionItem, Handoff};

/// What changed from one hand-off to another.
pub(super) fn changes(before: &Handoff, after: &Handoff) -> Vec<Change> {
    let mut changes = Vec::new();
    facts(before, after, &mut changes);
    steps(before, after, &mut changes);
    decisions(&before.decisions, &after.decisions, &mut changes);
    let blocker = |blocker| Change::BlockerRaised { blocker };
    let cleared = |blocker| Change::BlockerCleared { blocker };
    list(
        &before.blockers,
        &after.blockers,
        blocker,
        cleared,
        &mut changes,
    );
    files(before, after, &mut changes);
    verification(before, after, &mut changes);
    let given = |instruction| Change::InstructionGiven { instruction };
    let withdrawn = |instruction| Change::InstructionWithdrawn { instruction };
    let (old, new) = (&before.instructions, &after.instructions);
    list(old, new, given, withdrawn, &mut changes);
    changes
}

/// What there is one of.
fn facts(before: &Handoff, after: &Handoff, changes: &mut Vec<Change>) {
    if before.status != after.status {
        let (from, to) = (before.status.clone(), after.status.clone());
        changes.push(Change::Status {
            from,
            to,
            written: None,
        });
    }
    let mut fact = |from: &Option<String>, to: &Option<String>, change: fn(_, _) -> Change| {
        if from != to {
            changes.push(change(from.clone(), to.clone()));
        }
    };
    let change = |from, to| Change::Task { from, to };
    fact(&before.task, &after.task, change);
    let change = |from, to| Change::Description { from, to };
    fact(&before.description, &after.description, change);
    let change = |from, to| Change::Phase { from, to };
    fact(&before.phase, &after.phase, change);
    let change = |from, to| Change::Agent { from, to };
    fact(&before.agent, &after.agent, change);
    let left = |agent| Change::AgentLeft { agent };
    let forgotten = |agent| Change::AgentForgotten { agent };
    let (old, new) = (&before.previous_agents, &after.previous_agents);
    list(old, new, left, forgotten, changes);
    if before.updated_at != after.updated_at {
        let (from, to) = (before.updated_at.clone(), after.updated_at.clone());
        changes.push(Change::Stamp { from, to });
    }
}

/// How often each text is there more in `these` than in `those`, in the order of `these`.
fn more<'t>(
    these: impl IntoIterator<Item = &'t str>,
    those: impl IntoIterator<Item = &'t str>,
) -> Vec<&'t str> {
    let mut there: HashMap<&str, usize> = HashMap::new();
    for text in those {
        *there.entry(text).or_default() += 1;
    }
    let mut rest: Vec<&str> = these.into_iter().collect();
    rest.retain(|text| !take(&mut there, text));
    rest
}

/// Takes one of these texts away, if there is one.
fn take(from: &mut HashMap<&str, usize>, text: &str) -> bool {
    match from.get_mut(text) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}

fn list(
    before: &[String],
    after: &[String],
    come: impl Fn(String) -> Change,
    gone: impl Fn(String) -> Change,
    changes: &mut Vec<Change>,
) {
    let (old, new) = (before.iter(), after.iter());
    let (old, new) = (old.map(String::as_str), new.map(String::as_str));
    let come = |text: &str| come(text.to_owned());
    changes.extend(more(new.clone(), old.clone()).into_iter().map(come));
    let gone = |text: &str| gone(text.to_owned());
    changes.extend(more(old, new).into_iter().map(gone));
}

// ---------------------------------------------------------------------------------------------------------------------
// Steps

/// The steps of a hand-off by their state. A step in progress that the plan names as well is counted once.
struct Steps<'h> {
    finished: Vec<&'h str>,
    open: Vec<&'h str>,
    planned: Vec<&'h str>,
}

impl<'h> Steps<'h> {
    fn of(handoff: &'h Handoff) -> Steps<'h> {
        let finished = handoff.done.iter().map(|item| item.text.as_str());
        let open = handoff.in_progress.iter().map(|item| item.text.as_str());
        let planned = handoff.pending.iter().map(String::as_str);
        Steps {
            finished: finished.collect(),
            planned: more(planned, open.clone()),
            open: open.collect(),
        }
    }

    /// Those that are there more often than in `other`.
    fn more_than(&self, other: &Steps<'h>) -> Steps<'h> {
        let more = |these: &[&'h str], those: &[&'h str]| {
            more(these.iter().copied(), those.iter().copied())
        };
        Steps {
            finished: more(&self.finished, &other.finished),
            open: more(&self.open, &other.open),
            planned: more(&self.planned, &other.planned),
        }
    }
}

/// How often each text is there.
fn count<'h>(texts: &[&'h str]) -> HashMap<&'h str, usize> {
    let mut counts = HashMap::new();
    for text in texts {
        *counts.entry(*text).or_default() += 1;
    }
    counts
}

/// Every step that came to a list is looked for among those that left another.
fn steps(before: &Handoff, after: &Handoff, changes: &mut Vec<Change>) {
    let (old, new) = (Steps::of(before), Steps::of(after));
    let (left, come) = (old.more_than(&new), new.more_than(&old));
    let mut finished = count(&left.finished);
    let mut open = count(&left.open);
    let mut planned = count(&left.planned);
    for text in come.finished {
        let was_open = take(&mut open, text);
        if !was_open {
            take(&mut planned, text);
        }
        let begun = before.in_progress.iter().find(|item| item.text == text);
        let done = after.done.iter().rfind(|item| item.text == text);
        changes.push(Change::StepFinished {
            step: text.to_owned(),
            begun: begun
                .filter(|_| was_open)
                .and_then(|item| item.started_at.clone()),
            at: done.and_then(|item| item.at.clone()),
        });
    }
    for text in come.open {
        let step = text.to_owned();
        if !take(&mut planned, text) && take(&mut finished, text) {
            changes.push(Change::StepReopened { step });
            continue;
        }
        let begun = after.in_progress.iter().rfind(|item| item.text == text);
        changes.push(Change::StepBegun {
            step,
            at: begun.and_then(|item| item.started_at.clone()),
            note: begun.and_then(|item| item.note.clone()),
        });
    }
    // One that was planned all the time, beside being in progress, is not new in the plan.
    let (was, is) = (before.pending.iter(), after.pending.iter());
    let mut added = count(&more(is.map(String::as_str), was.map(String::as_str)));
    for text in come.planned {
        let step = text.to_owned();
        if take(&mut open, text) || take(&mut finished, text) {
            changes.push(Change::StepReturned { step });
        } else if take(&mut added, text) {
            changes.push(Change::StepAdded { step });
        }
    }
    for (texts, mut rest, was) in [
        (left.finished, finished, StepState::Finished),
        (left.open, open, StepState::InProgress),
        (left.planned, planned, StepState::Planned),
    ] {
        for text in texts {
            if take(&mut rest, text) {
                let step = text.to_owned();
                changes.push(Change::StepDropped { step, was });
            }
        }
    }
    notes(before, after, changes);
}

/// Notes on steps that were in progress and are still.
fn notes(before: &Handoff, after: &Handoff, changes: &mut Vec<Change>) {
    let mut old: HashMap<&str, Vec<&Option<String>>> = HashMap::new();
    for item in before.in_progress.iter().rev() {
        old.entry(&item.text).or_default().push(&item.note);
    }
    for item in &after.in_progress {
        let Some(note) = old.get_mut(item.text.as_str()).and_then(Vec::pop) else {
            continue;
        };
        if *note != item.note {
            changes.push(Change::StepNoted {
                step: item.text.clone(),
                from: note.clone(),
                to: item.note.clone(),
            });
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Decisions, files, verification

fn decisions(before: &[DecisionItem], after: &[DecisionItem], changes: &mut Vec<Change>) {
    let text = |item: &DecisionItem| item.text.clone();
    let old: Vec<String> = before.iter().map(text).collect();
    let new: Vec<String> = after.iter().map(text).collect();
    let made = |decision: String| {
        let item = after.iter().rfind(|item| item.text == decision);
        Change::DecisionMade {
            rationale: item.and_then(|item| item.rationale.clone()),
            at: item.and_then(|item| item.at.clone()),
            decision,
        }
    };
    let withdrawn = |decision| Change::DecisionWithdrawn { decision };
    list(&old, &new, made, withdrawn, changes);
}

/// The files of a hand-off, each once, with what is said of them.
struct Files<'h> {
    created: HashSet<&'h str>,
    modified: HashSet<&'h str>,
    in_order: Vec<&'h str>,
}

impl<'h> Files<'h> {
    fn of(handoff: &'h Handoff) -> Files<'h> {
        let created = handoff.done.iter().flat_map(|item| &item.files_created);
        let modified = handoff.done.iter().flat_map(|item| &item.files_modified);
        let all = created.clone().chain(modified.clone());
        let mut seen = HashSet::new();
        let all = all.chain(&handoff.files).map(String::as_str);
        Files {
            in_order: all.filter(|file| seen.insert(*file)).collect(),
            created: created.map(String::as_str).collect(),
            modified: modified.map(String::as_str).collect(),
        }
    }
}

fn files(before: &Handoff, after: &Handoff, changes: &mut Vec<Change>) {
    let (old, new) = (Files::of(before), Files::of(after));
    let known: HashSet<&str> = old.in_order.iter().copied().collect();
    for &path in &new.in_order {
        let file = path.to_owned();
        if new.created.contains(path) && !old.created.contains(path) {
            changes.push(Change::FileCreated { file });
        } else if new.modified.contains(path) && !old.modified.contains(path) {
            changes.push(Change::FileModified { file });
        } else if !known.contains(path) {
            changes.push(Change::FileNamed { file });
        }
    }
    let named: HashSet<&str> = new.in_order.iter().copied().collect();
    let gone = old.in_order.iter().filter(|path| !named.contains(*path));
    changes.extend(gone.map(|path| Change::FileForgotten {
        file: (*path).to_owned(),
    }));
}

fn verification(before: &Handoff, after: &Handoff, changes: &mut Vec<Change>) {
    let contract = |handoff: &Handoff| handoff.verification.as_ref()?.contract.clone();
    let (from, to) = (contract(before), contract(after));
    if from != to {
        changes.push(Change::Contract { from, to });
    }
    fn results(handoff: &Handoff) -> &[(String, String)] {
        let verification = handoff.verification.as_ref();
        verification.map_or(&[], |verification| &verification.results)
    }
    let mut old: HashMap<&str, Vec<&str>> = HashMap::new();
    for (activity, result) in results(before).iter().rev() {
        old.entry(activity).or_default().push(result);
    }
    for (activity, result) in results(after) {
        let from = old.get_mut(activity.as_str()).and_then(Vec::pop);
        if from != Some(result) {
            changes.push(Change::Verification {
                activity: activity.clone(),
                from: from.map(str::to_owned),
                to: Some(result.clone()),
            });
        }
    }
    for (activity, _) in results(before) {
        if let Some(result) = old.get_mut(activity.as_str()).and_then(Vec::pop) {
            changes.push(Change::Verification {
                activity: activity.clone(),
                from: Some(result.to_owned()),
                to: None,
            });
        }
    }
}
