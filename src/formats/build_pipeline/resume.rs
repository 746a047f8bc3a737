//! Decides whether and where a build continues, and renders its state for people.

use super::error::UNSAID;
use super::spec::{ExecutionSpec, SpecPhase};
use super::states::{self, plain};
use super::workstreams::Bucket;
use super::{BuildCheckpoint, BuildError, BuildStatus};
use crate::checkpoint::{Checkpoint, ResumeDecision, ResumePlan, ResumeReason, RuleContext};

impl BuildCheckpoint {
    /// The last phase of the plan that is finished together with all phases before it: none of their workstreams is
    /// left.
    ///
    /// `None` if there is none, or if the checkpoint is already at a later phase.
    pub(super) fn finished_phase(&self, spec: &ExecutionSpec) -> Option<u32> {
        let is_over =
            |id: &str| self.is_in(id, Bucket::Completed) || self.is_in(id, Bucket::Dormant);
        let phases = spec.phases.iter();
        let finished =
            phases.take_while(|phase| phase.workstreams.iter().all(|item| is_over(&item.id)));
        let last = finished.last()?.n;
        let current = self.current_phase.unwrap_or_default();
        u32::try_from(last)
            .ok()
            .filter(|last| f64::from(*last) > current)
    }

    /// The first phase of the plan that has an open workstream.
    fn open_phase<'s>(&self, spec: Option<&'s ExecutionSpec>) -> Option<&'s SpecPhase> {
        let is_open = |id: &str| self.open_workstreams().any(|open| open == id);
        let mut phases = spec?.phases.iter();
        phases.find(|phase| phase.workstreams.iter().any(|item| is_open(&item.id)))
    }

    /// The phase in which a build continues: the first of the plan with a workstream that is pending or in progress.
    /// Without the plan it is the phase after the current one if the current one is finished (the build pauses at its
    /// gate, or has not begun), else the current one.
    ///
    /// `None` if nothing is left, or if the phase is unknown.
    #[allow(clippy::cast_precision_loss, reason = "phases are few")]
    pub(super) fn resume_phase(&self, spec: Option<&ExecutionSpec>) -> Option<f64> {
        self.open_workstreams().next()?;
        if let Some(phase) = self.open_phase(spec) {
            return Some(phase.n as f64);
        }
        let current = self.current_phase?;
        let finished = matches!(
            self.status.as_ref().and_then(BuildStatus::understood),
            Some(BuildStatus::Paused | BuildStatus::Initialized)
        );
        Some(if finished || current == 0.0 {
            current + 1.0
        } else {
            current
        })
    }

    /// The workstream to begin with, in the phase in which the build continues: one in progress, else a pending one.
    pub(super) fn resume_workstream(&self, spec: Option<&ExecutionSpec>) -> Option<&str> {
        let phase = self.open_phase(spec);
        let in_phase =
            |id: &&str| phase.is_none_or(|phase| phase.workstreams.iter().any(|w| w.id == **id));
        self.open_workstreams().find(in_phase)
    }

    /// The name of the build in a sentence.
    fn name(&self) -> &str {
        self.id().unwrap_or("the build")
    }

    /// `PRD-009 already complete`.
    pub(super) fn already_complete_message(&self) -> String {
        match self.id() {
            Some(id) => format!("{id} already complete"),
            None => "The build is already complete".to_owned(),
        }
    }

    /// The state of a build, rendered before it continues:
    ///
    /// ```text
    /// Resuming PRD-009 from Phase 2
    ///
    /// Completed:
    ///   WS1: Database Layer ✅
    ///
    /// Pending:
    ///   WS2: Service Layer
    /// ```
    ///
    /// Titles come from the plan; without the plan only ids are listed. Workstreams in progress have their own list,
    /// and so have dormant ones, with the reason.
    fn display(&self, spec: Option<&ExecutionSpec>) -> String {
        let mut text = self.heading(spec);
        for (title, lines) in self.sections(spec) {
            text.push_str(&format!("\n\n{title}:"));
            for line in lines {
                text.push_str(&format!("\n  {line}"));
            }
        }
        text
    }

    /// `Resuming PRD-009 from Phase 2`.
    pub(super) fn heading(&self, spec: Option<&ExecutionSpec>) -> String {
        let phase = self.resume_phase(spec);
        let phase = phase.map(|phase| format!(" from Phase {}", plain(phase)));
        format!("Resuming {}{}", self.name(), phase.unwrap_or_default())
    }

    /// The non-empty lists of the display, each with its title.
    pub(super) fn sections(
        &self,
        spec: Option<&ExecutionSpec>,
    ) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let label = |id: &str| workstream_label(id, spec);
        let completed = self.completed_workstreams.iter();
        let begun = self.in_progress_workstreams.iter();
        let pending = self.pending_workstreams.iter().map(String::as_str);
        let pending = self.failed_workstream().into_iter().chain(pending);
        let dormant = self.dormant().map(|id| match self.dormant_reason(id) {
            Some(reason) => format!("{} ({reason})", label(id)),
            None => label(id),
        });
        let sections = [
            (
                "Completed",
                completed
                    .map(|id| format!("{} ✅", label(id)))
                    .collect::<Vec<_>>(),
            ),
            ("In progress", begun.map(|id| label(id)).collect()),
            ("Pending", pending.map(label).collect()),
            ("Dormant", dormant.collect()),
        ];
        sections.into_iter().filter(|(_, lines)| !lines.is_empty())
    }
}

