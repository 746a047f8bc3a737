//! The operations that agents and supervisors report of a build.

use super::artifacts;
use super::gates::{gate_name, gate_workstream, is_fidelity, is_presence, same_gate};
use super::spec::ExecutionSpec;
use super::states;
use super::workstreams::Bucket;
use super::{
    AdversarialReview, BuildCheckpoint, BuildError, BuildStatus, MOST_ATTEMPTS, PresenceClass,
    RenderProofWaiver, Verdict,
};
use crate::checkpoint::{Checkpoint, Error, OpenEnum, Result, operations};
use crate::quoted;

const STACK_DOWN: &str = "a gate that is blocked because the stack is down cannot be waived; start the stack and \
                          check the gate again";

operations! {
    /// Applies one operation; a refused one leaves the checkpoint unchanged.
    pub(super) fn apply(build: &mut BuildCheckpoint, context) takes OPERATIONS {
        WorkstreamAdd { id } => build.add_workstream(id)?,
        WorkstreamStart { id } => build.start_workstream(id, context.force)?,
        WorkstreamDone { id, files } => build.complete_workstream(id, files, context.force)?,
        WorkstreamFail { id, because } => {
            let because = because.as_deref().unwrap_or("failed, no reason was given");
            build.fail(Some(id.clone()), because, context.force)?;
        },
        WorkstreamDormant { id, because } => build.leave_out(id, because)?,
        GatePass { name, phase } => {
            let spec = context.rules.input::<ExecutionSpec>();
            let phase = phase.or_else(|| build.finished_phase(spec?));
            build.pass_gate(name, phase, context.force)?;
        },
        GateFail { name, because, workstream, file, line } => {
            let error = BuildError {
                workstream: workstream.clone(),
                message: Some(format!("{name}: {because}")),
                file: file.clone(),
                line: line.map(f64::from),
                ..BuildError::default()
            };
            build.fail_gate(name, error, context.force)?;
        },
        Waive { issue, because } => build.waive_render_proof(because, issue)?,
        Review { verdict, p0_count, p1_count, attempt, findings, because } => {
            build.record_review(AdversarialReview {
                verdict: Some(Verdict::from(verdict.as_str())),
                p0_count: Some((*p0_count).into()),
                p1_count: Some((*p1_count).into()),
                attempt: Some((*attempt).into()),
                findings_path: findings.clone(),
                override_reason: because.clone(),
            })?;
        },
        Heartbeat => build.stamp(context.now),
        Fail { text } => {
            // An unnamed workstream can be identified only when exactly one is in progress.
            let workstream = build.only_begun().map(str::to_owned);
            build.fail(workstream, text, context.force)?;
        },
        Unblock => build.unblock(),
        Pause { .. } => build.pause(context.force)?,
        Complete => {
            context.nothing_hidden("the build is not complete")?;
            build.complete(context.force)?;
        },
        Restart { because } => build.restart(because, context)?,
        Phase { name } => build.set_phase(name, context.force)?,
        Verify { activity, status } => build.record_proof(activity, status)?,
    }
}

