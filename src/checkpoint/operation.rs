//! What an agent or a supervisor does to a checkpoint, in the words all formats share.

use chrono::{DateTime, Utc};

use super::{Archive, ContextUse, Error, ErrorKind, Result, RuleContext, SourceFiles, have_names};

/// One thing that an agent or a supervisor reports.
///
/// A format takes those that its protocol has ([`Checkpoint::OPERATIONS`](super::Checkpoint::OPERATIONS))
/// and refuses the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A step begins.
    StepStart {
        /// What is to be done.
        text: String,
    },
    /// A step is finished.
    StepDone {
        /// What was done; the current step where `None`.
        text: Option<String>,
        /// What leaves the plan with it.
        pending: Option<String>,
        /// Files it made.
        files_created: Vec<String>,
        /// Files it changed.
        files_modified: Vec<String>,
    },
    /// A step joins the plan.
    StepAdd {
        /// What is to be done.
        text: String,
        /// The planned step that it comes before; the end of the plan where `None`.
        before: Option<String>,
    },
    /// A planned step is not to be done.
    StepDrop {
        /// The step.
        text: String,
        /// Why.
        because: String,
    },
    /// A planned step reads otherwise.
    StepEdit {
        /// The step.
        text: String,
        /// How it reads from now on.
        to: String,
    },
    /// A planned step comes earlier or later.
    StepMove {
        /// The step.
        text: String,
        /// The planned step that it comes before.
        before: String,
    },
    /// A decision was made.
    Decide {
        /// What was decided.
        text: String,
        /// Why.
        rationale: Option<String>,
    },
    /// How far the work in progress is.
    Note {
        /// The note.
        text: String,
    },
    /// Something is in the way.
    Block {
        /// What it is.
        text: String,
    },
    /// Something of a named kind is in the way.
    BlockAs {
        /// The kind, such as `dependency_missing`.
        kind: String,
        /// What it is.
        text: String,
    },
    /// What a protocol keeps beside the steps.
    Detail {
        /// These.
        detail: Detail,
    },
    /// Nothing is in the way any more.
    Unblock,
    /// The agent is alive.
    Heartbeat,
    /// The task failed.
    Fail {
        /// Why.
        text: String,
    },
    /// The model's service asked to wait.
    RateLimit {
        /// How far the work in progress is.
        note: Option<String>,
    },
    /// How full the agent's context is.
    Context {
        /// How much of it is used.
        used: ContextUse,
    },
    /// Another agent is to go on with the task.
    Reassign {
        /// Who.
        to: String,
    },
    /// The task waits for a decision.
    Pause,
    /// The task is complete.
    Complete,
    /// The task begins anew.
    Restart {
        /// Why.
        because: String,
    },
    /// An item of the plan (a subtask, workstream or task) begins.
    ItemStart {
        /// Which kind of item.
        kind: ItemKind,
        /// Its id.
        id: String,
    },
    /// An item of the plan is finished.
    ItemDone {
        /// Which kind of item.
        kind: ItemKind,
        /// Its id.
        id: String,
        /// Files it made.
        files: Vec<String>,
    },
    /// An item of the plan failed.
    ItemFail {
        /// Which kind of item.
        kind: ItemKind,
        /// Its id.
        id: String,
        /// Why.
        because: Option<String>,
    },
    /// An item joins the plan.
    ItemAdd {
        /// Which kind of item.
        kind: ItemKind,
        /// Its id.
        id: String,
    },
    /// A workstream is left out of this run.
    WorkstreamDormant {
        /// Its id.
        id: String,
        /// Why.
        because: String,
    },
    /// A gate was passed.
    GatePass {
        /// Its name.
        name: String,
        /// The phase that it ends, where that is known.
        phase: Option<u32>,
    },
    /// A gate was not passed.
    GateFail {
        /// Its name.
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
    Waive {
        /// The issue that says so.
        issue: String,
        /// Why.
        because: String,
    },
    /// A plan was reviewed.
    Review {
        /// The verdict, as the format spells it.
        verdict: String,
        /// How many findings of the gravest kind there are.
        p0_count: u32,
        /// How many of the second kind there are.
        p1_count: u32,
        /// Which review of the plan it was, from 1.
        attempt: u32,
        /// The file with all findings.
        findings: Option<String>,
        /// Why the verdict was overridden.
        because: Option<String>,
    },
    /// The task enters a phase.
    Phase {
        /// Its name or number.
        name: String,
    },
    /// The task enters a stage.
    Stage {
        /// Its name or number.
        name: String,
    },
    /// The agent is at a sync point.
    Sync {
        /// Its name.
        name: String,
    },
    /// An activity of verification has a result.
    Verify {
        /// The activity.
        activity: String,
        /// The result, as the format spells it.
        status: String,
    },
}

