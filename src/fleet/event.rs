//! The events between two scans of a fleet.

use std::collections::HashMap;

use serde::Serialize;

use super::{Fleet, Place, Row, RowState};

/// Something that happened between two scans.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The kind of the event.
    pub event: EventKind,
    /// Where it happened.
    #[serde(flatten)]
    pub place: Place,
    /// The agent of the row.
    pub agent: Option<String>,
    /// The task of the row.
    pub task: Option<String>,
    /// The result before; `None` if there was no row.
    pub was: Option<&'static str>,
    /// The result now; `None` if the row is gone.
    pub is: Option<&'static str>,
    /// The event in one line, for a person.
    pub text: String,
    /// The message that the protocol defines about a late or stalled agent, if it does.
    pub message: Option<String>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A new row.
    Appeared,
    /// A row of the earlier scan is gone.
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
    /// A result changed in another way.
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
    /// Returns what happened since an earlier scan of the same sources, in the order of the rows.
    ///
    /// The result depends only on the two scans. A row in both gives *changed* if its document changed, and its new
    /// result if that changed. A new row also gives its result if it is late, stalled, stuck or finished. When a host
    /// file is damaged or repaired, each of its slots gives *turned*.
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

/// The identity of a row: its place, and for a row without a checkpoint also its task and agent.
fn identity(row: &Row) -> Identity<'_> {
    if is_there(row) {
        (&row.place, None, None)
    } else {
        (&row.place, row.task.as_deref(), row.agent.as_deref())
    }
}

/// Whether the row is a checkpoint. Rows that stand for a checkpoint which does not exist yet are replaced by it.
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

/// Whether the first row is a slot of the host file that the second row stands for.
fn is_slot_of(slot: &Row, host: &Row) -> bool {
    slot.place.slot.is_some() && host.place.slot.is_none() && slot.place.file == host.place.file
}

/// The earlier row of the damaged host file that now has this slot.
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

/// The agent and the task, or the place if neither is known.
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
