//! Inspects one checkpoint: makes its row and finds contradictions in it.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::beside::Beside;
use super::compare::{compared_files, traces};
use super::finding::MOST_LISTED;
use super::kept::{Again, Elapsed, InRepository, Kept, Version};
use super::scan::Scan;
use super::{ClaimHolder, Finding, Place, PlanSummary, Row, RowState, bounded};
use crate::checkpoint::{
    Activity, Claim, FileRole, Inputs, Key, Layout, Pulse, ResumeDecision, ResumeReason, Revision,
    RuleContext, Timestamp,
};
use crate::json::{Code, Document, Violation};
use crate::ledger::{self, Waiting};
use crate::liveness::Liveness;
use crate::registry::{Format, Inspected};
use crate::resume::heed_waiting;
use crate::staleness::Reason;
use crate::store::{CheckpointStore, TaskContext};

/// A checkpoint that was found and is not judged yet.
pub(super) struct Found<'d> {
    pub(super) place: Place,
    pub(super) document: &'d Document,
    pub(super) format: Format,
    /// The key that follows from the place, if any.
    pub(super) key: Option<Key>,
    /// The id in the document.
    pub(super) id: Option<Key>,
    /// The file name that fits the id, and the actual file name.
    pub(super) names: Option<(String, String)>,
    /// What the host file or the store states about the task.
    pub(super) context: TaskContext,
    /// The position of its folder in a repository.
    pub(super) checkout: Option<Arc<InRepository>>,
    /// The version that was read; `None` if a later scan has to read it again.
    pub(super) version: Option<Version>,
    /// The last claim on it, if already known.
    pub(super) claim: Option<Option<Claim>>,
    /// Whether the store may have a ledger of it.
    pub(super) has_ledger: bool,
    /// The store with its claims and history, and the key there.
    pub(super) store: Option<(&'d dyn CheckpointStore, Key)>,
}

impl<'d> Found<'d> {
    /// A checkpoint alone in a file.
    pub(super) fn in_file(
        path: &Path,
        document: &'d Document,
        format: Format,
        layout: Layout,
        role: Option<FileRole>,
    ) -> Found<'d> {
        let id = layout.key_in.and_then(|key_in| key_in(document));
        let name = path.file_name().and_then(|name| name.to_str());
        let usual = id.as_ref().and_then(|id| (layout.file_name)(id).ok());
        let key = match role {
            Some(FileRole::Current(key)) => key,
            _ => None,
        };
        Found {
            place: Place::file(path),
            document,
            format,
            key,
            names: usual.zip(name.map(str::to_owned)),
            id,
            context: TaskContext::default(),
            checkout: None,
            version: None,
            claim: None,
            has_ledger: false,
            store: None,
        }
    }
}

