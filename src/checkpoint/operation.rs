//! The one list of what can be reported of a task, in the words that all formats share.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use super::report::name_schema;
use super::report::{context_use, name, nothing};
use super::{Archive, ContextUse, Error, ErrorKind, Result};

/// One thing that an agent or a supervisor reports.
///
/// A format takes those that its protocol has ([`Checkpoint::OPERATIONS`](super::Checkpoint::OPERATIONS))
/// and refuses the others.
///
/// # As JSON
///
/// An object with the name of the operation as `op`, and its values: what a line of `ckpt batch` is. A member that the
/// operation does not have, or that is given twice, is an error.
///
/// ```
/// use agent_checkpoint::Operation;
///
/// let operation = Operation::StepAdd { text: "Test it".into(), before: None };
/// let json = serde_json::to_string(&operation)?;
/// assert_eq!(json, r#"{"op":"step add","text":"Test it"}"#);
/// assert_eq!(serde_json::from_str::<Operation>(&json)?, operation);
/// # Ok::<(), serde_json::Error>(())
/// ```
// `remote` makes the derived functions inherent. The trait implementations, which read and write `op`, call them: see
// the module `report`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(tag = "op", rename = "Operation"))]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub enum Operation {
    /// A step begins; it stays in the plan until it is done. Another that was in progress returns to the plan.
    #[serde(rename = "step start")]
    StepStart {
        /// What is to be done.
        text: String,
    },
    /// A step is finished.
    #[serde(rename = "step done")]
    StepDone(StepDone),
    /// A step joins the plan.
    #[serde(rename = "step add")]
    StepAdd {
        /// What is to be done.
        text: String,
        /// The planned step that it comes before; the end of the plan where `None`.
        before: Option<String>,
    },
    /// A planned step is not to be done.
    #[serde(rename = "step drop")]
    StepDrop {
        /// The step.
        text: String,
        /// Why.
        because: String,
    },
    /// A planned step gets another text.
    #[serde(rename = "step edit")]
    StepEdit {
        /// The step.
        text: String,
        /// Its text from now on.
        to: String,
    },
    /// A planned step comes earlier or later.
    #[serde(rename = "step move")]
    StepMove {
        /// The step.
        text: String,
        /// The planned step that it comes before.
        before: String,
    },
    /// A decision was made.
    #[serde(rename = "decide")]
    Decide {
        /// What was decided.
        text: String,
        /// Why.
        #[serde(rename = "why")]
        rationale: Option<String>,
    },
    /// How far the work in progress is.
    #[serde(rename = "note")]
    Note {
        /// The note.
        text: String,
    },
    /// Something is in the way.
    #[serde(rename = "block")]
    Block {
        /// What it is.
        text: String,
        /// Of which type it is, such as `dependency_missing`; not every format that has blockers has types.
        #[serde(rename = "type")]
        kind: Option<String>,
    },
    /// What a protocol keeps beside the steps.
    #[serde(rename = "detail")]
    Detail(Detail),
    /// Nothing is in the way any more.
    #[serde(rename = "unblock", deserialize_with = "nothing")]
    Unblock,
    /// The agent is alive.
    #[serde(rename = "heartbeat", deserialize_with = "nothing")]
    Heartbeat,
    /// The task failed.
    #[serde(rename = "fail")]
    Fail {
        /// Why.
        text: String,
    },
    /// The model's service asked to wait.
    #[serde(rename = "rate-limit")]
    RateLimit {
        /// How far the work in progress is.
        #[serde(rename = "text")]
        note: Option<String>,
        /// When to go on, and not before: see [`LedgerState::waiting`](crate::ledger::LedgerState::waiting).
        until: Option<DateTime<Utc>>,
    },
    /// How full the agent's context is: in JSON the fraction as `used`, or the number of `messages` and perhaps `of` how
    /// many.
    #[serde(rename = "context", deserialize_with = "context_use")]
    #[cfg_attr(feature = "schema", schemars(with = "super::report::ContextMembers"))]
    Context {
        /// How much of it is used.
        used: ContextUse,
    },
    /// Another agent is to go on with the task.
    #[serde(rename = "reassign")]
    Reassign {
        /// The other agent.
        to: String,
    },
    /// The task waits for a decision, or for a time.
    #[serde(rename = "pause")]
    Pause {
        /// When to go on, and not before: see [`LedgerState::waiting`](crate::ledger::LedgerState::waiting).
        until: Option<DateTime<Utc>>,
    },
    /// The task is complete.
    #[serde(rename = "complete", deserialize_with = "nothing")]
    Complete,
    /// The task enters a phase.
    #[serde(rename = "phase")]
    Phase {
        /// Its name or number.
        #[serde(deserialize_with = "name")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "name_schema"))]
        name: String,
    },
    /// The task enters a stage.
    #[serde(rename = "stage")]
    Stage {
        /// Its name or number.
        #[serde(deserialize_with = "name")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "name_schema"))]
        name: String,
    },
    /// The agent is at a sync point.
    #[serde(rename = "sync")]
    Sync {
        /// Its name.
        #[serde(deserialize_with = "name")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "name_schema"))]
        name: String,
    },
    /// The task begins anew.
    #[serde(rename = "restart")]
    Restart {
        /// Why.
        because: String,
    },
    /// An activity of verification has a result.
    #[serde(rename = "verify")]
    Verify {
        /// The activity.
        activity: String,
        /// The result, as the format spells it.
        status: String,
    },
    /// A subtask of a sitebuilder task begins.
    #[serde(rename = "subtask start")]
    SubtaskStart {
        /// Its id.
        id: String,
    },
    /// A subtask of a sitebuilder task is finished.
    #[serde(rename = "subtask done")]
    SubtaskDone {
        /// Its id.
        id: String,
        /// Files it made or changed.
        #[serde(default)]
        files: Vec<String>,
    },
    /// A subtask of a sitebuilder task failed.
    #[serde(rename = "subtask fail")]
    SubtaskFail {
        /// Its id.
        id: String,
        /// Why.
        because: Option<String>,
    },
    /// A workstream of a build begins.
    #[serde(rename = "workstream start")]
    WorkstreamStart {
        /// Its id.
        id: String,
    },
    /// A workstream of a build is finished.
    #[serde(rename = "workstream done")]
    WorkstreamDone {
        /// Its id.
        id: String,
        /// Files it made or changed.
        #[serde(default)]
        files: Vec<String>,
    },
    /// A workstream of a build failed.
    #[serde(rename = "workstream fail")]
    WorkstreamFail {
        /// Its id.
        id: String,
        /// Why.
        because: Option<String>,
    },
    /// A task of a story begins.
    #[serde(rename = "task start")]
    TaskStart {
        /// Its id.
        id: String,
    },
    /// A task of a story is finished.
    #[serde(rename = "task done")]
    TaskDone {
        /// Its id.
        id: String,
        /// Files it made or changed.
        #[serde(default)]
        files: Vec<String>,
    },
    /// A task of a story failed.
    #[serde(rename = "task fail")]
    TaskFail {
        /// Its id.
        id: String,
        /// Why.
        because: Option<String>,
    },
    /// A subtask joins the plan of a sitebuilder task.
    #[serde(rename = "subtask add")]
    SubtaskAdd {
        /// Its id.
        id: String,
    },
    /// A workstream joins the plan of a build.
    #[serde(rename = "workstream add")]
    WorkstreamAdd {
        /// Its id.
        id: String,
    },
    /// A task joins the plan of a story.
    #[serde(rename = "task add")]
    TaskAdd {
        /// Its id.
        id: String,
    },
    /// A workstream of a build is not part of this run.
    #[serde(rename = "workstream dormant")]
    WorkstreamDormant {
        /// Its id.
        id: String,
        /// Why.
        because: String,
    },
    /// A gate was passed.
    #[serde(rename = "gate pass")]
    GatePass {
        /// Its name.
        #[serde(deserialize_with = "name")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "name_schema"))]
        name: String,
        /// The phase that it ends, where that is known.
        phase: Option<u32>,
    },
    /// A gate was not passed.
    #[serde(rename = "gate fail")]
    GateFail {
        /// Its name.
        #[serde(deserialize_with = "name")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "name_schema"))]
        name: String,
        /// Why.
        because: String,
        /// The workstream that is to be mended.
        workstream: Option<String>,
        /// The file in which it failed.
        file: Option<String>,
        /// The line of that file.
        line: Option<u32>,
    },
    /// A proof need not be given.
    #[serde(rename = "waive")]
    Waive {
        /// The issue that waives it.
        issue: String,
        /// Why.
        because: String,
    },
    /// A plan was reviewed.
    #[serde(rename = "review")]
    Review {
        /// The verdict, as the format spells it.
        verdict: String,
        /// The number of findings of the most serious kind.
        #[serde(rename = "p0", default)]
        p0_count: u32,
        /// How many of the second kind there are.
        #[serde(rename = "p1", default)]
        p1_count: u32,
        /// Which review of the plan it was, from 1.
        #[serde(default = "first", deserialize_with = "or_first")]
        attempt: u32,
        /// The file with all findings.
        findings: Option<String>,
        /// Why the verdict was overridden.
        because: Option<String>,
    },
}

