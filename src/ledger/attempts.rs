//! Attempts at a task that ended without progress.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::identity::short_digest;
use super::record::{LedgerState, Line};
use super::{Ledger, TRIES};
use crate::checkpoint::{Claim, Fence, Handoff, Limits, ProcessId, Result, Status};

/// The most characters of an error that a line has.
const LONGEST: usize = 200;

/// An attempt at a task that ended without success: its agent is gone, or its work failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// When that was found.
    pub at: DateTime<Utc>,
    /// Who found it: the owner that took the task over, or the one whose work failed.
    pub by: String,
    /// From whom the task was taken over; `None` where the work of an owner failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// What is known of the failure.
    pub error: String,
    /// How far the work was.
    #[serde(skip)]
    mark: String,
    /// The claim of who found it.
    #[serde(skip)]
    fence: Fence,
}

/// What a line says of an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tried {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    over: Option<String>,
    fence: Fence,
    mark: String,
    error: String,
}

/// What a line says of an attempt that ended.
pub(super) const ATTEMPT: &str = "attempt";
/// What a line says after which the count begins anew.
pub(super) const RESET: &str = "attempts-reset";

impl LedgerState {
    /// The attempts in a row that ended without progress, as far as the checkpoint has still made none. The last is left
    /// out while the owner that took the task over is at work under this claim.
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

    pub(super) fn tried(&mut self, at: DateTime<Utc>, by: String, tried: Tried) {
        let Tried {
            over,
            fence,
            mark,
            error,
        } = tried;
        // Progress starts the count anew.
        self.attempts.retain(|before| before.mark == mark);
        self.attempts.push(Attempt {
            at,
            by,
            over,
            error,
            mark,
            fence,
        });
    }
}

impl Ledger {
    /// Counts the attempt that ended before `claim` was granted, where `before` was the last claim and the checkpoint had
    /// this hand-off. Says whether there was one: none where `before` was given back or is renewed by `claim`, where its
    /// agent stopped in order or its work is complete, and where its failure is counted already.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Ledger::begin). The claim is not affected by them.
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
        // Who looks whether it may go on, and may not, has attempted nothing.
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

    /// Counts work that failed with this error under the claim with the fence of this ledger; of an owner without a claim
    /// nothing is counted.
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

    /// Starts the count of attempts anew: for whoever has mended their cause. Says whether there were some.
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

/// Whether a claim was not given back before the next was granted.
fn is_left(before: &Claim, claim: &Claim) -> bool {
    // The process that was at work is still there, and claims again: its claim ran out, and its attempt did not.
    let is_other =
        |process: &ProcessId| !process.is_this() && claim.process.as_ref() == Some(process);
    let is_at_it = before.owner == claim.owner && before.process.as_ref().is_some_and(is_other);
    !before.released && before.fence != claim.fence && !is_at_it
}

/// Whether an agent stopped in order since a time. The stop of an earlier one says nothing of a later one, whose own end
/// nobody recorded. Stamps of checkpoints may have whole seconds.
fn is_orderly_since(handoff: &Handoff, since: DateTime<Utc>) -> bool {
    let stopped = handoff.updated_at.as_ref().and_then(|stamp| stamp.time());
    handoff.was_left_in_order()
        && stopped.is_none_or(|stopped| stopped.timestamp() >= since.timestamp())
}

/// How far the work is. A heartbeat, a note, a blocker, a step that begins or another wording of the plan is no progress:
/// an agent that ends at its first step again and again may word it anew each time.
fn mark(handoff: &Handoff) -> String {
    let verified = handoff.verification.as_ref().map(|it| &it.results);
    short_digest(&json!([handoff.count_done(), handoff.phase, verified]))
}

/// What a checkpoint says of the failure of the agent that it was left by.
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