/// `WS2: Service Layer`, or the id alone without the plan.
fn workstream_label(id: &str, spec: Option<&ExecutionSpec>) -> String {
    match spec.and_then(|spec| spec.title(id)) {
        Some(title) if !title.is_empty() => format!("{id}: {title}"),
        _ => id.to_owned(),
    }
}

/// The remarks after the display: the gate at which the build pauses, and what comes next.
pub(super) fn remarks(build: &BuildCheckpoint, spec: Option<&ExecutionSpec>) -> Vec<String> {
    let mut remarks = Vec::new();
    if build.resume_workstream(spec).is_none() {
        remarks.push(if build.gates_pending.is_empty() {
            "No workstream and no gate is left: complete the build.".to_owned()
        } else {
            format!(
                "No workstream is left; pass the pending gates and complete the build: {}",
                build.gates_pending.join(", ")
            )
        });
    }
    if states::is(build, &BuildStatus::Paused) {
        let gate = build.gates_passed.last();
        let gate = gate.map(|gate| format!("Last gate passed: {gate}"));
        remarks.push(gate.unwrap_or_else(|| "No gate was passed yet.".to_owned()));
        let next = build.resume_phase(spec).map(plain);
        remarks.extend(next.map(|next| format!("Continue from Phase {next}.")));
    }
    remarks
}

pub(super) fn plan(build: &BuildCheckpoint, context: &RuleContext<'_>) -> ResumePlan {
    let spec = context.input::<ExecutionSpec>();
    // The plan starts empty, since this format asks its own questions.
    let mut plan = ResumePlan::of(&crate::checkpoint::Handoff::default());
    plan.decision = ResumeDecision::Continue;
    plan.files_to_review = build.files().into_iter().map(str::to_owned).collect();
    plan.start_at = build.resume_workstream(spec).map(str::to_owned);
    plan.message = build.display(spec);
    let remarks = remarks(build, spec).join("\n");
    if !remarks.is_empty() {
        plan.message.push_str(&format!("\n\n{remarks}"));
    }
    let phase = build.resume_phase(spec);
    plan.phase = phase.or(build.current_phase).map(plain);
    if let (Some(_), Some(first), Some(current)) = (spec, phase, build.current_phase)
        && current > first
    {
        let (current, first) = (plain(current), plain(first));
        plan.warn(format!(
            "The checkpoint is at phase {current}, while work of phase {first} is left: that comes first."
        ));
        plan.because(ResumeReason::Mismatch);
    }
    let status = build.status.as_ref();
    match status.and_then(BuildStatus::understood) {
        Some(BuildStatus::Complete) => {
            plan.start_at = None;
            plan.refuse(build.already_complete_message());
            plan.because(ResumeReason::Complete);
        }
        Some(BuildStatus::Failed) => {
            let error = build.error.as_ref();
            let what = error.map_or_else(|| UNSAID.to_owned(), BuildError::text);
            plan.ask(format!("The build failed: {what}\nIs it fixed?"));
            plan.because(ResumeReason::Failed);
        }
        Some(BuildStatus::InProgress) => {
            let begun = &build.in_progress_workstreams;
            let begun = if begun.is_empty() {
                String::new()
            } else {
                format!(": {}", begun.join(", "))
            };
            plan.warn(format!(
                "The build is in progress{begun}. Another agent may still be at work on it."
            ));
            plan.ask("Restart the build, or continue it?");
            plan.because(ResumeReason::InProgress);
        }
        Some(BuildStatus::Initialized | BuildStatus::Paused) => {}
        Some(BuildStatus::Other(_)) | None => {
            let status = status.map_or("missing", BuildStatus::as_str);
            plan.ask(format!(
                "The status of the build ({status}) is not one of the protocol's. What state is it in?"
            ));
            plan.because(ResumeReason::UnknownStatus);
        }
    }
    plan
}