/// The names of the operations in one place: for [`Operation::name`] and for the tables of the formats.
// `$dollar` is the `$` of the inner macro's own repetition; written directly, it would be a repetition of the
// outer macro.
macro_rules! names {
    ($dollar:tt: $($variant:ident $name:literal)*) => {
        impl Operation {
            /// The name, such as `workstream done`. It equals `op` in JSON, except for a blocker with a type,
            /// which has its own name because not every format that takes blockers takes types.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    Operation::Block { kind: None, .. } => "block",
                    Operation::Block { .. } => "block with a type",
                    $(Operation::$variant { .. } => $name,)*
                }
            }
        }

        /// The name of the operation that has this pattern.
        macro_rules! operation_name {
            (Block { text, kind: None }) => { "block" };
            (Block { text, kind: Some(kind) }) => { "block with a type" };
            $(($variant $dollar($dollar members:tt)*) => { $name };)*
        }

        pub(crate) use operation_name;
    };
}

names! {
    $:
    StepStart "step start"
    StepDone "step done"
    StepAdd "step add"
    StepDrop "step drop"
    StepEdit "step edit"
    StepMove "step move"
    Decide "decide"
    Note "note"
    Detail "detail"
    Unblock "unblock"
    Heartbeat "heartbeat"
    Fail "fail"
    RateLimit "rate-limit"
    Context "context"
    Reassign "reassign"
    Pause "pause"
    Complete "complete"
    Phase "phase"
    Stage "stage"
    Sync "sync"
    Restart "restart"
    Verify "verify"
    SubtaskStart "subtask start"
    SubtaskDone "subtask done"
    SubtaskFail "subtask fail"
    WorkstreamStart "workstream start"
    WorkstreamDone "workstream done"
    WorkstreamFail "workstream fail"
    TaskStart "task start"
    TaskDone "task done"
    TaskFail "task fail"
    SubtaskAdd "subtask add"
    WorkstreamAdd "workstream add"
    TaskAdd "task add"
    WorkstreamDormant "workstream dormant"
    GatePass "gate pass"
    GateFail "gate fail"
    Waive "waive"
    Review "review"
}

