//! `build-pipeline`: how far the build of one document (a PRD) is, by workstreams, gates and phases.

mod artifacts;
mod begin;
mod error;
mod gates;
mod handoff;
mod layout;
mod operations;
mod paths;
mod resume;
mod rules;
mod spec;
mod states;
#[cfg(feature = "proptest")]
mod strategies;
mod workstreams;

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use layout::FOLDER;
pub use spec::{ExecutionSpec, SpecPhase, SpecWorkstream};

use super::fields::{self, members, null_is_default};
#[cfg(feature = "schema")]
use crate::checkpoint::Shape;
use crate::checkpoint::{
    Activity, Checkpoint, CheckpointFile, Dropped, Error, Evidence, Given, Handoff, Input, Inputs,
    Inspection, ItemState, Layout, Limits, Operation, OperationContext, Progress, Pulse, Result,
    ResumePlan, RuleContext, SchemaVersion, Start, Status, Timestamp, Truncation, open_enum,
};
use crate::json::{Code, Document, Identity};

/// The document that defines the members.
#[cfg(feature = "schema")]
const SOURCE: &str = "the build-pipeline protocol, Full Checkpoint Schema";

open_enum! {
    /// The state of a build.
    BuildStatus {
        /// Planned and reviewed; no workstream has begun.
        Initialized = "initialized",
        /// Workstreams are being worked on.
        InProgress = "in_progress",
        /// Somebody reviews at a gate.
        Paused = "paused",
        /// A workstream or a gate failed, and waits for a fix by hand.
        Failed = "failed",
        /// All workstreams are done and all gates passed.
        Complete = "complete",
    }
}

open_enum! {
    /// What an adversarial review of the plan came to.
    Verdict {
        /// Build it.
        Ship = "ship",
        /// Build it, with further gates.
        ShipWithGates = "ship_with_gates",
        /// Do not build it.
        DoNotShip = "do_not_ship",
        /// Built all the same; a reason is given.
        Overridden = "overridden",
    }
}

open_enum! {
    /// What kind of value gate B has to show.
    PresenceClass {
        /// A value that is derived from others.
        DerivedValue = "derived_value",
        /// None.
        None = "none",
    }
}

/// How far the build of one document is.
///
/// Member names in the file are `snake_case`. Times are RFC 3339 with a zone. Files of the first
/// revision have `timestamp`, those of the later one `created_at` and `updated_at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent().required(Self::REQUIRED)))]
#[cfg_attr(feature = "schema", schemars(transform = rules::conditions))]
#[serde(default)]
#[non_exhaustive]
pub struct BuildCheckpoint {
    /// The id of the document: `PRD-` and three digits, or `EXEC-`, `ADR-`, `FIB-`, `GAP-`, `PERF-` or
    /// `ISS-` and then letters, digits, `.`, `_` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = layout::ID_PATTERN)))]
    pub prd: Option<String>,
    /// A spelling of the id that the format does not have; read by [`id`](BuildCheckpoint::id).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prd_id: Option<Value>,
    /// A spelling of the id that the format does not have; read by [`id`](BuildCheckpoint::id).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_id: Option<Value>,
    /// A spelling of the id that the format does not have; read by [`id`](BuildCheckpoint::id).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The title of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prd_title: Option<String>,
    /// The number of the phase, from 1; 0 before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub current_phase: Option<f64>,
    /// The state of the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BuildStatus>,
    /// Ids of the workstreams that are done, such as `WS1`.
    #[serde(deserialize_with = "fields::ids")]
    pub completed_workstreams: Vec<String>,
    /// Ids of the workstreams that are being worked on.
    #[serde(deserialize_with = "fields::ids")]
    pub in_progress_workstreams: Vec<String>,
    /// Ids of the workstreams that have not begun.
    #[serde(deserialize_with = "fields::ids")]
    pub pending_workstreams: Vec<String>,
    /// Ids of the workstreams that are left out of this run; later revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub dormant_workstreams: Option<Vec<String>>,
    /// The older name of the dormant workstreams.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "fields::ids_if_any")]
    pub skipped_workstreams: Option<Vec<String>>,
    /// What each workstream made: a list of files, or whatever the workstream left. A dormant
    /// workstream has `{"status": "dormant", "reason": …}`.
    #[serde(deserialize_with = "null_is_default")]
    pub artifacts: BTreeMap<String, Value>,
    /// Gates that passed, such as `type-check (WS2)`.
    #[serde(deserialize_with = "null_is_default")]
    pub gates_passed: Vec<String>,
    /// Gates that have not passed yet, mostly without the workstream.
    #[serde(deserialize_with = "null_is_default")]
    pub gates_pending: Vec<String>,
    /// When the checkpoint was last changed; first revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// When the checkpoint was made; later revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When the checkpoint was last changed; later revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// What failed; only while the build has failed. One that is no object, such as a text, is read too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "error::write")]
    #[serde(deserialize_with = "error::read")]
    pub error: Option<BuildError>,
    /// The result of the adversarial review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adversarial_review: Option<AdversarialReview>,
    /// Gate A, whether what is shown is true to the design: `pass`, or `fail:` and the number of faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = gates::FIDELITY_PATTERN)))]
    pub gate_a_fidelity: Option<String>,
    /// Gate B, what kind of value has to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_b_classification: Option<PresenceClass>,
    /// Gate B, whether it is shown: `pass`, `fail:` or `blocked:` and why, `waived:` and the issue, or
    /// `not_applicable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = gates::PRESENCE_PATTERN)))]
    pub gate_b_presence: Option<String>,
    /// Why gate B need not pass, and the issue that records this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_proof_waiver: Option<RenderProofWaiver>,
    /// Changes that were made to satisfy the linter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eslint_fixes: Option<Vec<Fix>>,
    /// The cleanup that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_done: Option<Vec<String>>,
    /// Changes that mattered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_fixes: Option<Vec<Fix>>,
}