impl BuildCheckpoint {
    /// Adds a workstream that was not in the plan to the pending ones.
    fn add_workstream(&mut self, id: &str) -> Result<()> {
        if states::is(self, &BuildStatus::Complete) {
            return Err(Error::refused(
                "the build is complete, so nothing can be added to it",
            ));
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

    /// Begins a pending workstream. The build is then in progress, and an error is cleared, since it was fixed.
    ///
    /// A workstream that is already in progress stays so, and is removed from the pending ones. When forced, a dormant
    /// workstream is woken.
    fn start_workstream(&mut self, id: &str, force: bool) -> Result<()> {
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
    /// The build stays in progress even when no workstream is: a gate, a pause, the next workstream or completion
    /// follows. If the gate of this workstream was passed before, the build pauses. For a workstream that is already
    /// done, only new files are recorded.
    fn complete_workstream(&mut self, id: &str, files: &[String], force: bool) -> Result<()> {
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
        // A workstream that was listed in another bucket besides is removed there.
        self.in_progress_workstreams.retain(|other| other != id);
        self.pending_workstreams.retain(|other| other != id);
        if bucket != Some(Bucket::Completed) {
            self.completed_workstreams.push(id.to_owned());
            // Its gate may have been passed while it was in progress: then the build now pauses for review.
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

    /// Records that the build failed. Workstreams in progress become pending again.
    fn fail(&mut self, workstream: Option<String>, message: &str, force: bool) -> Result<()> {
        states::check(self, &BuildStatus::Failed, force)?;
        if let Some(id) = &workstream {
            let bucket = self.bucket(id);
            if !matches!(bucket, Some(Bucket::InProgress | Bucket::Pending)) {
                return Err(self.not_among(id, Bucket::InProgress));
            }
        }
        self.enter_failed(BuildError {
            workstream,
            message: Some(message.to_owned()),
            ..BuildError::default()
        });
        Ok(())
    }

    fn enter_failed(&mut self, error: BuildError) {
        self.put_back();
        self.enter(BuildStatus::Failed);
        self.error = Some(error);
    }

    /// The workstream in progress, if there is exactly one.
    fn only_begun(&self) -> Option<&str> {
        match self.in_progress_workstreams.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Makes a pending workstream dormant, and records why.
    fn leave_out(&mut self, id: &str, reason: &str) -> Result<()> {
        if self.bucket(id) != Some(Bucket::Pending) {
            return Err(self.not_among(id, Bucket::Pending));
        }
        self.pending_workstreams.retain(|pending| pending != id);
        // Uses the name of the list that the file already has.
        let list = match &mut self.skipped_workstreams {
            Some(older) if self.dormant_workstreams.is_none() => older,
            _ => self.dormant_workstreams.get_or_insert_default(),
        };
        list.push(id.to_owned());
        self.artifacts
            .insert(id.to_owned(), artifacts::dormant(reason));
        Ok(())
    }

    /// Records that a gate was passed, such as `type-check (WS2)`, and removes the pending gate of that name.
    ///
    /// `phase` becomes the current phase; without it the phase stays, since a gate does not state which phase it ends.
    /// When no workstream is in progress, the build pauses for a review. A gate that was already passed changes nothing
    /// else. If this gate failed the build, the error is cleared and the build pauses.
    fn pass_gate(&mut self, gate: &str, phase: Option<u32>, force: bool) -> Result<()> {
        let pending = self.pending_gate(gate)?;
        let is_passed = |passed: &String| same_gate(passed, gate);
        let again = pending.is_none() && self.gates_passed.iter().any(is_passed);
        if pending.is_none() && !again {
            // `type-check (WS4)` after `type-check (WS2)`: one pending gate is passed once for each workstream.
            let name = gate_name(gate);
            let mut passed = self.gates_passed.iter();
            if !passed.any(|passed| gate_name(passed) == name) {
                return Err(self.no_such_gate(gate));
            }
        }
        let mended = states::is(self, &BuildStatus::Failed) && self.failed_at(gate);
        let failed = states::is(self, &BuildStatus::Failed) && !force && !mended;
        let paused = states::is(self, &BuildStatus::Paused) || mended;
        // Passing a gate fixes no other failure: that error stays, and the state with it.
        let pauses = !failed && self.in_progress_workstreams.is_empty();
        if again && !(pauses && states::is(self, &BuildStatus::InProgress)) {
            // A repeated report: the gate is recorded once.
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

    /// Whether the error came from this gate, whose name begins the message.
    fn failed_at(&self, gate: &str) -> bool {
        let message = self.error.as_ref().and_then(|it| it.message.as_deref());
        message.is_some_and(|message| {
            let mut ends = message.match_indices(": ").map(|(at, _)| &message[..at]);
            ends.any(|named| same_gate(named, gate))
        })
    }

    fn enter_phase(&mut self, phase: Option<u32>) {
        if let Some(phase) = phase {
            self.current_phase = Some(phase.into());
        }
    }

    fn no_such_gate(&self, gate: &str) -> Error {
        Error::refused(format!(
            "{gate} is not a gate of this build; the pending gates are {}",
            listed(&self.gates_pending),
            gate = quoted(gate)
        ))
    }

    /// Records that a gate was not passed, also at the review of a paused build. The build has then failed, workstreams
    /// in progress become pending again, and the gate must be passed again.
    ///
    /// If the error names no workstream, it is the one in the gate's own name, such as `type-check (WS2)`, else the
    /// only one in progress. A completed workstream stays completed.
    fn fail_gate(&mut self, gate: &str, mut error: BuildError, force: bool) -> Result<()> {
        let is_named = |other: &String| gate_name(other) == gate_name(gate);
        let is_same = |other: &String| same_gate(other, gate);
        if !self.gates_pending.iter().any(is_named) && !self.gates_passed.iter().any(is_same) {
            return Err(self.no_such_gate(gate));
        }
        if !states::is(self, &BuildStatus::Paused) {
            states::check(self, &BuildStatus::Failed, force)?;
        }
        let of_gate = gate_workstream(gate).filter(|id| self.bucket(id).is_some());
        let named = error.workstream.as_deref().or(of_gate);
        let workstream = named.or_else(|| self.only_begun());
        if let Some(id) = workstream.filter(|id| self.bucket(id).is_none()) {
            return Err(Error::refused(format!(
                "{id} is not a workstream of this build",
                id = quoted(id)
            )));
        }
        error.workstream = workstream.map(str::to_owned);
        if let Some(at) = self.gates_passed.iter().position(is_same) {
            let passed = self.gates_passed.remove(at);
            if !self.gates_pending.iter().any(is_named) {
                self.gates_pending.push(passed);
            }
        }
        self.enter_failed(error);
        Ok(())
    }

    /// Pauses the build: workstreams in progress become pending again, and an error is cleared.
    fn pause(&mut self, force: bool) -> Result<()> {
        states::check(self, &BuildStatus::Paused, force)?;
        self.put_back();
        self.enter(BuildStatus::Paused);
        Ok(())
    }

    /// Clears the error, since the failure is fixed. A failed build then pauses until it continues.
    ///
    /// Without an error nothing changes.
    fn unblock(&mut self) {
        let status = if states::is(self, &BuildStatus::Failed) {
            self.put_back();
            Some(BuildStatus::Paused)
        } else {
            self.status.clone()
        };
        self.take_error();
        self.status = status;
    }

    /// Records that the build is complete. Even by force this needs every workstream and gate done and no proof against
    /// it.
    fn complete(&mut self, force: bool) -> Result<()> {
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
        self.check_proofs()?;
        self.enter(BuildStatus::Complete);
        Ok(())
    }

    /// Sets the phase of the build, for when gates do not state it.
    fn set_phase(&mut self, name: &str, force: bool) -> Result<()> {
        let Some(phase) = states::phase(name) else {
            return Err(Error::refused(format!(
                "{name} is not a phase; a phase is a whole number from 0",
                name = quoted(name)
            )));
        };
        if states::is(self, &BuildStatus::Complete) && !force {
            return Err(Error::refused(
                "the build is complete, so it cannot enter a phase",
            ));
        }
        self.current_phase = Some(phase);
        Ok(())
    }

    /// Records the result of the review, in place of an earlier attempt.
    fn record_review(&mut self, review: AdversarialReview) -> Result<()> {
        if let Some(verdict) = review
            .verdict
            .as_ref()
            .filter(|verdict| !verdict.is_known())
        {
            return Err(Error::refused(format!(
                "{} is none of {}",
                quoted(verdict.as_str()),
                Verdict::KNOWN.join(", ")
            )));
        }
        let attempt = review.attempt.unwrap_or_default();
        if !(1.0..=MOST_ATTEMPTS).contains(&attempt) {
            return Err(Error::refused("a plan is reviewed at most twice"));
        }
        if review.verdict == Some(Verdict::Overridden) && review.override_reason.is_none() {
            return Err(Error::refused(
                "give the reason why the verdict is overridden",
            ));
        }
        self.adversarial_review = Some(review);
        Ok(())
    }

    /// Records the result of gate A (`gate_a_fidelity`) or B (`gate_b_classification`, `gate_b_presence`). Refused when
    /// a complete build would no longer be complete with it.
    fn record_proof(&mut self, gate: &str, value: &str) -> Result<()> {
        let mut wanted = self.clone();
        let known = match gate {
            "gate_a_fidelity" => {
                wanted.gate_a_fidelity = Some(value.to_owned());
                is_fidelity(value)
            }
            "gate_b_presence" => {
                wanted.gate_b_presence = Some(value.to_owned());
                is_presence(value)
            }
            "gate_b_classification" => {
                let class = PresenceClass::from(value);
                wanted.gate_b_classification = Some(class.clone());
                class.is_known()
            }
            _ => {
                return Err(Error::refused(format!(
                    "{gate} is not a proof of this protocol; its proofs are gate_a_fidelity, gate_b_classification \
                     and gate_b_presence",
                    gate = quoted(gate)
                )));
            }
        };
        if !known {
            return Err(Error::refused(format!(
                "{value} is not a value of {gate}; see the guide of this format",
                value = quoted(value)
            )));
        }
        wanted.refuse_waiver(self)?;
        if states::is(&wanted, &BuildStatus::Complete) {
            wanted.check_proofs()?;
        }
        *self = wanted;
        Ok(())
    }

    /// Refuses when gate A or B keeps the build from being complete.
    fn check_proofs(&self) -> Result<()> {
        let obstacle = self.fidelity_obstacle().or(self.presence_obstacle());
        obstacle.map_or(Ok(()), |obstacle| Err(Error::refused(obstacle.message)))
    }

    /// Refuses any change that waives gate B while it is blocked because the stack is down.
    pub(super) fn refuse_waiver(&self, before: &BuildCheckpoint) -> Result<()> {
        let presence = self.gate_b_presence.as_deref();
        let is_judged = presence.is_some_and(|text| {
            is_presence(text) && text != "not_applicable" && !text.starts_with("waived:")
        });
        if before.is_stack_down() && !is_judged && !self.is_untouched() {
            return Err(Error::refused(STACK_DOWN));
        }
        Ok(())
    }

    /// Waives gate B by an issue. Refused while gate B is blocked because the stack is down.
    fn waive_render_proof(&mut self, reason: &str, issue: &str) -> Result<()> {
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

    /// Sets the status; only a build that failed has an error.
    pub(super) fn enter(&mut self, status: BuildStatus) {
        if status != BuildStatus::Failed {
            self.take_error();
        }
        self.status = Some(status);
    }

    /// Clears the error. A failed workstream that is in no list becomes pending again.
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
            "; report it done to keep it only in the completed list, or remove it from one list by hand"
        } else if found.contains(&"dormant") {
            "; force the start to make it active again"
        } else {
            ""
        };
        let is = match found.as_slice() {
            [] => "is not a workstream of this build".to_owned(),
            [only] => format!("is {only}, not {wanted}"),
            several => format!("is {} at the same time", several.join(" and ")),
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