/// What a protocol keeps beside the steps; a format takes those that it has a place for, and refuses the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// Files that were made, apart from a step that is finished.
    pub files_created: Vec<String>,
    /// Files that were changed, apart from a step that is finished.
    pub files_modified: Vec<String>,
    /// The changed files are committed: their list begins anew.
    pub committed: bool,
    /// How to resume from here, for the next agent.
    pub instructions: Option<String>,
    /// What is left of the plan, in place of what was left.
    pub plan: Option<Vec<String>>,
    /// What of the material was processed last.
    pub processed: Option<String>,
    /// What of the material comes next.
    pub next: Option<String>,
    /// The agent looked for messages, and has not read so many.
    pub unread: Option<u32>,
    /// The agent updated the overview of its group.
    pub overview: bool,
    /// The agent updated its own status file.
    pub status_file: bool,
    /// What success is measured by, such as `US-003.verificationContract`.
    pub contract: Option<String>,
}

impl Detail {
    /// The names of the details that are given.
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

    /// Refuses details without a word in them, and those that a format has no place for; it has `known`.
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
        have_names(self.files_created.iter().chain(&self.files_modified))?;
        let words = [
            &self.instructions,
            &self.processed,
            &self.next,
            &self.contract,
        ];
        let words = words.into_iter().flatten();
        match words
            .chain(self.plan.iter().flatten())
            .any(|text| text.trim().is_empty())
        {
            true => Err(Error::refused("a detail is empty; say it in a few words")),
            false => Ok(()),
        }
    }
}

/// The kinds of items that plans are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemKind {
    /// Of a sitebuilder task.
    Subtask,
    /// Of a build.
    Workstream,
    /// Of a story.
    Task,
}

impl ItemKind {
    /// The kind in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ItemKind::Subtask => "subtask",
            ItemKind::Workstream => "workstream",
            ItemKind::Task => "task",
        }
    }
}