/// What failed in a build.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = Shape::new(SOURCE).null_is_absent()))]
#[serde(default)]
#[non_exhaustive]
pub struct BuildError {
    /// The id of the workstream that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workstream: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The file of the error, relative to the project's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "fields::plain")]
    pub line: Option<f64>,
    /// What the file has in a form that the members above cannot hold.
    #[serde(skip)]
    pub(super) other: Option<Value>,
}

/// How often a plan may be reviewed.
const MOST_ATTEMPTS: f64 = 2.0;

members! {
    /// The result of the adversarial review of the plan.
    #[cfg_attr(feature = "schema", schemars(transform = rules::review_conditions))]
    AdversarialReview from SOURCE {
        /// The verdict.
        verdict: Option<Verdict>,
        /// The number of findings of the most serious kind.
        #[serde(serialize_with = "fields::plain")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        p0_count: Option<f64>,
        /// The number of findings of the second kind.
        #[serde(serialize_with = "fields::plain")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        p1_count: Option<f64>,
        /// Which attempt it was, 1 or 2.
        #[serde(serialize_with = "fields::plain")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 2)))]
        attempt: Option<f64>,
        /// The file with all findings.
        findings_path: Option<String>,
        /// Why the verdict was overridden; required then.
        override_reason: Option<String>,
    }
}

members! {
    /// Why a build is complete without a passed gate B.
    RenderProofWaiver from SOURCE {
        /// Why.
        reason: Option<String>,
        /// The issue that records this.
        issue_id: Option<String>,
    }
}

members! {
    /// A change to a file.
    Fix from SOURCE {
        /// The file, relative to the project's root.
        file: Option<String>,
        /// What was changed in it.
        change: Option<String>,
    }
}

impl Fix {
    /// A change to a file.
    pub fn new(file: impl Into<String>, change: impl Into<String>) -> Self {
        Fix {
            file: Some(file.into()),
            change: Some(change.into()),
        }
    }
}

