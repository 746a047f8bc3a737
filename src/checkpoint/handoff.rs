//! What one agent leaves to the next, in the words all formats share.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{ItemState, Status, Timestamp, UnreadableItem};
use crate::is_blank;

/// The status of a checkpoint that calls itself complete, with items that could not be read.
const COMPLETE_IN_PART: &str = "complete, with items that could not be read";

/// The common view of a checkpoint: all that an agent needs to carry on, whatever the format.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Handoff {
    /// What the task is called, where the checkpoint itself says so.
    pub task: Option<String>,
    /// What is to be done, where the checkpoint itself says so.
    pub description: Option<String>,
    /// The state of the task.
    pub status: Status,
    /// The phase or stage, as the format names it.
    pub phase: Option<String>,
    /// Who made the checkpoint.
    pub agent: Option<String>,
    /// Who worked on the task before, oldest first.
    pub previous_agents: Vec<String>,
    /// When the checkpoint was last changed.
    pub updated_at: Option<Timestamp>,
    /// Why it was last changed, where the format says that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Work that is finished, oldest first.
    pub done: Vec<DoneItem>,
    /// How many pieces of finished work, older than those in [`done`](Handoff::done), the checkpoint no
    /// longer holds.
    pub done_elsewhere: u64,
    /// Where these are: a path relative to the folder of the checkpoint's file, where the checkpoint says so.
    pub elsewhere: Option<String>,
    /// How many of them are not there. Only [`Checkpoints`](crate::Checkpoints) look: of a document alone it is 0.
    pub elsewhere_missing: u64,
    /// Work that was begun and not finished.
    pub in_progress: Vec<OpenItem>,
    /// Work that is left, in order. It may name the work in progress as well.
    pub pending: Vec<String>,
    /// What was decided, oldest first.
    pub decisions: Vec<DecisionItem>,
    /// What keeps the task from going on.
    pub blockers: Vec<String>,
    /// The files that the finished work made or changed, each once, in order of first mention.
    pub files: Vec<String>,
    /// How success is shown.
    pub verification: Option<VerificationItem>,
    /// Further instructions of the format for the next agent.
    pub instructions: Vec<String>,
    /// Items that could not be read; they count. Empty where only the typed checkpoint was asked.
    pub unreadable: Vec<UnreadableItem>,
    /// How many pieces of work are finished, where the format states that apart from listing them.
    pub stated_done: Option<u64>,
    /// How many pieces of work there are, where the format states that apart from listing them.
    pub stated_total: Option<u64>,
    /// Whether the checkpoint says that its agent stopped in order: the context was full, the model's service
    /// asked to wait, another agent was to go on, or it was asked to stop.
    pub stopped_in_order: bool,
}

/// One piece of finished work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DoneItem {
    /// What was done.
    pub text: String,
    /// Files it made.
    pub files_created: Vec<String>,
    /// Files it changed.
    pub files_modified: Vec<String>,
    /// When it was finished.
    pub at: Option<Timestamp>,
}

impl DoneItem {
    /// Finished work without files or time.
    pub fn new(text: impl Into<String>) -> Self {
        DoneItem {
            text: text.into(),
            ..DoneItem::default()
        }
    }
}

/// Finished work, found by its text: lists may be long, and lose their beginnings.
pub(crate) struct DoneIndex<'i>(HashMap<&'i str, Vec<&'i DoneItem>>);

impl<'i> DoneIndex<'i> {
    pub(crate) fn of(items: &'i [DoneItem]) -> Self {
        let mut known: HashMap<&str, Vec<&DoneItem>> = HashMap::new();
        for item in items {
            known.entry(&item.text).or_default().push(item);
        }
        DoneIndex(known)
    }

    pub(crate) fn has(&self, item: &DoneItem) -> bool {
        let same_text = self.0.get(item.text.as_str());
        same_text.is_some_and(|same| same.contains(&item))
    }
}