/// Declares the operations of a format in one table. The table makes the list of their names
/// ([`Checkpoint::OPERATIONS`](super::Checkpoint::OPERATIONS)) and a function that applies an operation and
/// refuses any other with that list.
/// An arm is a pattern of [`Operation`] without its path. Blockers are two arms: `Block { text, kind: None }`,
/// and `Block { text, kind: Some(kind) }` if the format has types of blockers.
macro_rules! operations {
    (
        $(#[$about:meta])*
        $seen_by:vis fn $report:ident($checkpoint:ident: &mut $format:ty, $context:ident) takes $list:ident {
            $($variant:ident $(($value:ident))? $({ $($members:tt)* })? => $does:expr,)*
        }
    ) => {
        /// The operations that the format takes.
        pub(super) const $list: &[&str] =
            &[$($crate::checkpoint::operation_name!($variant $({ $($members)* })?)),*];

        $(#[$about])*
        $seen_by fn $report(
            $checkpoint: &mut $format,
            operation: &$crate::checkpoint::Operation,
            $context: &$crate::checkpoint::OperationContext<'_>,
        ) -> $crate::checkpoint::Result<()> {
            if $list.contains(&operation.name()) {
                operation.check_texts()?;
            }
            match operation {
                $($crate::checkpoint::Operation::$variant $(($value))? $({ $($members)* })? => $does,)*
                other => return Err($crate::checkpoint::Error::unsupported(other, $list)),
            }
            Ok(())
        }
    };
}

pub(crate) use operations;

fn first() -> u32 {
    1
}

/// `null` counts as absent, as in every optional member.
fn or_first<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<u32, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(first))
}

