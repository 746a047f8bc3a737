//! Attempts at a task that ended without progress.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::identity::short_digest;
use super::line::{Line, Tried};
use super::record::LedgerState;
use super::{Attempt, Ledger, TRIES};
use crate::checkpoint::{Claim, Handoff, Limits, ProcessId, Result, Status};

/// The most characters of an error in a line.
const LONGEST: usize = 200;

impl LedgerState {
    /// The consecutive attempts without progress; none if the checkpoint shows progress or an orderly stop since the
    /// last one. The last is not included while the owner that took the task over works under this claim.
    #[must_use]
    pub fn failed_attempts(
        &self,
        handoff: &Handoff,
        claim: Option<&Claim>,
        now: DateTime<Utc>,
    ) -> &[Attempt] {
        let Some(last) = self.attempts.last() else {
            return &[];
        };
        if last.mark != mark(handoff) || is_orderly_since(handoff, last.at) {
            return &[];
        }
        let is_at_work = |claim: &Claim| {
            let is_gone = claim.process.as_ref().is_some_and(ProcessId::is_gone);
            claim.fence == last.fence && claim.stands(now) && !is_gone
        };
        let is_under_way = last.over.is_some() && claim.is_some_and(is_at_work);
        &self.attempts[..self.attempts.len() - usize::from(is_under_way)]
    }
}

impl Ledger {
    /// Counts the attempt that ended before `claim` was granted. `before` is the last claim, and `handoff` the hand-off
    /// of the checkpoint. Returns whether an attempt was counted: none if `before` was released or is renewed by
    /// `claim`, if its agent stopped in order, if the work is complete or waits, and if the failure is already counted.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Ledger::begin). They do not affect the claim.
    pub fn count_take_over(
        &self,
        before: Option<&Claim>,
        claim: &Claim,
        handoff: &Handoff,
    ) -> Result<bool> {
        let Some(before) = before.filter(|before| is_left(before, claim)) else {
            return Ok(false);
        };
        if handoff.status == Status::Complete || is_orderly_since(handoff, before.since) {
            return Ok(false);
        }
        // An agent that found the task waiting has attempted nothing.
        if self.read()?.state.waiting(handoff, self.now()).is_some() {
            return Ok(false);
        }
        let tried = || Tried {
            over: Some(before.owner.clone()),
            fence: claim.fence,
            mark: mark(handoff),
            error: error_of(handoff),
        };
        let is_counted = |last: &Attempt| {
            let is_failure = last.over.is_none() && last.fence == before.fence;
            (is_failure && last.mark == mark(handoff)) || last.fence == claim.fence
        };
        self.clone().fenced(claim.fence).count(tried, is_counted)
    }

    /// Counts work that failed with this error under the claim of this ledger's fence. Without a fence nothing is
    /// counted.
    pub(crate) fn count_failure(&self, handoff: &Handoff, error: &str) -> Result<bool> {
        let Some(fence) = self.fence else {
            return Ok(false);
        };
        let tried = || Tried {
            over: None,
            fence,
            mark: mark(handoff),
            error: shortened(error),
        };
        self.count(tried, |_| false)
    }

    fn count(
        &self,
        tried: impl Fn() -> Tried,
        is_counted: impl Fn(&Attempt) -> bool,
    ) -> Result<bool> {
        for _ in 0..TRIES {
            let entries = self.read()?;
            if entries.state.attempts.last().is_some_and(&is_counted) {
                return Ok(false);
            }
            let line = Line::tried(self.now(), &self.by, tried());
            if self.of_task(&entries).append(line, &entries, self.fence)? {
                return Ok(true);
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Restarts the count of attempts, for a caller that has fixed their cause. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Ledger::begin).
    pub fn reset_attempts(&self) -> Result<bool> {
        if self.read()?.state.attempts.is_empty() {
            return Ok(false);
        }
        self.add(|| Line::begins_anew(self.now(), &self.by))?;
        Ok(true)
    }
}

/// Whether a claim was not released before the next was granted.
fn is_left(before: &Claim, claim: &Claim) -> bool {
    // The same process, not this one, claims again: its claim expired, but its attempt did not end.
    let is_other =
        |process: &ProcessId| !process.is_this() && claim.process.as_ref() == Some(process);
    let is_at_it = before.owner == claim.owner && before.process.as_ref().is_some_and(is_other);
    !before.released && before.fence != claim.fence && !is_at_it
}

/// Whether an agent stopped in order since a time. The stop of an earlier agent is no evidence for a later one, whose
/// own end no process recorded. Stamps of checkpoints may have whole seconds.
fn is_orderly_since(handoff: &Handoff, since: DateTime<Utc>) -> bool {
    let stopped = handoff.updated_at.as_ref().and_then(|stamp| stamp.time());
    handoff.was_left_in_order()
        && stopped.is_none_or(|stopped| stopped.timestamp() >= since.timestamp())
}

/// A digest of the progress. A heartbeat, a note, a blocker, a begun step or a reworded plan is no progress: an agent
/// that repeatedly fails at its first step may reword the plan each time.
fn mark(handoff: &Handoff) -> String {
    let verified = handoff.verification.as_ref().map(|it| &it.results);
    short_digest(&json!([handoff.count_done(), handoff.phase, verified]))
}

/// The failure of the last agent, as its checkpoint describes it.
fn error_of(handoff: &Handoff) -> String {
    if !handoff.blockers.is_empty() {
        return shortened(&handoff.blockers.join("; "));
    }
    match handoff.in_progress.first() {
        Some(item) => shortened(&format!("ended without a word at: {}", item.text)),
        None => "ended without a word".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Limits::default().cut(&line, LONGEST).unwrap_or(line)
}