impl Operation {
    /// What it is called, such as `workstream done`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Operation::StepStart { .. } => "step start",
            Operation::StepDone { .. } => "step done",
            Operation::StepAdd { .. } => "step add",
            Operation::StepDrop { .. } => "step drop",
            Operation::StepEdit { .. } => "step edit",
            Operation::StepMove { .. } => "step move",
            Operation::Decide { .. } => "decide",
            Operation::Note { .. } => "note",
            Operation::Block { .. } => "block",
            Operation::BlockAs { .. } => "block with a type",
            Operation::Detail { .. } => "detail",
            Operation::Unblock => "unblock",
            Operation::Heartbeat => "heartbeat",
            Operation::Fail { .. } => "fail",
            Operation::RateLimit { .. } => "rate-limit",
            Operation::Context { .. } => "context",
            Operation::Reassign { .. } => "reassign",
            Operation::Pause => "pause",
            Operation::Complete => "complete",
            Operation::Restart { .. } => "restart",
            Operation::ItemStart { kind, .. } => match kind {
                ItemKind::Subtask => "subtask start",
                ItemKind::Workstream => "workstream start",
                ItemKind::Task => "task start",
            },
            Operation::ItemDone { kind, .. } => match kind {
                ItemKind::Subtask => "subtask done",
                ItemKind::Workstream => "workstream done",
                ItemKind::Task => "task done",
            },
            Operation::ItemFail { kind, .. } => match kind {
                ItemKind::Subtask => "subtask fail",
                ItemKind::Workstream => "workstream fail",
                ItemKind::Task => "task fail",
            },
            Operation::ItemAdd { kind, .. } => match kind {
                ItemKind::Subtask => "subtask add",
                ItemKind::Workstream => "workstream add",
                ItemKind::Task => "task add",
            },
            Operation::WorkstreamDormant { .. } => "workstream dormant",
            Operation::GatePass { .. } => "gate pass",
            Operation::GateFail { .. } => "gate fail",
            Operation::Waive { .. } => "waive",
            Operation::Review { .. } => "review",
            Operation::Phase { .. } => "phase",
            Operation::Stage { .. } => "stage",
            Operation::Sync { .. } => "sync",
            Operation::Verify { .. } => "verify",
        }
    }

    /// As what the checkpoint before is archived, where this one has nothing of it: see
    /// [`Checkpoints::archiving`](crate::Checkpoints::archiving).
    #[must_use]
    pub fn archives(&self) -> Option<Archive> {
        matches!(self, Operation::Restart { .. }).then_some(Archive::Aborted)
    }

    /// Whether the agent of the task reports this, rather than its supervisor.
    ///
    /// An agent that reports work on another's task has taken it over. Where the checkpoint belongs to the
    /// task, it is the checkpoint's agent from then on; where it belongs to the agent, as one that is named
    /// by it does, taking over is a step of its own.
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
                | Operation::Pause
                | Operation::WorkstreamDormant { .. }
                | Operation::Waive { .. }
                | Operation::Review { .. }
                | Operation::Complete
                | Operation::Restart { .. }
        )
    }
}

/// What an operation takes from outside the checkpoint.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OperationContext<'a> {
    /// The present time.
    pub now: DateTime<Utc>,
    /// The agent that reports.
    pub agent: Option<&'a str>,
    /// The session that reports.
    pub session: Option<&'a str>,
    /// Whether a transition that the protocol does not have is made all the same.
    pub force: bool,
    /// What the format's rules take from outside the checkpoint, such as how often the work was tried again. A
    /// rule whose input is not given refuses nothing.
    pub rules: RuleContext<'a>,
    /// Which files are sources, for the formats that record no others.
    pub sources: Option<&'a SourceFiles>,
}

impl<'a> OperationContext<'a> {
    /// A report at this time, by an agent that is not named.
    #[must_use]
    pub fn at(now: DateTime<Utc>) -> Self {
        OperationContext {
            now,
            agent: None,
            session: None,
            force: false,
            rules: RuleContext::none(),
            sources: None,
        }
    }

    /// Names the agent and the session that report.
    #[must_use]
    pub fn by(mut self, agent: Option<&'a str>, session: Option<&'a str>) -> Self {
        self.agent = agent;
        self.session = session;
        self
    }

    /// Sets what the format's rules take from outside the checkpoint.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleContext<'a>) -> Self {
        self.rules = rules;
        self
    }

    /// Sets which files are sources, for the formats that record no others.
    #[must_use]
    pub fn with_sources(mut self, sources: &'a SourceFiles) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Sets whether a transition is made that the protocol does not have.
    #[must_use]
    pub fn with_force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Refuses what needs all work to be finished, while an item that could not be read may be open.
    pub(crate) fn nothing_hidden(&self, cannot: &str) -> Result<()> {
        let unreadable = self.rules.unreadable.iter();
        let open: Vec<String> = unreadable
            .filter(|item| item.may_be_open())
            .map(ToString::to_string)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{cannot}: it is unknown whether this is finished: {}; mend it first",
            open.join("; ")
        )))
    }
}
