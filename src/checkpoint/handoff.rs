//! What one agent leaves to the next, in terms common to all formats.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{ItemState, Status, Timestamp, UnreadableItem};
use crate::is_blank;

/// The status for a checkpoint that states it is complete but has items that could not be read.
const COMPLETE_IN_PART: &str = "complete, with items that could not be read";

/// The common view of a checkpoint: everything that an agent needs to carry on, whatever the format.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Handoff {
    /// The name of the task, if the checkpoint has one.
    pub task: Option<String>,
    /// What is to be done, if the checkpoint states it.
    pub description: Option<String>,
    /// The state of the task.
    pub status: Status,
    /// The phase or stage, as the format names it.
    pub phase: Option<String>,
    /// The agent that made the checkpoint.
    pub agent: Option<String>,
    /// The agents that worked on the task before, oldest first.
    pub previous_agents: Vec<String>,
    /// When the checkpoint was last changed.
    pub updated_at: Option<Timestamp>,
    /// Why it was last changed, if the format states that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Work that is finished, oldest first.
    pub done: Vec<DoneItem>,
    /// How many finished items, older than those in [`done`](Handoff::done), the checkpoint no longer contains.
    pub done_elsewhere: u64,
    /// The file that has these items, relative to the folder of the checkpoint's file, if the checkpoint names it.
    pub elsewhere: Option<String>,
    /// How many of these items are missing from that file. Only [`Checkpoints`](crate::Checkpoints) check this;
    /// a hand-off that comes from the document alone has 0.
    pub elsewhere_missing: u64,
    /// Work that was begun and not finished.
    pub in_progress: Vec<OpenItem>,
    /// Work that is left, in order. It may name the work in progress as well.
    pub pending: Vec<String>,
    /// The decisions, oldest first.
    pub decisions: Vec<DecisionItem>,
    /// The reasons why the task cannot continue.
    pub blockers: Vec<String>,
    /// The files that the finished work created or changed, each once, in order of first mention.
    pub files: Vec<String>,
    /// How the success of the task is verified.
    pub verification: Option<VerificationItem>,
    /// Further instructions of the format for the next agent.
    pub instructions: Vec<String>,
    /// Items that could not be read; they count as well. Empty if the hand-off was made from the typed
    /// checkpoint alone.
    pub unreadable: Vec<UnreadableItem>,
    /// How many items are finished, if the format states a number besides listing them.
    pub stated_done: Option<u64>,
    /// How many items there are, if the format states a number besides listing them.
    pub stated_total: Option<u64>,
    /// Whether the checkpoint states that its agent stopped in order: its context was full, the model's service
    /// asked it to wait, it handed the task over, or it was asked to stop.
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

/// An index of finished work by its text, because lists may be long and may lose their beginnings.
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
    /// How far it is, in the agent's words.
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

/// How the success of the task is verified, and the results so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerificationItem {
    /// Where the criteria are defined.
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

    /// Whether the agent had time to note how far it came before it stopped.
    pub(crate) fn was_left_in_order(&self) -> bool {
        self.stopped_in_order || self.status == Status::Paused
    }

    /// Where the finished work is that the checkpoint no longer contains, as part of a sentence:
    /// `moved to PLACE`, and how many items are missing there.
    #[must_use]
    pub fn moved_to(&self) -> String {
        moved_to(self.elsewhere.as_deref(), self.elsewhere_missing)
    }

    /// How many items are finished, including unreadable ones.
    #[must_use]
    pub fn count_done(&self) -> u64 {
        let listed = self.done.len() + self.unreadable_work(|state| state == ItemState::Finished);
        let known = count(listed).saturating_add(self.done_elsewhere);
        self.stated_done.unwrap_or(known)
    }

    /// How many items there are, including unreadable ones and those that the format counts without listing them.
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

    /// How many items are not finished.
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

    /// The items that are recorded both as done and as left, each once, where `left` is the result of
    /// [`what_is_left`](Handoff::what_is_left).
    pub(crate) fn done_and_planned(&self, left: &Handoff) -> Vec<String> {
        if std::ptr::eq(self, left) {
            return Vec::new();
        }
        let mut stays: BTreeSet<&str> = left.texts().collect();
        let twice = self.texts().filter(|text| stays.insert(text));
        twice.map(str::to_owned).collect()
    }

    /// This hand-off without the planned work that is also recorded as done. A step in progress with the same text as
    /// a finished one is kept as repeated work, unless texts are ids, because an id stands for one item.
    pub(crate) fn what_is_left(&self, work_has_ids: bool) -> Cow<'_, Handoff> {
        let done: BTreeSet<&str> = self.done.iter().map(|item| item.text.as_str()).collect();
        if !self.texts().any(|text| done.contains(text)) {
            return Cow::Borrowed(self);
        }
        let mut left = self.clone();
        left.only_what_is_left(work_has_ids);
        Cow::Owned(left)
    }

    /// The texts of what is left, work in progress first.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let begun = self.in_progress.iter().map(|item| item.text.as_str());
        begun.chain(self.pending.iter().map(String::as_str))
    }

    /// The names of the listed work that is left, work in progress first, including unreadable items.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let mut known = BTreeSet::new();
        let each_once = self.texts().filter(|text| known.insert(*text));
        let mut names: Vec<String> = each_once.map(str::to_owned).collect();
        let hidden = self.unreadable.iter();
        let hidden = hidden.filter(|item| item.may_be_open() && item.state.is_work());
        names.extend(hidden.map(UnreadableItem::name));
        names
    }

    /// Removes from the work that is left what is also recorded as done.
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

    /// Adds the unreadable items and adjusts the status. `derived` states that the status follows from what is
    /// done and left ([`STATUS_IS_DERIVED`](super::Checkpoint::STATUS_IS_DERIVED)).
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

    /// Gives each item without a text a placeholder.
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

    /// Where the next agent begins: the work in progress, else the first pending item.
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