/// A step that is finished.
///
/// The text of what was done may differ from that of the planned step: "Wired toggle to context" finishes "Wire
/// toggle". Where no planned step is named, it is the one with this text, else the current step, unless the text reads
/// more like another planned step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StepDone {
    text: Option<String>,
    pending: Option<String>,
    current: bool,
    created: Vec<String>,
    modified: Vec<String>,
}

impl StepDone {
    /// The current step is finished; its own text says what was done.
    #[must_use]
    pub fn current() -> Self {
        StepDone::default()
    }

    /// A step is finished, and this text says what was done.
    pub fn new(text: impl Into<String>) -> Self {
        StepDone {
            text: Some(text.into()),
            ..StepDone::default()
        }
    }

    /// Names the planned step that is finished.
    #[must_use]
    pub fn with_pending(mut self, pending: impl Into<String>) -> Self {
        self.pending = Some(pending.into());
        self.current = false;
        self
    }

    /// Finishes the current step, even if the text matches another planned step better.
    #[must_use]
    pub fn finish_current(mut self) -> Self {
        self.current = true;
        self.pending = None;
        self
    }

    /// Adds a file that the step made, relative to the project's folder.
    #[must_use]
    pub fn with_created(mut self, file: impl Into<String>) -> Self {
        self.created.push(file.into());
        self
    }

    /// Adds a file that the step changed, relative to the project's folder.
    #[must_use]
    pub fn with_modified(mut self, file: impl Into<String>) -> Self {
        self.modified.push(file.into());
        self
    }

    /// What was done; `None` if the text of the current step says it.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The planned step that is finished, if it is named.
    #[must_use]
    pub fn pending(&self) -> Option<&str> {
        self.pending.as_deref()
    }

    /// Whether the current step is finished, even if the text matches another planned step better.
    #[must_use]
    pub fn finishes_current(&self) -> bool {
        self.current
    }

    /// The files that the step made.
    #[must_use]
    pub fn created(&self) -> &[String] {
        &self.created
    }

    /// The files that the step changed.
    #[must_use]
    pub fn modified(&self) -> &[String] {
        &self.modified
    }

    /// The files that the step made and those that it changed.
    pub(crate) fn files(&self) -> impl Iterator<Item = &String> {
        self.created.iter().chain(&self.modified)
    }

    /// Splits the files with `sort` into kept ones and others, removes the others, and returns them.
    pub fn leave_out(
        &mut self,
        mut sort: impl FnMut(&[String]) -> (Vec<String>, Vec<String>),
    ) -> Vec<String> {
        let mut left_out = Vec::new();
        for files in [&mut self.created, &mut self.modified] {
            let (taken, rest) = sort(files);
            *files = taken;
            left_out.extend(rest);
        }
        left_out
    }

    /// The planned step that is finished: the named one, or the current one if that was requested.
    pub(crate) fn named(&self, current: Option<&str>) -> Result<Option<String>> {
        if self.current && current.is_none() {
            return Err(Error::refused(
                "no step is in progress, so there is no current step; name the step that was finished",
            ));
        }
        let current = current.filter(|_| self.current);
        Ok(current.or(self.pending()).map(str::to_owned))
    }
}