/// One piece of work in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OpenItem {
    /// What is being done.
    pub text: String,
    /// When it was begun.
    pub started_at: Option<Timestamp>,
    /// How far it is.
    pub note: Option<String>,
}

impl OpenItem {
    /// Work in progress without time or note.
    pub fn new(text: impl Into<String>) -> Self {
        OpenItem {
            text: text.into(),
            ..OpenItem::default()
        }
    }
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecisionItem {
    /// What was decided.
    pub text: String,
    /// Why.
    pub rationale: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

impl DecisionItem {
    /// A decision without reason or time.
    pub fn new(text: impl Into<String>) -> Self {
        DecisionItem {
            text: text.into(),
            ..DecisionItem::default()
        }
    }
}

/// How success is shown, and what has been shown so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerificationItem {
    /// Where the criteria stand.
    pub contract: Option<String>,
    /// Each activity with its state.
    pub results: Vec<(String, String)>,
}

impl Handoff {
    /// Gathers [`files`](Handoff::files) from the finished work: each file once, in order of first
    /// mention.
    pub(crate) fn gather_files(&mut self) {
        let mut seen = BTreeSet::new();
        self.files = self
            .done
            .iter()
            .flat_map(|item| item.files_created.iter().chain(&item.files_modified))
            .filter(|file| seen.insert(file.as_str()))
            .cloned()
            .collect();
    }

    /// Whether its agent had the time to note how far it came.
    pub(crate) fn was_left_in_order(&self) -> bool {
        self.stopped_in_order || self.status == Status::Paused
    }

    /// Where the finished work is that the checkpoint no longer holds, for a sentence: `moved to PLACE`, and how much of
    /// it is not found there.
    #[must_use]
    pub fn moved_to(&self) -> String {
        moved_to(self.elsewhere.as_deref(), self.elsewhere_missing)
    }

    /// How many pieces of work are finished, with those that could not be read.
    #[must_use]
    pub fn count_done(&self) -> u64 {
        let listed = self.done.len() + self.unreadable_work(|state| state == ItemState::Finished);
        let known = count(listed).saturating_add(self.done_elsewhere);
        self.stated_done.unwrap_or(known)
    }

    /// How many pieces of work there are, with those that could not be read, and those that the format counts
    /// without listing them.
    #[must_use]
    pub fn count_all(&self) -> u64 {
        let begun = self.in_progress.iter();
        let begun = begun.filter(|item| !self.pending.contains(&item.text));
        let hidden = self.unreadable_work(|state| state != ItemState::Finished);
        let listed = count(self.pending.len() + begun.count() + hidden);
        let listed = self.count_done().saturating_add(listed);
        match self.stated_total {
            Some(total) if hidden > 0 => total.max(listed),
            Some(total) => total,
            None => listed,
        }
    }

    /// How many pieces of work are left: all without the finished ones.
    #[must_use]
    pub fn count_left(&self) -> u64 {
        self.count_all().saturating_sub(self.count_done())
    }

    fn unreadable_work(&self, of: impl Fn(ItemState) -> bool) -> usize {
        let items = self.unreadable.iter();
        let items = items.filter(|item| item.state.is_work() && of(item.state));
        items.map(|item| item.count).sum()
    }

    /// Whether an unreadable item may be open. Then the task does not count as complete.
    #[must_use]
    pub fn may_be_open(&self) -> bool {
        self.unreadable.iter().any(UnreadableItem::may_be_open)
    }

    /// What is left and recorded as done, each once, where `left` is [what is left](Handoff::what_is_left).
    pub(crate) fn done_and_planned(&self, left: &Handoff) -> Vec<String> {
        if std::ptr::eq(self, left) {
            return Vec::new();
        }
        let mut stays: BTreeSet<&str> = left.texts().collect();
        let twice = self.texts().filter(|text| stays.insert(text));
        twice.map(str::to_owned).collect()
    }

