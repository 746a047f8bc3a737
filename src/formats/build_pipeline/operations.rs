//! What agents and supervisors do to the checkpoint of a build.

use crate::quoted;
use chrono::{DateTime, Utc};

use super::gates::{FidelityGate, PresenceGate};
use super::{
    AdversarialReview, Bucket, BuildCheckpoint, BuildError, BuildStatus, ExecutionSpec,
    PresenceClass, RenderProofWaiver, Verdict, artifacts, gate_name, gate_workstream, is_build_id,
    phase, states,
};
use crate::checkpoint::{
    Checkpoint, Error, OpenEnum, Operation, OperationContext, Result, Timestamp, have_names,
};

const STACK_DOWN: &str = "a stack that is down is never waived; start it and look again";

impl BuildError {
    /// A failure of a workstream.
    pub fn new(workstream: impl Into<String>, message: impl Into<String>) -> Self {
        BuildError {
            workstream: Some(workstream.into()),
            message: Some(message.into()),
            ..BuildError::default()
        }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32) -> Self {
        self.file = Some(file.into());
        self.line = Some(line.into());
        self
    }
}

impl BuildCheckpoint {
    /// The checkpoint of a build that was planned and has not begun, with the stamps of the first
    /// revision; [`in_later_revision`](BuildCheckpoint::in_later_revision) gives it the others.
    ///
    /// # Errors
    ///
    /// Refused when `prd` is no id of the protocol.
    pub fn initialize(
        prd: impl Into<String>,
        title: impl Into<String>,
        spec: &ExecutionSpec,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let prd = prd.into();
        if !is_build_id(&prd) {
            return Err(Error::refused(format!(
                "{prd} is no id of this protocol; take one such as PRD-003",
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

    /// Begins a pending workstream. The build is in progress then, and an error is gone: it was fixed.
    ///
    /// A workstream that is in progress already goes on; should it be pending besides, it is so no more.
    /// Forced, a dormant workstream is woken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the build cannot be in progress next,
    /// unless forced; refused when the workstream is not pending, is completed as well, or is dormant and
    /// not forced. The checkpoint is then unchanged.
    pub fn start_workstream(&mut self, id: &str, force: bool) -> Result<()> {
        let in_progress = states::is(self, &BuildStatus::InProgress);
        if !in_progress {
            states::check(self, &BuildStatus::InProgress, force)?;
        }
        let is_in = |bucket| self.is_in(id, bucket);
        let can_start = is_in(Bucket::InProgress)
            || is_in(Bucket::Pending)
            || self.failed_workstream() == Some(id);
        let is_dormant = is_in(Bucket::Dormant);
        if is_in(Bucket::Completed) || !(can_start || is_dormant) || (is_dormant && !force) {
            return Err(self.not_among(id, Bucket::Pending));
        }
        if is_dormant {
            self.wake(id);
        }
        self.pending_workstreams.retain(|pending| pending != id);
        if !self.is_in(id, Bucket::InProgress) {
            self.in_progress_workstreams.push(id.to_owned());
        }
        self.enter(BuildStatus::InProgress);
        Ok(())
    }

    /// Records that a workstream is done, with the files that it made.
    ///
    /// The build stays in progress even when nothing else is: a gate, a pause, the next workstream or
    /// completion follows. Where the gate of this workstream was passed before, it pauses. Of a workstream that is done already the files are recorded that are new.
    ///
    /// # Errors
    ///
    /// Refused when the workstream is not in progress (forced: nor pending), when a file has no name, and when
    /// files are to be added to an artifact that is no list. The checkpoint is then unchanged.
    pub fn complete_workstream(&mut self, id: &str, files: &[String], force: bool) -> Result<()> {
        have_names(files)?;
        let bucket = self.bucket(id);
        let counts = bucket == Some(Bucket::InProgress)
            || bucket == Some(Bucket::Completed)
            || (bucket == Some(Bucket::Pending) && force);
        if !counts {
            return Err(self.not_among(id, Bucket::InProgress));
        }
        if bucket != Some(Bucket::Completed) && !states::is(self, &BuildStatus::InProgress) {
            states::check(self, &BuildStatus::InProgress, force)?;
        }
        let artifact = artifacts::with_files(self, id, files)?;
        if let Some(artifact) = artifact {
            self.artifacts.insert(id.to_owned(), artifact);
        }
        // One that stood in another bucket besides is done as well.
        self.in_progress_workstreams.retain(|other| other != id);
        self.pending_workstreams.retain(|other| other != id);
        if bucket != Some(Bucket::Completed) {
            self.completed_workstreams.push(id.to_owned());
            // Its gate may have been passed while it was in progress: then the build pauses for review now.
            let is_judged = self
                .gates_passed
                .iter()
                .any(|gate| gate_workstream(gate) == Some(id));
            let idle = self.in_progress_workstreams.is_empty();
            self.enter(if idle && is_judged {
                BuildStatus::Paused
            } else {
                BuildStatus::InProgress
            });
        }
        Ok(())
    }

    /// Records that the build failed: what was in progress is pending again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) unless the build is in progress or it is
    /// forced; refused when the error names a workstream that the build does not have.
    pub fn fail(&mut self, error: BuildError, force: bool) -> Result<()> {
        states::check(self, &BuildStatus::Failed, force)?;
        if let Some(id) = &error.workstream {
            let bucket = self.bucket(id);
            if !matches!(bucket, Some(Bucket::InProgress | Bucket::Pending)) {
                return Err(self.not_among(id, Bucket::InProgress));
            }
        }
        self.put_back();
        self.enter(BuildStatus::Failed);
        self.error = Some(error);
        Ok(())
    }

    /// Leaves a pending workstream out of this run, and says why.
    ///
    /// # Errors
    ///
    /// Refused when the workstream is not pending.
    pub fn leave_out(&mut self, id: &str, reason: &str) -> Result<()> {
        let bucket = self.bucket(id);
        if bucket != Some(Bucket::Pending) {
            return Err(self.not_among(id, Bucket::Pending));
        }
        self.pending_workstreams.retain(|pending| pending != id);
        // The name that the file has.
        let list = match &mut self.skipped_workstreams {
            Some(older) if self.dormant_workstreams.is_none() => older,
            _ => self.dormant_workstreams.get_or_insert_default(),
        };
        list.push(id.to_owned());
        let artifact = artifacts::dormant(reason);
        self.artifacts.insert(id.to_owned(), artifact);
        Ok(())
    }

    /// Records that a gate was passed, such as `type-check (WS2)`; it takes the place of the pending gate
    /// of that name.
    ///
    /// `phase` becomes the current one; without it the number stays, for a gate does not tell which phase it ends
    /// ([`finished_phase`](BuildCheckpoint::finished_phase) tells it from the plan). Where nothing is in progress, the
    /// build pauses for a review. A gate that was passed already changes nothing else. Where it is the gate that
    /// failed the build, its error is gone, and the build pauses.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the build can neither pause nor is
    /// paused, unless forced; refused when the build has no such gate. The checkpoint is then unchanged.
    pub fn pass_gate(&mut self, gate: &str, phase: Option<u32>, force: bool) -> Result<()> {
        let pending = self.pending_gate(gate)?;
        let is_passed = |passed: &String| super::gates::same_gate(passed, gate);
        let again = pending.is_none() && self.gates_passed.iter().any(is_passed);
        if pending.is_none() && !again {
            // `type-check (WS4)` after `type-check (WS2)`: one pending gate is passed for each.
            let name = gate_name(gate);
            let mut passed = self.gates_passed.iter();
            if !passed.any(|passed| gate_name(passed) == name) {
                return Err(self.no_such_gate(gate));
            }
        }
        let mended = states::is(self, &BuildStatus::Failed) && self.failed_at(gate);
        let failed = states::is(self, &BuildStatus::Failed) && !force && !mended;
        let paused = states::is(self, &BuildStatus::Paused) || mended;
        // A gate mends no other failure: that error stays, and with it the state.
        let pauses = !failed && self.in_progress_workstreams.is_empty();
        if again && !(pauses && states::is(self, &BuildStatus::InProgress)) {
            // Reported again: it passed once.
            self.enter_phase(phase);
            return Ok(());
        }
        if !failed && !paused {
            states::check(self, &BuildStatus::Paused, force)?;
        }
        if let Some(at) = pending {
            self.gates_pending.remove(at);
        }
        if !again {
            self.gates_passed.push(gate.to_owned());
        }
        self.enter_phase(phase);
        if pauses {
            self.enter(BuildStatus::Paused);
        }
        Ok(())
    }

    /// Whether the error is that of this gate, which its message names first.
    fn failed_at(&self, gate: &str) -> bool {
        let message = self.error.as_ref().and_then(|it| it.message.as_deref());
        message.is_some_and(|message| {
            let mut ends = message.match_indices(": ").map(|(at, _)| &message[..at]);
            ends.any(|named| super::gates::same_gate(named, gate))
        })
    }

    fn enter_phase(&mut self, phase: Option<u32>) {
        if let Some(phase) = phase {
            self.current_phase = Some(phase.into());
        }
    }

    fn no_such_gate(&self, gate: &str) -> Error {
        Error::refused(format!(
            "{gate} is no gate of this build; pending are {}",
            listed(&self.gates_pending),
            gate = quoted(gate)
        ))
    }

    /// Records that a gate was not passed, also at the review of a paused build: the build failed, what was in progress
    /// is pending again, and the gate is to be passed anew. The error names the gate.
    ///
    /// Where the error names no workstream, it is the one in the gate's own name, such as `type-check (WS2)`, else the
    /// only one in progress. A completed workstream stays completed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) unless the build is in progress or paused or it is
    /// forced; refused when the build has no such gate or no such workstream. The checkpoint is then unchanged.
    pub fn fail_gate(&mut self, gate: &str, mut error: BuildError, force: bool) -> Result<()> {
        let is_named = |other: &String| gate_name(other) == gate_name(gate);
        let is_same = |other: &String| super::gates::same_gate(other, gate);
        if !self.gates_pending.iter().any(is_named) && !self.gates_passed.iter().any(is_same) {
            return Err(self.no_such_gate(gate));
        }
        if !states::is(self, &BuildStatus::Paused) {
            states::check(self, &BuildStatus::Failed, force)?;
        }
        let of_gate = gate_workstream(gate).filter(|id| self.bucket(id).is_some());
        let only = match self.in_progress_workstreams.as_slice() {
            [only] => Some(only.as_str()),
            _ => None,
        };
        let workstream = error.workstream.as_deref().or(of_gate).or(only);
        if let Some(id) = workstream.filter(|id| self.bucket(id).is_none()) {
            return Err(Error::refused(format!(
                "{id} is no workstream of this build",
                id = quoted(id)
            )));
        }
        error.workstream = workstream.map(str::to_owned);
        let because = error.message.take().unwrap_or_default();
        error.message = Some(format!("{gate}: {because}"));
        if let Some(at) = self.gates_passed.iter().position(is_same) {
            let passed = self.gates_passed.remove(at);
            if !self.gates_pending.iter().any(is_named) {
                self.gates_pending.push(passed);
            }
        }
        self.put_back();
        self.enter(BuildStatus::Failed);
        self.error = Some(error);
        Ok(())
    }

    /// Adds a workstream that the plan did not have to the pending ones.
    ///
    /// # Errors
    ///
    /// Refused when the id says nothing, the build has it already, or it is complete.
    pub fn add_workstream(&mut self, id: &str) -> Result<()> {
        if id.trim().is_empty() {
            return Err(Error::refused("name the workstream"));
        }
        if states::is(self, &BuildStatus::Complete) {
            return Err(Error::refused("the build is complete; nothing joins it"));
        }
        if let Some(bucket) = self.bucket(id) {
            return Err(Error::refused(format!(
                "{id} is {} already",
                bucket.as_str(),
                id = quoted(id)
            )));
        }
        self.pending_workstreams.push(id.to_owned());
        Ok(())
    }

    /// Pauses the build: what was in progress is pending again, and an error is gone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the build cannot be paused next,
    /// unless forced.
    pub fn pause(&mut self, force: bool) -> Result<()> {
        states::check(self, &BuildStatus::Paused, force)?;
        self.put_back();
        self.enter(BuildStatus::Paused);
        Ok(())
    }

    /// What failed is fixed: the error is gone, and a build that had failed pauses until it goes on.
    ///
    /// Without an error nothing changes.
    pub fn unblock(&mut self) {
        let status = if states::is(self, &BuildStatus::Failed) {
            self.put_back();
            Some(BuildStatus::Paused)
        } else {
            self.status.clone()
        };
        self.take_error();
        self.status = status;
    }

    /// Goes on with a workstream: the one that is named, else the first pending one of the first phase of
    /// the plan that has any, else the first pending one. Tells which.
    ///
    /// # Errors
    ///
    /// As [`start_workstream`](BuildCheckpoint::start_workstream); refused when nothing is pending.
    pub fn resume(
        &mut self,
        workstream: Option<&str>,
        spec: Option<&ExecutionSpec>,
        force: bool,
    ) -> Result<String> {
        let pending = || {
            let pending = self.pending_workstreams.iter().map(String::as_str);
            self.failed_workstream().into_iter().chain(pending)
        };
        let planned = || {
            let mut planned = spec?.workstreams().map(|item| item.id.as_str());
            planned.find(|id| pending().any(|other| other == *id))
        };
        let first = || planned().or_else(|| pending().next());
        let Some(id) = workstream.or_else(first).map(str::to_owned) else {
            states::check(self, &BuildStatus::InProgress, force)?;
            return Err(Error::refused(
                "no workstream is pending; pass the gates that are left and complete the build",
            ));
        };
        self.start_workstream(&id, force)?;
        Ok(id)
    }

    /// Records that the build is complete.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transition`](crate::ErrorKind::Transition) when the build cannot be complete next,
    /// unless forced; refused, forced or not, while a workstream or gate is left and while a proof stands
    /// against it.
    pub fn complete(&mut self, force: bool) -> Result<()> {
        states::check(self, &BuildStatus::Complete, force)?;
        for (what, list) in [
            ("workstreams are in progress", &self.in_progress_workstreams),
            ("workstreams are pending", &self.pending_workstreams),
            ("gates are pending", &self.gates_pending),
        ] {
            if !list.is_empty() {
                return Err(Error::refused(format!(
                    "the build is not complete: {what}: {}; finish them first",
                    list.join(", ")
                )));
            }
        }
        if let Some(failed) = self.failed_workstream() {
            return Err(Error::refused(format!(
                "the build is not complete: {failed} failed and is in no list of workstreams"
            )));
        }
        let obstacle = self.fidelity_obstacle().or(self.presence_obstacle());
        if let Some(obstacle) = obstacle {
            return Err(Error::refused(obstacle.message));
        }
        self.enter(BuildStatus::Complete);
        Ok(())
    }

    /// Says which phase the build is in, where gates do not tell.
    ///
    /// # Errors
    ///
    /// Refused when it is no number from 0 up, and when the build is complete, unless forced.
    pub fn set_phase(&mut self, phase: f64, force: bool) -> Result<()> {
        if !(phase.is_finite() && phase >= 0.0) {
            return Err(Error::refused("a phase is a number from 0 up"));
        }
        let status = self.status.as_ref().and_then(BuildStatus::understood);
        if status == Some(BuildStatus::Complete) && !force {
            return Err(Error::refused("the build is complete; it enters no phase"));
        }
        self.current_phase = Some(phase);
        Ok(())
    }

    /// Records what came of gate A (`gate_a_fidelity`) or B (`gate_b_classification`,
    /// `gate_b_presence`).
    ///
    /// # Errors
    ///
    /// Refused when there is no such gate or the text is none of its values, and when a complete build
    /// would not be complete with it. The checkpoint is then unchanged.
    pub fn record_proof(&mut self, gate: &str, value: &str) -> Result<()> {
        let mut wanted = self.clone();
        let known = match gate {
            "gate_a_fidelity" => {
                wanted.gate_a_fidelity = Some(value.to_owned());
                FidelityGate::parse(value).is_some()
            }
            "gate_b_presence" => {
                wanted.gate_b_presence = Some(value.to_owned());
                PresenceGate::parse(value).is_some()
            }
            "gate_b_classification" => {
                let class = PresenceClass::from(value);
                wanted.gate_b_classification = Some(class.clone());
                class.is_known()
            }
            _ => {
                return Err(Error::refused(format!(
                    "{gate} is no proof of this protocol; it has gate_a_fidelity, \
                     gate_b_classification, gate_b_presence",
                    gate = quoted(gate)
                )));
            }
        };
        if !known {
            return Err(Error::refused(format!(
                "{value} is no value of {gate}; see the guide of this format",
                value = quoted(value)
            )));
        }
        wanted.refuse_waiver(self)?;
        self.take_if_still_complete(wanted)
    }

    /// Refuses a change that waives gate B while it is blocked by a stack that is down, in whatever way.
    pub(super) fn refuse_waiver(&self, before: &BuildCheckpoint) -> Result<()> {
        use PresenceGate::{NotApplicable, Waived};
        let is_waived = matches!(self.presence(), Some(Waived(_) | NotApplicable) | None);
        if before.is_stack_down() && is_waived && !self.is_untouched() {
            return Err(Error::refused(STACK_DOWN));
        }
        Ok(())
    }

    /// Waives gate B by an issue.
    ///
    /// # Errors
    ///
    /// Refused while gate B is blocked by a stack that is down: that is never waived; and when no issue is
    /// named.
    pub fn waive_render_proof(&mut self, reason: &str, issue: &str) -> Result<()> {
        if issue.trim().is_empty() {
            return Err(Error::refused("name the issue that waives the proof"));
        }
        if self.is_stack_down() {
            return Err(Error::refused(STACK_DOWN));
        }
        self.gate_b_presence = Some(format!("waived:{issue}"));
        self.render_proof_waiver = Some(RenderProofWaiver {
            reason: Some(reason.to_owned()),
            issue_id: Some(issue.to_owned()),
        });
        Ok(())
    }

    fn take_if_still_complete(&mut self, wanted: BuildCheckpoint) -> Result<()> {
        let complete = states::is(&wanted, &BuildStatus::Complete);
        let obstacle = wanted.fidelity_obstacle().or(wanted.presence_obstacle());
        if let Some(obstacle) = obstacle.filter(|_| complete) {
            return Err(Error::refused(obstacle.message));
        }
        *self = wanted;
        Ok(())
    }

    /// Sets the status; only a build that failed has an error.
    pub(super) fn enter(&mut self, status: BuildStatus) {
        if status != BuildStatus::Failed {
            self.take_error();
        }
        self.status = Some(status);
    }

    /// Clears the error; what failed is pending again, should no list have it.
    fn take_error(&mut self) {
        if let Some(failed) = self.failed_workstream().map(str::to_owned) {
            self.pending_workstreams.insert(0, failed);
        }
        self.error = None;
    }

    fn not_among(&self, id: &str, wanted: Bucket) -> Error {
        let found: Vec<&str> = self.buckets_of(id).map(Bucket::as_str).collect();
        let list = match wanted {
            Bucket::InProgress => &self.in_progress_workstreams,
            _ => &self.pending_workstreams,
        };
        let (wanted, list) = (wanted.as_str(), listed(list));
        let advice = if found.contains(&"completed") && found.len() > 1 {
            "; report it done to leave it completed alone, or take it out of that list by hand"
        } else if found.contains(&"dormant") {
            "; a start that is forced wakes it"
        } else {
            ""
        };
        let is = match found.as_slice() {
            [] => "is no workstream of this build".to_owned(),
            [only] => format!("is {only}, not {wanted}"),
            several => format!("is {} at once", several.join(" and ")),
        };
        Error::refused(format!(
            "{id} {is}; {wanted}: {list}{advice}",
            id = quoted(id)
        ))
    }
}

fn listed(list: &[String]) -> String {
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    }
}

pub(super) fn each_once(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// The operations that the format has.
pub(super) const OPERATIONS: &[&str] = &[
    "workstream add",
    "workstream start",
    "workstream done",
    "workstream fail",
    "workstream dormant",
    "gate pass",
    "gate fail",
    "waive",
    "review",
    "heartbeat",
    "fail",
    "unblock",
    "pause",
    "complete",
    "restart",
    "phase",
    "verify",
];

pub(super) fn apply(
    build: &mut BuildCheckpoint,
    operation: &Operation,
    context: &OperationContext<'_>,
) -> Result<()> {
    let force = context.force;
    match operation {
        Operation::WorkstreamStart { id } => build.start_workstream(id, force),
        Operation::WorkstreamDone { id, files } => build.complete_workstream(id, files, force),
        Operation::WorkstreamFail { id, because } => {
            let because = because.as_deref().unwrap_or("failed, no reason was given");
            build.fail(BuildError::new(id, because), force)
        }
        Operation::WorkstreamAdd { id } => build.add_workstream(id),
        Operation::WorkstreamDormant { id, because } => build.leave_out(id, because),
        Operation::GatePass { name, phase } => {
            let spec = context.rules.input::<ExecutionSpec>();
            let finished = || build.finished_phase(spec?);
            let phase = phase.or_else(finished);
            build.pass_gate(name, phase, force)
        }
        Operation::GateFail {
            name,
            because,
            workstream,
            file,
            line,
        } => {
            if because.trim().is_empty() {
                return Err(Error::refused("say why the gate failed"));
            }
            let error = BuildError {
                workstream: workstream.clone(),
                message: Some(because.clone()),
                file: file.clone(),
                line: line.map(f64::from),
                ..BuildError::default()
            };
            build.fail_gate(name, error, force)
        }
        Operation::Waive { issue, because } => build.waive_render_proof(because, issue),
        Operation::Review {
            verdict,
            p0_count,
            p1_count,
            attempt,
            findings,
            because,
        } => {
            let verdict = Verdict::from(verdict.as_str());
            if !verdict.is_known() {
                return Err(Error::refused(format!(
                    "{} is none of {}",
                    quoted(verdict.as_str()),
                    Verdict::KNOWN.join(", ")
                )));
            }
            build.record_review(AdversarialReview {
                p0_count: Some((*p0_count).into()),
                p1_count: Some((*p1_count).into()),
                attempt: Some((*attempt).into()),
                findings_path: findings.clone(),
                override_reason: because.clone(),
                ..AdversarialReview::new(verdict)
            })
        }
        Operation::Heartbeat => {
            build.stamp(context.now);
            Ok(())
        }
        Operation::Fail { text } => {
            if text.trim().is_empty() {
                return Err(Error::refused("say why the build failed"));
            }
            // Only one workstream in progress can be meant without being named.
            let workstream = match build.in_progress_workstreams.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            };
            let error = BuildError {
                workstream,
                message: Some(text.clone()),
                ..BuildError::default()
            };
            build.fail(error, force)
        }
        Operation::Unblock => {
            build.unblock();
            Ok(())
        }
        Operation::Pause => build.pause(force),
        Operation::Complete => {
            context.nothing_hidden("the build is not complete")?;
            build.complete(force)
        }
        Operation::Restart { because } => {
            let before = build.clone();
            build.restart(context.now, force)?;
            if *build != before {
                let told = build.cleanup_done.get_or_insert_default();
                told.push(format!("Begun anew: {because}"));
            }
            Ok(())
        }
        Operation::Phase { name } => {
            let Some(phase) = phase::parse(name) else {
                return Err(Error::refused(format!(
                    "{name} is no phase; a phase is a number from 0 up",
                    name = quoted(name)
                )));
            };
            build.set_phase(phase, force)
        }
        Operation::Verify { activity, status } => build.record_proof(activity, status),
        other => Err(Error::unsupported(other, OPERATIONS)),
    }
}