impl From<StepDone> for Operation {
    fn from(done: StepDone) -> Operation {
        Operation::StepDone(done)
    }
}

/// What a protocol keeps beside the steps; a format takes those that it has a place for, and refuses the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Detail {
    /// Files that were made, apart from a step that is finished.
    #[serde(rename = "created")]
    pub files_created: Vec<String>,
    /// Files that were changed, apart from a step that is finished.
    #[serde(rename = "modified")]
    pub files_modified: Vec<String>,
    /// The changed files are committed: their list begins anew.
    pub committed: bool,
    /// How to resume from here, for the next agent.
    pub instructions: Option<String>,
    /// The rest of the plan, in place of the rest so far.
    pub plan: Option<Vec<String>>,
    /// What of the material was processed last.
    pub processed: Option<String>,
    /// What of the material comes next.
    pub next: Option<String>,
    /// The agent looked for messages, and so many are unread.
    pub unread: Option<u32>,
    /// The agent updated the overview of its group.
    pub overview: bool,
    /// The agent updated its own status file.
    pub status_file: bool,
    /// What success is measured by, such as `US-003.verificationContract`.
    pub contract: Option<String>,
}

impl Detail {
    /// The names of the details that are set.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("created", !self.files_created.is_empty()),
            ("modified", !self.files_modified.is_empty()),
            ("committed", self.committed),
            ("instructions", self.instructions.is_some()),
            ("plan", self.plan.is_some()),
            ("processed", self.processed.is_some()),
            ("next", self.next.is_some()),
            ("unread", self.unread.is_some()),
            ("overview", self.overview),
            ("status-file", self.status_file),
            ("contract", self.contract.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Refuses a report without any detail, or with one that is not in `known`, the list of those that the
    /// format takes.
    pub(crate) fn check(&self, known: &[&str]) -> Result<()> {
        if let Some(other) = self.given().find(|name| !known.contains(name)) {
            let supported = known.iter().map(|name| format!("detail {name}"));
            return Err(Error::new(ErrorKind::Unsupported {
                operation: format!("detail {other}"),
                supported: supported.collect(),
            }));
        }
        if self.given().next().is_none() {
            return Err(Error::refused(format!(
                "no detail is given; give one of {}",
                known.join(", ")
            )));
        }
        Ok(())
    }
}

impl Operation {
    /// The reason for which the previous checkpoint is archived if the operation replaces all of it: see
    /// [`Checkpoints::archiving`](crate::Checkpoints::archiving).
    #[must_use]
    pub fn archives(&self) -> Option<Archive> {
        matches!(self, Operation::Restart { .. }).then_some(Archive::Aborted)
    }

    /// Whether the task waits after this operation, for any length of time.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Operation::RateLimit { .. } | Operation::Pause { .. })
    }

    /// The time at which the task may go on, if the report states one.
    #[must_use]
    pub fn until(&self) -> Option<DateTime<Utc>> {
        match self {
            Operation::RateLimit { until, .. } | Operation::Pause { until } => *until,
            _ => None,
        }
    }

    /// Whether the agent of the task reports this, rather than its supervisor.
    ///
    /// An agent that reports work on another agent's task has taken it over. If the checkpoint belongs to the
    /// task, that agent is the checkpoint's agent from then on. If it belongs to an agent, for example because
    /// it is named after one, taking over is a separate step.
    #[must_use]
    pub fn is_work(&self) -> bool {
        !matches!(
            self,
            Operation::Unblock
                | Operation::StepAdd { .. }
                | Operation::StepDrop { .. }
                | Operation::StepEdit { .. }
                | Operation::StepMove { .. }
                | Operation::Reassign { .. }
                | Operation::Pause { .. }
                | Operation::WorkstreamDormant { .. }
                | Operation::Waive { .. }
                | Operation::Review { .. }
                | Operation::Complete
                | Operation::Restart { .. }
        )
    }
}