    /// The same without the work that is planned and done as well. A step that is in progress goes on once more, unless
    /// its text is an id, which is of one piece of work.
    pub(crate) fn what_is_left(&self, work_has_ids: bool) -> Cow<'_, Handoff> {
        let done: BTreeSet<&str> = self.done.iter().map(|item| item.text.as_str()).collect();
        if !self.texts().any(|text| done.contains(text)) {
            return Cow::Borrowed(self);
        }
        let mut left = self.clone();
        left.only_what_is_left(work_has_ids);
        Cow::Owned(left)
    }

    /// What is left, in progress first.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let begun = self.in_progress.iter().map(|item| item.text.as_str());
        begun.chain(self.pending.iter().map(String::as_str))
    }

    /// The names of the work that is left, as far as it is listed: what is in progress first.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let mut known = BTreeSet::new();
        let each_once = self.texts().filter(|text| known.insert(*text));
        let mut names: Vec<String> = each_once.map(str::to_owned).collect();
        let hidden = self.unreadable.iter();
        let hidden = hidden.filter(|item| item.may_be_open() && item.state.is_work());
        names.extend(hidden.map(UnreadableItem::name));
        names
    }

    /// Takes out of the work that is left what is done as well.
    pub(crate) fn only_what_is_left(&mut self, work_has_ids: bool) {
        let done: BTreeSet<&str> = self.done.iter().map(|item| item.text.as_str()).collect();
        if work_has_ids {
            self.in_progress
                .retain(|item| !done.contains(item.text.as_str()));
        }
        let goes_on: Vec<String> = self.in_progress.iter().map(|it| it.text.clone()).collect();
        self.pending
            .retain(|text| !done.contains(text.as_str()) || goes_on.contains(text));
    }

    /// Counts in what could not be read; `derived` says that the status follows from what is done and left
    /// ([`STATUS_IS_DERIVED`](super::Checkpoint::STATUS_IS_DERIVED)).
    pub(crate) fn count_in(&mut self, unreadable: Vec<UnreadableItem>, derived: bool) {
        self.unreadable = unreadable;
        let has = |state: ItemState| self.unreadable.iter().any(|item| item.state == state);
        let begun = has(ItemState::Finished) || has(ItemState::Begun);
        let open = self.may_be_open();
        self.status = match &self.status {
            Status::NotStarted | Status::InProgress | Status::Complete
                if derived && has(ItemState::Blocker) =>
            {
                Status::Blocked
            }
            Status::Complete if derived && open => Status::InProgress,
            Status::Complete if open => Status::Other(COMPLETE_IN_PART.to_owned()),
            Status::NotStarted if derived && begun => Status::InProgress,
            status => status.clone(),
        };
    }

    /// Says of each item without a text that it has none, rather than nothing.
    pub(crate) fn name_the_unnamed(&mut self) {
        let done = self
            .done
            .iter_mut()
            .map(|item| (&mut item.text, "finished step"));
        let begun = self.in_progress.iter_mut();
        let begun = begun.map(|item| (&mut item.text, "step in progress"));
        let made = self.decisions.iter_mut();
        let made = made.map(|item| (&mut item.text, "decision"));
        for (text, what) in done.chain(begun).chain(made) {
            if is_blank(text) {
                *text = format!("(a {what} whose text is missing or could not be read)");
            }
        }
    }

    /// Where the next agent begins: the work in progress, else the first that is pending.
    #[must_use]
    pub fn start_at(&self) -> Option<&str> {
        let current = self.in_progress.first().map(|item| item.text.as_str());
        let named = current.filter(|text| !text.is_empty());
        named.or(self.pending.first().map(String::as_str))
    }
}

pub(crate) fn moved_to(place: Option<&str>, missing: u64) -> String {
    let place = place.unwrap_or("the dropped log");
    match missing {
        0 => format!("moved to {place}"),
        1 => format!("moved to {place}, where 1 of them is not found"),
        missing => format!("moved to {place}, where {missing} of them are not found"),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
