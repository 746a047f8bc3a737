//! Begins a build, and restarts one.

use chrono::{DateTime, Utc};
use serde_json::to_value;

use super::gates::gate_name;
use super::layout::is_build_id;
use super::spec::ExecutionSpec;
use super::{BuildCheckpoint, BuildStatus, states};
use crate::checkpoint::{
    DropReason, Dropped, Error, OperationContext, Result, Timestamp, Truncation,
};
use crate::quoted;

impl BuildCheckpoint {
    /// The checkpoint of a build that is planned and has not begun, with the stamps of the first revision;
    /// [`in_later_revision`](BuildCheckpoint::in_later_revision) changes them to those of the later one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when `prd` is no id of the protocol.
    pub fn initialize(
        prd: impl Into<String>,
        title: impl Into<String>,
        spec: &ExecutionSpec,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let prd = prd.into();
        if !is_build_id(&prd) {
            return Err(Error::refused(format!(
                "{prd} is not an id of this protocol; use one such as PRD-003",
                prd = quoted(prd.as_str())
            )));
        }
        let workstreams = spec.workstreams().map(|item| item.id.clone());
        Ok(BuildCheckpoint {
            prd: Some(prd),
            prd_title: Some(title.into()),
            current_phase: Some(0.0),
            status: Some(BuildStatus::Initialized),
            pending_workstreams: each_once(workstreams),
            gates_pending: each_once(spec.gates.iter().cloned()),
            timestamp: Some(Timestamp::like(None, now)),
            ..BuildCheckpoint::default()
        })
    }

    /// Restarts this build in its own file: all workstreams but the dormant ones and all gates are pending again; the
    /// review and the time of creation stay. A save keeps the whole former checkpoint among the dropped items.
    ///
    /// A build that has not begun is left unchanged; a complete one restarts only by force.
    pub(super) fn restart(&mut self, because: &str, context: &OperationContext<'_>) -> Result<()> {
        if self.is_untouched() {
            return Ok(());
        }
        if states::is(self, &BuildStatus::Complete) && !context.force {
            return Err(Error::refused(format!(
                "{}; force the restart to start over",
                self.already_complete_message()
            )));
        }
        let begun = self.completed_workstreams.iter();
        let workstreams = begun.map(String::as_str).chain(self.open_workstreams());
        let dormant: Vec<&str> = self.dormant().collect();
        let is_dormant = |id: &str| dormant.contains(&id);
        let workstreams = workstreams.filter(|id| !is_dormant(id)).map(str::to_owned);
        let gates = self.gates_passed.iter().map(|gate| gate_name(gate));
        let gates = gates.chain(self.gates_pending.iter().map(String::as_str));
        let mut artifacts = self.artifacts.clone();
        artifacts.retain(|id, _| is_dormant(id));
        *self = BuildCheckpoint {
            prd: self.prd.clone(),
            prd_id: self.prd_id.clone(),
            spec_id: self.spec_id.clone(),
            id: self.id.clone(),
            prd_title: self.prd_title.clone(),
            current_phase: Some(0.0),
            status: Some(BuildStatus::Initialized),
            pending_workstreams: each_once(workstreams),
            dormant_workstreams: self.dormant_workstreams.clone(),
            skipped_workstreams: self.skipped_workstreams.clone(),
            artifacts,
            gates_pending: each_once(gates.map(str::to_owned)),
            adversarial_review: self.adversarial_review.clone(),
            timestamp: self.timestamp.clone(),
            created_at: self.created_at.clone(),
            updated_at: self.updated_at.clone(),
            cleanup_done: Some(vec![format!("Begun anew: {because}")]),
            ..BuildCheckpoint::default()
        };
        Ok(())
    }

    /// Whether the build is planned and nothing was done.
    pub(super) fn is_untouched(&self) -> bool {
        states::is(self, &BuildStatus::Initialized)
            && self.completed_workstreams.is_empty()
            && self.in_progress_workstreams.is_empty()
            && self.gates_passed.is_empty()
            && self.error.is_none()
    }
}

/// Drops the whole former checkpoint of a restarted build as one item, so that the dropped log keeps it.
pub(super) fn keep_superseded(
    build: &BuildCheckpoint,
    before: Option<&BuildCheckpoint>,
) -> Truncation {
    let mut truncation = Truncation::default();
    if let Some(before) = before.filter(|before| build.is_untouched() && !before.is_untouched()) {
        let whole = to_value(before).unwrap_or_default();
        truncation
            .dropped
            .push(Dropped::new("", DropReason::Superseded, whole));
    }
    truncation
}

fn each_once(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}