impl Checkpoint for BuildCheckpoint {
    const FORMAT: &'static str = "build-pipeline";
    const SCHEMA_VERSIONS: &'static [SchemaVersion] = &[
        SchemaVersion::new(1, "One timestamp; ids of PRDs."),
        SchemaVersion::new(
            2,
            "created_at and updated_at for the timestamp, dormant workstreams, gates A and B, ids with other prefixes. Version 1 is read and written too.",
        ),
    ];

    const IDENTITIES: &'static [Identity] = &[
        Identity {
            list: "eslint_fixes",
            by: &["file", "change"],
        },
        Identity {
            list: "key_fixes",
            by: &["file", "change"],
        },
    ];

    const ITEMS: &'static [(&'static str, ItemState)] = &[
        ("/completed_workstreams/*", ItemState::Finished),
        ("/in_progress_workstreams/*", ItemState::Begun),
        ("/pending_workstreams/*", ItemState::Pending),
        ("/gates_pending/*", ItemState::Criterion),
    ];
    const WORK_HAS_IDS: bool = true;
    /// Between two workstreams, or between a workstream and its gate, nothing is in progress.
    const TRANSIENT: &'static [(Code, &'static str)] =
        &[(Code::STATUS_RULE, "/in_progress_workstreams")];
    const INPUTS: &'static [Input] = spec::INPUTS;
    const OPERATIONS: &'static [&'static str] = operations::OPERATIONS;
    const GUIDE: Option<&'static str> = Some(include_str!("guide.md"));

    fn updated_at(&self) -> Option<&Timestamp> {
        self.updated_at.as_ref().or(self.timestamp.as_ref())
    }

    /// Sets `updated_at` in a file of the later revision, else `timestamp`; a file that has both gets both.
    /// `created_at` is never changed.
    fn stamp(&mut self, now: DateTime<Utc>) {
        if self.is_later_revision() {
            // Not coarser than `created_at`, or a fresh checkpoint would be updated before it was created.
            let finest = [&self.updated_at, &self.created_at]
                .into_iter()
                .flatten()
                .max_by_key(|stamp| stamp.precision());
            self.updated_at = Some(Timestamp::like(finest, now));
        }
        if self.timestamp.is_some() || !self.is_later_revision() {
            self.timestamp = Some(Timestamp::like(self.timestamp.as_ref(), now));
        }
    }

    fn files(&self) -> Vec<&str> {
        artifacts::files(self)
    }

    fn status(&self) -> Status {
        states::common(self.status.as_ref())
    }

    fn handoff(&self) -> Handoff {
        handoff::handoff(self)
    }

    /// A build that is only initialized waits for its first phase.
    fn pulse(&self) -> Pulse {
        let pulse = Pulse::of(&self.handoff());
        match self.status.as_ref().and_then(BuildStatus::understood) {
            Some(BuildStatus::Initialized) => pulse.with_activity(Activity::Waiting),
            _ => pulse,
        }
    }

    fn progress(&self, _: &Handoff, now: DateTime<Utc>) -> Progress {
        let (done, all) = self.counts();
        Progress::counted(done, all).with_times(self.elapsed(now), None)
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        rules::inspect(self, inspection);
    }

    fn resume_plan(&self, context: &RuleContext<'_>) -> ResumePlan {
        resume::plan(self, context)
    }

    fn apply(&mut self, operation: &Operation, context: &OperationContext<'_>) -> Result<()> {
        operations::apply(self, operation, context)
    }

    fn start(start: &Start<'_>) -> Result<Self> {
        spec::start(start)
    }

    fn take_inputs(given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
        spec::take(given, file)
    }

    fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
        layout::recognise(path, document)
    }

    fn layout() -> Layout {
        layout::layout()
    }

    fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> Option<Self> {
        Some(handoff::from_handoff(handoff, now))
    }

    fn complete_change(
        &mut self,
        before: &Self,
        _: &mut dyn FnMut() -> Result<Vec<Dropped>>,
    ) -> Result<()> {
        self.refuse_waiver(before)?;
        let made = before.created_at.as_ref();
        if made.is_some_and(|made| made.time().is_some()) && self.created_at != before.created_at {
            return Err(Error::refused(
                "created_at is set once, when the checkpoint is made",
            ));
        }
        Ok(())
    }

    /// The values for the prompt: the heading, the lists of workstreams and the remarks.
    fn message_values(&self, context: &RuleContext<'_>) -> Value {
        let spec = context.input::<ExecutionSpec>();
        let section = |(title, lines)| serde_json::json!({ "title": title, "lines": lines });
        let sections: Vec<Value> = self.sections(spec).map(section).collect();
        serde_json::json!({ "stands": {
            "heading": self.heading(spec),
            "sections": sections,
            "remarks": resume::remarks(self, spec),
        }})
    }

    fn shrink(&mut self, _limits: &Limits, before: Option<&Self>) -> Truncation {
        begin::keep_superseded(self, before)
    }
}

impl BuildCheckpoint {
    /// The id of the document: `prd`, else the value under another name that agents use.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        let elsewhere = [&self.prd_id, &self.spec_id, &self.id]
            .into_iter()
            .flatten();
        self.prd
            .as_deref()
            .or(elsewhere.filter_map(Value::as_str).next())
    }

    /// Whether the file has the stamps of the later revision.
    fn is_later_revision(&self) -> bool {
        self.created_at.is_some() || self.updated_at.is_some()
    }

    /// The time from the creation of the checkpoint until the build was complete, or until `now`. Only the later
    /// revision states when it was created.
    fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let begun = self.created_at.as_ref()?.time()?.to_utc();
        let until = if states::is(self, &BuildStatus::Complete) {
            self.updated_at.as_ref()?.time()?.to_utc()
        } else {
            now
        };
        Some(until - begun).filter(|elapsed| *elapsed >= TimeDelta::zero())
    }

    /// The same checkpoint with the stamps of the later revision.
    #[must_use]
    pub fn in_later_revision(mut self) -> Self {
        if let Some(stamp) = self.timestamp.take() {
            self.created_at.get_or_insert_with(|| stamp.clone());
            self.updated_at.get_or_insert(stamp);
        }
        self
    }
}
