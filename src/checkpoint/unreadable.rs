//! Items of a checkpoint that could not be read but still count.

use std::fmt;

use serde::Serialize;

use super::{Checkpoint, RuleContext, violations};
use crate::json::{Code, Document, Kind, Reading};

/// What an unreadable item counts as: the state of the list that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemState {
    /// Finished work.
    Finished,
    /// Work that was begun.
    Begun,
    /// Work that is left.
    Pending,
    /// Work in a list whose items state their own state, so it may be open.
    Unknown,
    /// A blocker.
    Blocker,
    /// A condition for the task to be complete: a criterion, a gate, a result.
    Criterion,
}

impl ItemState {
    /// Whether it is an item of work, which counts in totals.
    #[must_use]
    pub fn is_work(self) -> bool {
        !matches!(self, ItemState::Blocker | ItemState::Criterion)
    }
}

/// An item that could not be read, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadableItem {
    /// Its JSON pointer, from the root of the file.
    pub pointer: String,
    /// What it counts as.
    pub state: ItemState,
    /// How many items it stands for: 1, or the length of a list that could not be read as a whole.
    pub count: usize,
    /// Why it could not be read.
    pub reason: String,
}

impl UnreadableItem {
    /// Whether the item may be open work, a blocker or an unmet criterion. The task then does not count as complete.
    #[must_use]
    pub fn may_be_open(&self) -> bool {
        self.state != ItemState::Finished
    }

    /// Its position as text, such as `item 2 of /pendingSteps`.
    #[must_use]
    pub fn name(&self) -> String {
        let in_list = self.pointer.rsplit_once('/');
        let number = in_list.and_then(|(list, index)| Some((list, index.parse::<usize>().ok()?)));
        match number {
            Some((list, index)) => format!("item {} of {list}", index.saturating_add(1)),
            None => self.pointer.clone(),
        }
    }
}

impl fmt::Display for UnreadableItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could not be read", self.name())?;
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

/// The items of a document that could not be read, in document order; then the required lists that are missing,
/// since those may not have been empty.
pub(crate) fn unreadable_items<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
) -> Vec<UnreadableItem> {
    let item = |full: &String| {
        let own = full.strip_prefix(document.at())?;
        let (pattern, state) = C::ITEMS
            .iter()
            .find(|(pattern, _)| stands_for(own, pattern))?;
        let list = pattern.strip_suffix("/*");
        let node = document.get(own).filter(|_| list == Some(own));
        let count = match node.filter(|node| node.kind() == Kind::Array) {
            Some(node) => node.elements().count(),
            None => 1,
        };
        let mut violations = reading.violations.iter();
        let why = violations.find(|violation| violation.pointer == *full);
        (count > 0).then(|| UnreadableItem {
            pointer: full.clone(),
            state: *state,
            count,
            reason: why.map(|why| why.message.clone()).unwrap_or_default(),
        })
    };
    let mut items: Vec<UnreadableItem> = reading.left_out().iter().filter_map(item).collect();
    items.extend(missing_lists(document, reading));
    items
}

/// The missing lists of possibly open work that the format requires.
fn missing_lists<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
) -> impl Iterator<Item = UnreadableItem> {
    let is_there = |list: &str| {
        let node = document.get(list);
        node.is_some_and(|node| node.kind() != Kind::Null)
    };
    let lists = C::ITEMS.iter().filter_map(|(pattern, state)| {
        let list = pattern.strip_suffix("/*")?;
        (state.is_work() && *state != ItemState::Finished).then_some((list, *state))
    });
    let absent: Vec<_> = lists.filter(|(list, _)| !is_there(list)).collect();
    let broken = match absent.is_empty() {
        true => Vec::new(),
        false => violations(document, reading, &RuleContext::none()),
    };
    let at = document.at();
    absent.into_iter().filter_map(move |(list, state)| {
        let pointer = format!("{at}{list}");
        let mut broken = broken.iter();
        let required = broken.any(|it| it.code == Code::MISSING && it.pointer == pointer);
        required.then(|| UnreadableItem {
            pointer,
            state,
            count: 1,
            reason: "it is required but missing".to_owned(),
        })
    })
}

/// Whether an unreadable value at `own` hides items of this pattern: it is such an item, or it contains them.
fn stands_for(own: &str, pattern: &str) -> bool {
    let holds = |place: &str| {
        place
            .strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match pattern.strip_suffix("/*") {
        Some(list) => {
            let below = own
                .strip_prefix(list)
                .and_then(|rest| rest.strip_prefix('/'));
            holds(list) || below.is_some_and(|name| !name.contains('/'))
        }
        None => holds(pattern),
    }
}
