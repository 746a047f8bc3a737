//! Takes over from a crashed agent in one call: its checkpoint is archived and the new agent's begun. At every instant
//! one of them exists.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, layout};
use crate::checkpoint::{
    Archive, Checkpoint, Error, ErrorKind, Expect, Fence, FixedClock, Key, Result,
};
use crate::checkpoints::Checkpoints;
use crate::store::{CheckpointStore, DeleteOptions, FileStore, Outcome, Query, Saved};

/// Which agent takes over the work of another, and what happens to the old file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakeOver {
    /// The id of the new agent; it may be the old id.
    pub agent_id: String,
    /// The session of the new agent; it must be a fresh one.
    pub session_id: String,
    /// How the work came to be taken over.
    pub notes: String,
    /// Whether the old file is archived as crashed; otherwise it stays beside the new agent's file.
    pub archive: bool,
    /// The fence of the caller's claim on the old checkpoint.
    pub fence: Option<Fence>,
}

impl TakeOver {
    /// A take-over by this agent that archives the old file as crashed.
    pub fn new(
        agent_id: impl Into<String>,
        session_id: impl Into<String>,
        notes: impl Into<String>,
    ) -> Self {
        TakeOver {
            agent_id: agent_id.into(),
            session_id: session_id.into(),
            notes: notes.into(),
            archive: true,
            fence: None,
        }
    }

    /// Sets the fence of the caller's claim on the old checkpoint.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Leaves the old file where it is. The new agent then needs another id, such as that of
    /// [`take_over_id`](super::take_over_id).
    #[must_use]
    pub fn beside(mut self) -> Self {
        self.archive = false;
        self
    }
}

/// The result of a take-over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TakenOver {
    /// The key of the new checkpoint.
    pub key: Key,
    /// The new checkpoint.
    pub checkpoint: AgentCheckpoint,
    /// The old agent's checkpoint, for the message to the new agent.
    pub before: AgentCheckpoint,
    /// How the new checkpoint was saved.
    pub saved: Saved,
    /// The path of the archived old file, if it was archived.
    pub archive: Option<PathBuf>,
}

/// Takes over the work of a crashed agent for another one, at the same feature and stage.
///
/// The store is the folder of the checkpoints, with the protocol's [`layout`](AgentCheckpoint::layout).
///
/// When the new agent takes the old id, the old file is copied to an archive and then changed in one update; undeclared
/// members stay in both. When it has another id, its own file is written first and then the old one is archived. If the
/// process dies in between, one checkpoint to resume from exists, and the call can be repeated.
///
/// # Errors
///
/// In each of these cases nothing is changed:
///
/// - [`ErrorKind::Refused`] when the work is complete or cannot be resumed, when the session is not a fresh one, and
///   when the old file is to stay although the new agent has its id. A new agent with another id is refused also when
///   it already has a checkpoint, and when a third agent's checkpoint of this feature names the old agent as the
///   previous one and was written since. That check runs before anything is written, so two calls at the same time may
///   both succeed; and once the third agent's file is archived, an agent that took over from it is not found.
/// - [`ErrorKind::Conflict`] when the old agent wrote its file meanwhile: it has not crashed.
/// - [`ErrorKind::Claimed`] while another agent holds a claim on the old checkpoint.
/// - [`ErrorKind::NotFound`] and [`ErrorKind::Corrupt`] when there is no readable checkpoint to take over.
pub fn take_over(
    store: &FileStore,
    key: &Key,
    by: &TakeOver,
    now: DateTime<Utc>,
) -> Result<TakenOver> {
    let agents = Checkpoints::<AgentCheckpoint>::new(store.clone()).with_clock(FixedClock(now));
    // The new agent has not checked the files yet, so the old fingerprints stay.
    let agents = agents.keep_fingerprints();
    if by.fence.is_some() {
        agents.clone().fenced(by.fence).check_fence(key)?;
    }
    let new = Key::new(by.agent_id.as_str())?;
    let name = AgentCheckpoint::layout().file_name;
    let same_file = store.path(key)? == store.path(&new)? || name(key)? == name(&new)?;
    match (same_file, by.archive) {
        (true, true) => in_place(&agents, key, new, by, now),
        (true, false) => Err(Error::refused(
            "the new agent has the id of the old one, whose file is to stay; give it an id of its own, \
             or archive the old file",
        )
        .with_key(key)),
        (false, _) => beside(&agents, store, key, new, by, now),
    }
}

