//! The lines with which a hand-off tells what it has no member for, and what they say when a checkpoint
//! is made of it again: so its counts, place, failures, errors and scores are there once more.

use super::progress::count;
use super::{SitebuilderCheckpoint, SubtaskStatus};
use crate::checkpoint::Handoff;
use crate::formats::Number;

const LAST: &str = "Last processed: ";
const NEXT: &str = "Next to process: ";
const FAILED: &str = "These subtasks failed before: ";
const ERROR: &str = "An error that does not block: ";
const SCORE: &str = "Review score of ";
const NOT_LISTED: &str = "; not all of them are listed here";

/// The place in the material.
pub(super) fn place(checkpoint: &SitebuilderCheckpoint) -> impl Iterator<Item = String> {
    let context = &checkpoint.context;
    let last = context.last_processed.as_ref();
    let next = context.next_to_process.as_ref();
    let last = last.map(|last| format!("{LAST}{last}"));
    last.into_iter()
        .chain(next.map(|next| format!("{NEXT}{next}")))
}

/// The counts, where the list of subtasks does not tell them.
pub(super) fn counts(checkpoint: &SitebuilderCheckpoint) -> Option<String> {
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
        "{completed} of {total} subtasks are complete{failed}{NOT_LISTED}"
    ))
}

/// The subtasks that failed before.
pub(super) fn failures(checkpoint: &SitebuilderCheckpoint) -> Option<String> {
    let items = &checkpoint.subtasks.items;
    let failed: Vec<_> = items
        .iter()
        .filter(|item| item.is(&SubtaskStatus::Failed))
        .map(|item| super::handoff::name(item, items))
        .collect();
    (!failed.is_empty()).then(|| format!("{FAILED}{}", failed.join(", ")))
}

/// An error that is not in the way.
pub(super) fn error(message: &str) -> String {
    format!("{ERROR}{message}")
}

/// The scores that were given.
pub(super) fn scores(checkpoint: &SitebuilderCheckpoint) -> impl Iterator<Item = String> {
    let scores = checkpoint.review_scores.iter();
    scores.filter_map(|(agent, score)| score.map(|score| format!("{SCORE}{agent}: {score}")))
}

/// How many subtasks are complete, of how many, and how many failed.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) completed: f64,
    pub(super) total: f64,
    pub(super) failed: Option<f64>,
}

/// What the lines of a hand-off tell.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) last: Option<String>,
    pub(super) next: Option<String>,
    pub(super) counts: Option<Counts>,
    pub(super) failed: Vec<String>,
    pub(super) errors: Vec<String>,
    pub(super) scores: Vec<(String, f64)>,
    /// The other lines.
    pub(super) rest: Vec<String>,
}

impl Told {
    /// Reads the lines of a hand-off.
    pub(super) fn read(handoff: &Handoff) -> Told {
        let mut told = Told::default();
        for line in &handoff.instructions {
            if !told.take(line, handoff) {
                told.rest.push(line.clone());
            }
        }
        told
    }

    /// Takes a line that tells something that goes with the hand-off; any other line, and one that tells
    /// it again, is left.
    fn take(&mut self, line: &str, handoff: &Handoff) -> bool {
        fn first<T>(place: &mut Option<T>, value: Option<T>) -> bool {
            let takes = place.is_none() && value.is_some();
            if takes {
                *place = value;
            }
            takes
        }
        if let Some(last) = line.strip_prefix(LAST) {
            first(&mut self.last, Some(last.to_owned()))
        } else if let Some(next) = line.strip_prefix(NEXT) {
            first(&mut self.next, Some(next.to_owned()))
        } else if let Some(counts) = line.strip_suffix(NOT_LISTED) {
            let counts = counts_in(counts);
            first(
                &mut self.counts,
                counts.filter(|counts| fit(counts, handoff)),
            )
        } else if let Some(ids) = line.strip_prefix(FAILED) {
            let ids: Vec<_> = ids.split(", ").map(str::to_owned).collect();
            // An id may have the separator in it; then nobody can tell which ones these are.
            let known = ids.iter().all(|id| handoff.pending.contains(id));
            if known {
                self.failed.extend(ids);
            }
            known
        } else if let Some(error) = line.strip_prefix(ERROR) {
            self.errors.push(error.to_owned());
            true
        } else if let Some(score) = line.strip_prefix(SCORE).and_then(score_in) {
            self.scores.push(score);
            true
        } else {
            false
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn counts_in(text: &str) -> Option<Counts> {
    let (completed, rest) = text.split_once(" of ")?;
    let (total, rest) = rest.split_once(" subtasks are complete")?;
    let failed = match rest {
        "" => None,
        rest => Some(number(
            rest.strip_prefix(" and ")?.strip_suffix(" failed")?,
        )?),
    };
    Some(Counts {
        completed: number(completed)?,
        total: number(total)?,
        failed,
    })
}

/// Whether there are as many as the hand-off names, or more.
fn fit(counts: &Counts, handoff: &Handoff) -> bool {
    let begun = handoff.in_progress.iter().map(|item| &item.text);
    let begun = begun.filter(|text| !handoff.pending.contains(text));
    let done = count(handoff.done.iter());
    let named = done + count(handoff.pending.iter()) + count(begun);
    counts.completed >= done && counts.total >= named
}

fn score_in(text: &str) -> Option<(String, f64)> {
    let (agent, score) = text.rsplit_once(": ")?;
    Some((agent.to_owned(), number(score)?))
}