impl Scan<'_> {
    /// Judges a checkpoint and adds its row.
    pub(super) fn checkpoint(&mut self, mut found: Found<'_>, inputs: &Inputs) {
        let rule_context = RuleContext::none().with_now(self.now);
        let mut rule_context = rule_context.with_inputs(inputs);
        // The id is compared with the file name below; without a file name the key is compared here.
        rule_context.key = found.key.as_ref().filter(|_| found.names.is_none());
        let mut inspected = match found.format.inspect(found.document, &rule_context) {
            Ok(inspected) => inspected,
            Err(error) => {
                let reason = bounded::text(&error.to_string());
                let mut row = Row::new(found.place, RowState::Unreadable { reason });
                row.set_format(Some(&found.format));
                self.push(row);
                return;
            }
        };
        let findings = self.findings.len();
        let (waiting, waited_until) = self.waiting(&found, &mut inspected);
        let mut pulse = pulse(&inspected.pulse, &found.context);
        // After a wait, silence counts from its end.
        let progress = pulse.progress.as_ref().and_then(Timestamp::time);
        if let Some(end) = waited_until.filter(|end| progress.is_some_and(|at| at < *end)) {
            let end = Timestamp::like(pulse.progress.as_ref(), end);
            pulse = pulse.with_progress(Some(end));
        }
        if waiting.is_some() && pulse.activity == Activity::Working {
            pulse = pulse.with_activity(Activity::Waiting);
        }
        let thresholds = self.options.thresholds_of(&found.format);
        let liveness = Liveness::judge(&pulse, &thresholds, self.now);
        let mut row = self.row(&found, &inspected, liveness);
        row.waiting = waiting;
        let rest = row.progress.rest;
        let is_as_saved = self.look_beside(&mut row, &mut found, &inspected);
        self.check(&row, &found, &inspected);
        self.check_stage(&row, &inspected, &found.format);
        // A finding needs values that the row does not keep, and the inputs of the rules may change, so such a row is
        // not reused.
        let depends_on_itself = is_as_saved && findings == self.findings.len() && inputs.is_empty();
        let again = found.version.take().filter(|_| depends_on_itself);
        let again = again.and_then(|version| self.again_by(&row, &inspected, pulse, rest, version));
        let key = found.id.as_ref().or(found.key.as_ref());
        row.kept = Some(Arc::new(Kept {
            project: self.project,
            is_agent: found.id.is_some()
                && inspected.handoff.agent.as_deref() == found.id.as_ref().map(Key::as_str),
            traces: key.map_or_else(Box::default, |key| {
                traces(&found.format, key, &inspected.handoff, &row.revision)
            }),
            files: compared_files(self.project, &inspected.exclusive_files),
            checkout: found.checkout,
            id: found.id,
            again,
        }));
        self.complete(row);
    }

    /// What the task waits for according to its ledger; the plan then becomes to wait.
    fn waiting(
        &mut self,
        found: &Found<'_>,
        inspected: &mut Inspected,
    ) -> (Option<Waiting>, Option<DateTime<Utc>>) {
        let Some((store, key)) = found.store.as_ref().filter(|_| found.has_ledger) else {
            return (None, None);
        };
        match ledger::state_of(*store, key, found.context.task.as_deref()) {
            Ok(state) => {
                heed_waiting(&mut inspected.plan, &state, &inspected.handoff, self.now);
                let handoff = &inspected.handoff;
                let waiting = state.waiting(handoff, self.now);
                (waiting, state.waited_until(handoff, self.now))
            }
            Err(error) => {
                self.findings.push(Finding::LedgerUnreadable {
                    place: found.place.to_string(),
                    reason: bounded::text(&error.to_string()),
                });
                (None, None)
            }
        }
    }

    /// What a later scan needs to judge the row without its document; `None` if more than that depends on the present
    /// time.
    fn again_by(
        &self,
        row: &Row,
        inspected: &Inspected,
        pulse: Pulse,
        rest: Option<TimeDelta>,
        version: Version,
    ) -> Option<Again> {
        // A cut list of violations may lack the one about a time in the future.
        let will_be_past =
            |it: &Violation| [Code::FUTURE_TIMESTAMP, Code::TOO_MANY].contains(&it.code);
        // For a file, the dropped log beside it may be removed meanwhile.
        let is_of_store = matches!(version, Version::Store(..));
        if inspected.violations.iter().any(will_be_past)
            || (inspected.handoff.done_elsewhere > 0 && !is_of_store)
        {
            return None;
        }
        let elapsed = row.progress.elapsed;
        let notice = row.liveness().and_then(Liveness::notice);
        Some(Again {
            version,
            elapsed: match (inspected.goes_on?, elapsed) {
                (true, Some(elapsed)) => Elapsed::Since(self.now - elapsed),
                _ => Elapsed::Ended(elapsed),
            },
            rest,
            silent: notice.filter(|_| row.is_resumable() && row.message.is_none()),
            pulse,
        })
    }

    /// Adds a row, after the values and findings that depend on its verdict.
    pub(super) fn complete(&mut self, mut row: Row) {
        if !may_be_estimated(&row) {
            row.progress.rest = None;
        }
        self.check_claim(&row);
        self.push(row);
    }

    fn row(&self, found: &Found<'_>, inspected: &Inspected, liveness: Liveness) -> Row {
        let handoff = &inspected.handoff;
        // A message asks the agent to continue, so there is none if the task cannot be resumed.
        let is_resumable = inspected.plan.decision < ResumeDecision::Wait;
        let notice = liveness.notice().filter(|_| is_resumable);
        let message = notice.and_then(|notice| inspected.notice(notice, self.now));
        let task = handoff.task.as_deref().or(found.context.task.as_deref());
        let task = task.or(found.key.as_ref().map(Key::as_str));
        let previous = &handoff.previous_agents;
        let newest = previous.len().saturating_sub(MOST_PREVIOUS);
        let previous = previous[newest..].iter();
        let mut row = Row {
            agent: bounded::said(handoff.agent.as_deref()),
            previous_agents: previous.map(|agent| bounded::text(agent)).collect(),
            task: bounded::said(task),
            phase: bounded::said(handoff.phase.as_deref()),
            status: Some(bounded::text(handoff.status.as_str())),
            progress: inspected.progress,
            done_elsewhere: handoff.done_elsewhere,
            elsewhere: bounded::said(handoff.elsewhere.as_deref()),
            updated_at: inspected.updated_at.as_ref().map(bounded::stamp),
            next: Some(PlanSummary::of(&inspected.plan)),
            violations: inspected.violations.len(),
            revision: Some(Revision::of(found.document.text().as_bytes())),
            message: message.as_deref().map(bounded::message),
            ..Row::new(found.place.clone(), RowState::Checkpoint { liveness })
        };
        row.set_format(Some(&found.format));
        row
    }

    /// Adds what the store keeps beside the checkpoint, and whether its slot is for another task by now. Returns
    /// whether the checkpoint is as its store saved it.
    fn look_beside(&mut self, row: &mut Row, found: &mut Found<'_>, inspected: &Inspected) -> bool {
        let claim = found.claim.take();
        let place = || found.place.to_string();
        let beside = match (&found.store, &row.revision) {
            (Some((store, key)), Some(revision)) => Beside::of(
                *store,
                key,
                &found.format,
                revision,
                inspected.updated_at.as_ref(),
                &inspected.handoff,
                claim,
            ),
            _ => Beside::without_store(&inspected.handoff),
        };
        row.elsewhere_missing = beside.elsewhere_missing;
        match beside.claim {
            Ok(claim) => row.owner = claim.map(|claim| ClaimHolder::of(&claim, self.now)),
            Err(reason) => self.findings.push(Finding::ClaimsUnreadable {
                place: place(),
                reason,
            }),
        }
        let context = &found.context;
        if let (Some(task), Some(place_is_for)) = (&context.task, &context.place_is_for) {
            row.task = bounded::said(Some(task));
            self.findings.push(Finding::OfAnotherTask {
                place: place(),
                task: bounded::text(task),
                place_is_for: bounded::text(place_is_for),
            });
        }
        if let Some(Reason::RolledBack {
            later,
            saved,
            last_is_kept,
        }) = beside.rolled_back
        {
            self.findings.push(Finding::RolledBack {
                place: place(),
                later,
                saved,
                last_is_kept,
            });
        }
        beside.is_as_saved
    }

    /// Finds contradictions in the document, and between it and its name.
    fn check(&mut self, row: &Row, found: &Found<'_>, inspected: &Inspected) {
        let place = || row.place.to_string();
        if let (Some((usual, name)), Some(id)) = (&found.names, &found.id)
            && usual != name
        {
            let name = bounded::text(name);
            self.findings.push(Finding::KeyMismatch {
                place: place(),
                id: bounded::text(id.as_str()),
                expected: format!("its file should be {usual}, not {name}"),
            });
        }
        let mut violations = inspected.violations.iter();
        if let Some(violation) = violations.find(|it| it.code == Code::KEY_MISMATCH) {
            self.findings.push(Finding::KeyMismatch {
                place: place(),
                id: row.task.clone().unwrap_or_default(),
                expected: bounded::text(&violation.message),
            });
        }
        let handoff = &inspected.handoff;
        if !handoff.unreadable.is_empty() {
            let items: Vec<String> = handoff.unreadable.iter().map(ToString::to_string).collect();
            self.findings.push(Finding::UnreadableItems {
                place: place(),
                items: bounded::texts(&items),
            });
        }
        for reason in &inspected.plan.reasons {
            if let ResumeReason::DoneAndPlanned { steps } = reason {
                self.findings.push(Finding::DoneAndPlanned {
                    place: place(),
                    steps: bounded::texts(steps),
                });
            }
        }
    }

    /// Finds a stage that differs from the supervisor's, and work left in a finished task.
    fn check_stage(&mut self, row: &Row, inspected: &Inspected, format: &Format) {
        let handoff = &inspected.handoff;
        if let (Some(state), Some(stage)) = (&inspected.supervised_in, handoff.phase.as_deref()) {
            self.findings.push(Finding::StageMismatch {
                place: row.place.to_string(),
                stage: bounded::text(stage),
                state: bounded::text(state),
            });
        }
        if !format.is_task() || row.result() != "finished" {
            return;
        }
        let left = handoff.open_names();
        let percent = row.progress.percent;
        if !left.is_empty() || percent.is_some_and(|percent| percent < 100) {
            let first = left.iter().take(MOST_LISTED);
            self.findings.push(Finding::FinishedWithWorkLeft {
                place: row.place.to_string(),
                percent,
                steps: left.len(),
                left: first.map(|step| bounded::text(step)).collect(),
            });
        }
    }

    /// Finds a claim on a finished task, and an unfinished task whose claim expired.
    fn check_claim(&mut self, row: &Row) {
        let owner = row.owner.as_ref().filter(|owner| !owner.released);
        let Some(owner) = owner else { return };
        let (place, name) = (row.place.to_string(), owner.name.clone());
        match (row.result() == "finished", owner.stands) {
            (true, true) => self.findings.push(Finding::FinishedButClaimed {
                place,
                owner: name,
                until: owner.until,
            }),
            (false, false) if row.waiting.is_none() => self.findings.push(Finding::ClaimRanOut {
                place,
                owner: name,
                at: owner.until,
            }),
            _ => {}
        }
    }
}

/// The most previous agents that a row names: the newest.
const MOST_PREVIOUS: usize = 4;

/// The longest estimate. Agents work for hours, so an estimate of months comes from an abandoned task.
const LONGEST_ESTIMATE: TimeDelta = TimeDelta::days(30);

/// Whether the remaining time can be estimated: only while work continues.
fn may_be_estimated(row: &Row) -> bool {
    let goes_on = matches!(row.result(), "active" | "late" | "waiting");
    let rest = row.progress.rest;
    goes_on && rest.is_none_or(|rest| rest <= LONGEST_ESTIMATE)
}

/// The signals of a checkpoint together with the heartbeat of its host file.
fn pulse(own: &Pulse, context: &TaskContext) -> Pulse {
    let mut pulse = own.clone().with_heartbeat(context.heartbeat.clone());
    let bound = |stamp: &mut Option<Timestamp>| *stamp = stamp.as_ref().map(bounded::stamp);
    bound(&mut pulse.heartbeat);
    bound(&mut pulse.progress);
    if let Activity::Unclear(text) = &pulse.activity {
        pulse.activity = Activity::Unclear(bounded::text(text));
    }
    pulse
}