/// The new agent continues in the file of the old one.
fn in_place(
    agents: &Checkpoints<AgentCheckpoint>,
    key: &Key,
    new: Key,
    by: &TakeOver,
    now: DateTime<Utc>,
) -> Result<TakenOver> {
    let agents = agents.clone().fenced(by.fence);
    let agents = agents.archiving(Archive::Crashed);
    let mut checkpoint = AgentCheckpoint::default();
    let mut before = AgentCheckpoint::default();
    let saved = agents.try_update(key, |agent| {
        checkpoint = agent.taken_over(&by.agent_id, &by.session_id, &by.notes, now)?;
        before = std::mem::replace(agent, checkpoint.clone());
        Ok(())
    })?;
    Ok(TakenOver {
        key: new,
        checkpoint,
        before,
        archive: saved.archive.clone(),
        saved,
    })
}

/// The new agent begins its own file.
fn beside(
    agents: &Checkpoints<AgentCheckpoint>,
    store: &FileStore,
    key: &Key,
    new: Key,
    by: &TakeOver,
    now: DateTime<Utc>,
) -> Result<TakenOver> {
    let old = agents.get(key)?;
    let next = old
        .checkpoint
        .taken_over(&by.agent_id, &by.session_id, &by.notes, now)?;
    refuse_second(agents, (key, &old.checkpoint), &new)?;
    let (begun, checkpoint) = match agents.create_after(&new, &next, (key, &old)) {
        Ok(saved) => (saved, next),
        Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {
            let path = store.path(&new)?;
            begun_before(agents, &new, &next).map_err(|error| error.with_path(path))?
        }
        Err(error) => return Err(error),
    };
    let archive = if by.archive {
        // If the file was written meanwhile, it is not archived: its agent has not crashed.
        let mut as_it_was = DeleteOptions::new().with_expect(Expect::Revision(old.revision));
        as_it_was.fence = by.fence;
        match store.archive(key, Archive::Crashed, now, &as_it_was) {
            Ok(archive) => Some(archive),
            Err(error) => {
                let nothing_changed = matches!(
                    error.kind(),
                    ErrorKind::Conflict { .. }
                        | ErrorKind::Claimed { .. }
                        | ErrorKind::Fenced { .. }
                );
                if nothing_changed && begun.outcome == Outcome::Created {
                    let created =
                        DeleteOptions::new().with_expect(Expect::Revision(begun.revision));
                    store.delete(&new, &created)?;
                }
                return Err(error);
            }
        }
    } else {
        None
    };
    Ok(TakenOver {
        key: new,
        checkpoint,
        before: old.checkpoint,
        saved: begun,
        archive,
    })
}

/// Refuses to take over work that a third agent already took over into its own file. An old agent that wrote since then
/// still has its work, and so does one that is at another feature by now. When the old stamp is no time, there is no
/// evidence that the third agent wrote later.
fn refuse_second(
    agents: &Checkpoints<AgentCheckpoint>,
    old: (&Key, &AgentCheckpoint),
    new: &Key,
) -> Result<()> {
    let (key, old) = old;
    let written = |agent: &AgentCheckpoint| agent.last_checkpoint.as_ref()?.time();
    let is_old = |id: &String| layout::same_agent(id, key.as_str());
    let page = agents.store().list(&Query::all())?;
    let is = |one: &Key, other: &Key| layout::same_agent(one.as_str(), other.as_str());
    for other in page.keys().filter(|it| !is(it, key) && !is(it, new)) {
        // An unreadable checkpoint names no previous agent.
        let Ok(Some(there)) = agents.load(other) else {
            continue;
        };
        let there = there.checkpoint;
        let went_on = written(old).is_some_and(|old| written(&there) >= Some(old));
        let is_successor = there.previous_agent.as_ref().is_some_and(is_old);
        if is_successor && there.feature == old.feature && went_on {
            return Err(Error::refused(format!(
                "{other} took over this work; take over from {other}, or archive its checkpoint first"
            ))
            .with_key(key));
        }
    }
    Ok(())
}

/// The checkpoint that an earlier call began before it could archive the old file. It is kept, since the new agent may
/// have worked on it. Any other checkpoint of the new agent is refused.
fn begun_before(
    agents: &Checkpoints<AgentCheckpoint>,
    new: &Key,
    next: &AgentCheckpoint,
) -> Result<(Saved, AgentCheckpoint)> {
    let there = agents.get(new)?.checkpoint;
    let is_that =
        there.session_id == next.session_id && there.previous_agent == next.previous_agent;
    if !is_that {
        let detail = "the new agent has a checkpoint of its own here; name another agent, or archive that one first";
        return Err(Error::refused(detail).with_key(new));
    }
    Ok((agents.update(new, |_| {})?, there))
}
