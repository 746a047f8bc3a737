//! What happened between two scans of a fleet.

use std::collections::HashMap;

use serde::Serialize;

use super::{Fleet, Place, Row, RowState};

/// Something that happened between two scans.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub event: EventKind,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The agent of the row.
    pub agent: Option<String>,
    /// The task of the row.
    pub task: Option<String>,
    /// The result before; `None` where there was no row.
    pub was: Option<&'static str>,
    /// The result now; `None` where there is no row any more.
    pub is: Option<&'static str>,
    /// The event in one line, for a person.
    pub text: String,
    /// The protocol's own message about an agent that is late or stalled, where it has one.
    pub message: Option<String>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A row is there that was not.
    Appeared,
    /// A row is there no more.
    Gone,
    /// A checkpoint was written.
    Changed,
    /// An agent became late.
    Late,
    /// An agent stalled.
    Stalled,
    /// An agent got stuck.
    Stuck,
    /// A task was finished.
    Finished,
    /// An agent that was late, stalled or stuck is active again.
    Recovered,
    /// A result turned into another one.
    Turned,
}

impl EventKind {
    /// The kind in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Appeared => "appeared",
            EventKind::Gone => "gone",
            EventKind::Changed => "changed",
            EventKind::Late => "late",
            EventKind::Stalled => "stalled",
            EventKind::Stuck => "stuck",
            EventKind::Finished => "finished",
            EventKind::Recovered => "recovered",
            EventKind::Turned => "turned",
        }
    }
}

impl Fleet {
    /// What happened since an earlier scan of the same sources, in the order of the rows.
    ///
    /// It depends on the two scans alone. A row that both have gives *changed* when its document changed, and its new
    /// result when that changed. A row that appears also gives its result when it is late, stalled, stuck or finished.
    /// Where a host file is damaged or mended, each of its slots turns.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
    /// # let folder = tempfile::tempdir()?;
    /// let sources = [Source::folder(folder.path())];
    /// let scan = || Fleet::scan(&sources, &FleetOptions::new(), chrono::Utc::now());
    /// let before = scan();
    /// for event in scan().changes_since(&before) {
    ///     println!("{}", event.text);
    /// }
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn changes_since(&self, before: &Fleet) -> Vec<Event> {
        let mut old: HashMap<Identity<'_>, &Row> =
            before.rows.iter().map(|row| (identity(row), row)).collect();
        let mut events = Vec::new();
        for row in &self.rows {
            match old.remove(&identity(row)) {
                None if is_damaged(row) && old.values().any(|was| is_slot_of(was, row)) => {
                    let slots = old.values().filter(|was| is_slot_of(was, row));
                    let mut slots: Vec<&Row> = slots.copied().collect();
                    slots.sort_by(|one, other| one.place.cmp(&other.place));
                    for was in slots {
                        old.remove(&identity(was));
                        events.push(Event {
                            was: Some(was.result()),
                            is: Some(row.result()),
                            text: format!("{}: {}", name(was), words(EventKind::Turned, None, row)),
                            ..event(EventKind::Turned, None, was)
                        });
                    }
                }
                None => match damaged_host(before, row) {
                    Some(host) => {
                        old.remove(&identity(host));
                        let kind = became(Some(host), row).unwrap_or(EventKind::Turned);
                        events.push(event(kind, Some(host), row));
                    }
                    None => {
                        events.push(event(EventKind::Appeared, None, row));
                        let kind = became(None, row);
                        events.extend(kind.map(|kind| event(kind, None, row)));
                    }
                },
                Some(was) => {
                    if was.revision != row.revision {
                        events.push(event(EventKind::Changed, Some(was), row));
                    }
                    if was.result() != row.result() {
                        let kind = became(Some(was), row).unwrap_or(EventKind::Turned);
                        events.push(event(kind, Some(was), row));
                    }
                }
            }
        }
        let mut gone: Vec<&Row> = old.into_values().filter(|row| is_there(row)).collect();
        gone.sort_by(|one, other| one.place.cmp(&other.place));
        events.extend(gone.into_iter().map(|row| Event {
            is: None,
            was: Some(row.result()),
            text: format!("{}: gone", name(row)),
            message: None,
            ..event(EventKind::Gone, None, row)
        }));
        events
    }
}

type Identity<'r> = (&'r Place, Option<&'r str>, Option<&'r str>);

/// What makes two rows the same: their place; a row without one is known by its task or agent.
fn identity(row: &Row) -> Identity<'_> {
    if is_there(row) {
        (&row.place, None, None)
    } else {
        (&row.place, row.task.as_deref(), row.agent.as_deref())
    }
}

/// Whether the row is of a checkpoint, not of one that should be there: that is gone when it comes.
fn is_there(row: &Row) -> bool {
    !matches!(
        row.state,
        RowState::NotStarted | RowState::Claimed | RowState::Missing
    )
}

fn is_damaged(row: &Row) -> bool {
    matches!(
        row.state,
        RowState::Corrupt { .. } | RowState::Unreadable { .. }
    )
}

/// Whether a row is of a slot of the file that the other row is of as a whole.
fn is_slot_of(slot: &Row, host: &Row) -> bool {
    slot.place.slot.is_some() && host.place.slot.is_none() && slot.place.file == host.place.file
}

/// The row of a host file that was damaged, and that has this slot now.
fn damaged_host<'r>(before: &'r Fleet, row: &Row) -> Option<&'r Row> {
    let mut damaged = before.rows.iter().filter(|was| is_damaged(was));
    row.place.slot.as_ref()?;
    damaged.find(|was| is_slot_of(row, was))
}

fn became(was: Option<&Row>, row: &Row) -> Option<EventKind> {
    let had_trouble = was.is_some_and(|was| matches!(was.result(), "late" | "stalled" | "stuck"));
    match row.result() {
        "late" => Some(EventKind::Late),
        "stalled" => Some(EventKind::Stalled),
        "stuck" => Some(EventKind::Stuck),
        "finished" => Some(EventKind::Finished),
        "active" if had_trouble => Some(EventKind::Recovered),
        _ => None,
    }
}

fn event(kind: EventKind, was: Option<&Row>, row: &Row) -> Event {
    let is_notice = matches!(
        kind,
        EventKind::Late | EventKind::Stalled | EventKind::Stuck
    );
    Event {
        event: kind,
        place: row.place.clone(),
        agent: row.agent.clone(),
        task: row.task.clone(),
        was: was.map(Row::result),
        is: Some(row.result()),
        text: format!("{}: {}", name(row), words(kind, was, row)),
        message: row.message.clone().filter(|_| is_notice),
    }
}

/// The agent and the task, or the place where neither is known.
fn name(row: &Row) -> String {
    match (&row.agent, &row.task) {
        (Some(agent), Some(task)) => format!("{agent}, {task}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => row.place.to_string(),
    }
}

fn words(kind: EventKind, was: Option<&Row>, row: &Row) -> String {
    let percent = row.progress.percent.map(|percent| format!(", {percent}%"));
    let percent = percent.unwrap_or_default();
    match (kind, &row.state) {
        (EventKind::Changed, _) => format!("changed{percent}"),
        (EventKind::Appeared, _) => format!("appeared, {}{percent}", row.result()),
        (EventKind::Turned | EventKind::Recovered, RowState::Checkpoint { .. }) => {
            format!("{} → {}", was.map_or("—", Row::result), row.result())
        }
        (_, RowState::Checkpoint { liveness }) => liveness.to_string(),
        (_, RowState::Corrupt { reason } | RowState::Unreadable { reason }) => {
            format!("{}: {reason}", row.result())
        }
        _ => row.result().to_owned(),
    }
}
