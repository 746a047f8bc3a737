//! Taking over from an agent that crashed, in one call: its checkpoint is archived and the new agent's
//! begun, and at no instant is there none.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, layout};
use crate::checkpoint::{
    Archive, Checkpoint, Error, ErrorKind, Expect, Fence, FixedClock, Key, Result,
};
use crate::checkpoints::Checkpoints;
use crate::store::{CheckpointStore, DeleteOptions, FileStore, Outcome, Query, Saved};

/// Who takes over the work of an agent of an `agent-session`, and what becomes of the old file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakeOver {
    /// The id of the new agent, which may be that of the old one.
    pub agent_id: String,
    /// The session of the new agent, which must be a fresh one.
    pub session_id: String,
    /// How the work came to be taken over.
    pub notes: String,
    /// Whether the old file is archived as crashed; else it stays beside that of the new agent.
    pub archive: bool,
    /// The fence of the caller's claim on the old checkpoint.
    pub fence: Option<Fence>,
}

impl TakeOver {
    /// An agent that takes over. The old file is archived as crashed.
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

    /// Shows the fence of a claim on the old checkpoint.
    #[must_use]
    pub fn fenced(mut self, fence: impl Into<Option<Fence>>) -> Self {
        self.fence = fence.into();
        self
    }

    /// Leaves the old file where it is. The new agent then needs an id of its own, such as that of
    /// [`take_over_id`](super::take_over_id).
    #[must_use]
    pub fn beside(mut self) -> Self {
        self.archive = false;
        self
    }
}

/// What came of taking over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TakenOver {
    /// The key of the new agent.
    pub key: Key,
    /// Its checkpoint.
    pub checkpoint: AgentCheckpoint,
    /// What the old agent left, for the words that are given to the new one.
    pub before: AgentCheckpoint,
    /// How that was saved.
    pub saved: Saved,
    /// The old agent's file, where it was archived.
    pub archive: Option<PathBuf>,
}

/// Has an agent take over the work of another that crashed, at the same feature and stage.
///
/// The store is the folder of the checkpoints, with the protocol's
/// [`layout`](AgentCheckpoint::layout).
///
/// An agent that takes the old id changes the old file in one update, after a copy of it has its place
/// as an archive; undeclared members stay in both. One with an id of its own gets its own file
/// first, and then the old one is archived. Whatever dies in between, a checkpoint to go on from is
/// there, and the call can be made again.
///
/// # Errors
///
/// [`ErrorKind::Refused`] when the work is complete or cannot be resumed, when the session is not a fresh
/// one, and when the old file is to stay although the new agent has its id. An agent that begins a file of its own is
/// refused also when it has a checkpoint already, and when another agent's checkpoint of this feature names the old agent
/// as the one before and was written since: that is looked up before anything is written, so of two calls at the same
/// time both may succeed, and an agent that took over from that other one is not found once the other's file is archived;
/// [`ErrorKind::Conflict`] when the old agent wrote its own meanwhile: it has not crashed;
/// [`ErrorKind::Claimed`] while another's claim on the old checkpoint stands; [`ErrorKind::NotFound`] and [`ErrorKind::Corrupt`] when there is nothing to take over. In all of
/// these cases nothing is changed.
pub fn take_over(
    store: &FileStore,
    key: &Key,
    by: &TakeOver,
    now: DateTime<Utc>,
) -> Result<TakenOver> {
    let agents = Checkpoints::<AgentCheckpoint>::new(store.clone()).with_clock(FixedClock(now));
    // The new agent has not checked the files yet.
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

/// The new agent goes on in the file of the old one.
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

/// The new agent begins a file of its own.
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
        // One that was written meanwhile is not archived: its agent has not crashed.
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

/// Refuses to take work over that another agent than the new one took over already, in a file of its own. An old agent
/// that wrote since then has its work still, and so has one that is at another feature by now. Where the old stamp is no
/// time, nothing states that the other went on since.
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
        // What cannot be read says nothing of whom it went on from.
        let Ok(Some(there)) = agents.load(other) else {
            continue;
        };
        let there = there.checkpoint;
        let went_on = written(old).is_some_and(|old| written(&there) >= Some(old));
        let is_successor = there.previous_agent.as_ref().is_some_and(is_old);
        if is_successor && there.feature == old.feature && went_on {
            return Err(Error::refused(format!(
                "{other} took the work over; take over from {other}, or archive its checkpoint first"
            ))
            .with_key(key));
        }
    }
    Ok(())
}

/// What an earlier call left that did not come to archive the old file: it stays, since the new agent
/// may have gone on. Any other checkpoint of the new agent is refused.
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
