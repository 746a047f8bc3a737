//! A build that begins anew.

use chrono::{DateTime, Utc};
use serde_json::to_value;

use super::operations::each_once;
use super::{BuildCheckpoint, BuildStatus, gate_name, states};
use crate::checkpoint::{Checkpoint, DropReason, Dropped, Error, Result, Timestamp, Truncation};

impl BuildCheckpoint {
    /// A checkpoint of the same build that begins anew: all its workstreams are pending but the dormant
    /// ones, all its gates too, and the review stays. The protocol has no way back from a build that has
    /// begun, so put the checkpoint that is there aside first.
    #[must_use]
    pub fn begun_anew(&self, now: DateTime<Utc>) -> Self {
        let begun = self.completed_workstreams.iter();
        let workstreams = begun.map(String::as_str).chain(self.open_workstreams());
        let gates = self.gates_passed.iter().map(|gate| gate_name(gate));
        let pending = self.gates_pending.iter().map(String::as_str);
        let dormant: Vec<&str> = self.dormant().collect();
        let mut fresh = BuildCheckpoint {
            prd: self.prd.clone(),
            prd_id: self.prd_id.clone(),
            spec_id: self.spec_id.clone(),
            id: self.id.clone(),
            prd_title: self.prd_title.clone(),
            current_phase: Some(0.0),
            status: Some(BuildStatus::Initialized),
            pending_workstreams: each_once(workstreams.map(str::to_owned)),
            dormant_workstreams: self.dormant_workstreams.clone(),
            skipped_workstreams: self.skipped_workstreams.clone(),
            artifacts: self.artifacts.clone(),
            gates_pending: each_once(gates.chain(pending).map(str::to_owned)),
            adversarial_review: self.adversarial_review.clone(),
            timestamp: Some(Timestamp::like(Checkpoint::updated_at(self), now)),
            ..BuildCheckpoint::default()
        };
        fresh
            .pending_workstreams
            .retain(|id| !dormant.contains(&id.as_str()));
        fresh
            .artifacts
            .retain(|id, _| dormant.contains(&id.as_str()));
        if self.is_later_revision() {
            fresh = fresh.in_later_revision();
        }
        fresh
    }

    /// Begins this build anew in its own file, as [`begun_anew`](BuildCheckpoint::begun_anew) has it; the
    /// time of making stays. A save keeps what was there before, whole, with what was cut.
    ///
    /// A build that has not begun changes nothing.
    ///
    /// # Errors
    ///
    /// Refused when the build is complete, unless forced. The checkpoint is then unchanged.
    pub fn restart(&mut self, now: DateTime<Utc>, force: bool) -> Result<()> {
        if self.is_untouched() {
            return Ok(());
        }
        if states::is(self, &BuildStatus::Complete) && !force {
            return Err(Error::refused(format!(
                "{}; a restart that is forced begins it anew",
                self.already_complete_message()
            )));
        }
        let mut fresh = self.begun_anew(now);
        // The file is the same: the save sets what it stamps.
        fresh.timestamp.clone_from(&self.timestamp);
        fresh.created_at.clone_from(&self.created_at);
        fresh.updated_at.clone_from(&self.updated_at);
        *self = fresh;
        Ok(())
    }

    /// Whether it is planned and nothing was done.
    pub(super) fn is_untouched(&self) -> bool {
        states::is(self, &BuildStatus::Initialized)
            && self.completed_workstreams.is_empty()
            && self.in_progress_workstreams.is_empty()
            && self.gates_passed.is_empty()
            && self.error.is_none()
    }
}

/// What was done before a build began anew has no place in it: the record keeps the whole of it.
pub(super) fn keep_put_aside(
    build: &BuildCheckpoint,
    before: Option<&BuildCheckpoint>,
) -> Truncation {
    let mut truncation = Truncation::default();
    if let Some(before) = before.filter(|before| build.is_untouched() && !before.is_untouched()) {
        let whole = to_value(before).unwrap_or_default();
        truncation
            .dropped
            .push(Dropped::new("", DropReason::PutAside, whole));
    }
    truncation
}
