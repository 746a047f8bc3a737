//! The arguments of the verbs with which an agent or a supervisor reports.

use agent_checkpoint::ContextUse;
use clap::Subcommand;
use serde::Serialize;

use super::values::{until, used};
use crate::global::words;

/// What an agent or a supervisor reports; not every format has each.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// Report a step that begins or is finished
    #[command(subcommand)]
    Step(Step),
    /// Record a decision that the next agent must respect
    Decide(Forcible<Decision>),
    /// Note how far the work in progress is
    Note(Forcible<Text>),
    /// Report that something blocks the work
    Block(Forcible<Block>),
    /// Record details beside the steps: files, instructions, the position in the material
    ///
    /// Each format has some of them; any other is refused with a list of those it has.
    Detail(Forcible<Details>),
    /// Report that nothing blocks the work any more
    Unblock(Forcible<Nothing>),
    /// Report that the agent is alive
    Heartbeat(Forcible<Nothing>),
    /// Report that the task failed
    Fail(Forcible<Text>),
    /// Report that the model's service asked to wait
    RateLimit(Forcible<RateLimit>),
    /// Report how much of the agent's context is used: from 75 % on exit 1, from 90 % on exit 4: stop
    ///
    /// Use messages if tokens are not known.
    Context(Forcible<Used>),
    /// Give the task to another agent
    Reassign(Forcible<To>),
    /// Pause the task until a decision is made, or until a time
    Pause(Forcible<Pause>),
    /// Report that the task is complete
    Complete(Forcible<Nothing>),
    /// Enter a phase
    Phase(Forcible<Name>),
    /// Enter a stage, by name or number
    Stage(Forcible<Name>),
    /// Report that the agent is at a sync point
    Sync(Forcible<Name>),
    /// Begin the task anew
    Restart(Forcible<Because>),
    /// Record the result of a verification activity
    Verify(Forcible<Verification>),
    /// Report a subtask that joins, begins, is finished or failed
    #[command(subcommand)]
    Subtask(Item),
    /// Report a workstream that joins, begins, is finished, failed or is dormant
    #[command(subcommand)]
    Workstream(Workstream),
    /// Report a task of the story that joins, begins, is finished or failed
    #[command(subcommand)]
    Task(Item),
    /// Report a gate that was passed or not
    #[command(subcommand)]
    Gate(Gate),
    /// Waive a proof by an issue
    Waive(Forcible<Waiver>),
    /// Record the verdict of a review of the plan
    Review(Forcible<Review>),
}

/// The waiver of a proof.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Waiver {
    /// The issue that waives it
    #[arg(long, value_name = "ID", value_parser = words)]
    pub(crate) issue: String,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
}

/// A review of a plan.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Review {
    /// ship, ship_with_gates, do_not_ship or overridden
    #[arg(value_name = "VERDICT", value_parser = words)]
    pub(crate) verdict: String,
    /// The number of findings of the gravest kind
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) p0: u32,
    /// The number of findings of the second gravest kind
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) p1: u32,
    /// Which review of the plan it is, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) attempt: u32,
    /// The file with all findings
    #[arg(long, value_name = "FILE", value_parser = words)]
    pub(crate) findings: Option<String>,
    /// Why the verdict was overridden
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: Option<String>,
}

/// A report, and whether it may make a transition that the protocol lacks.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Forcible<T: clap::Args> {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) what: T,
    /// Make a transition that the protocol does not have
    #[arg(long)]
    pub(crate) force: bool,
}

/// A report without arguments.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Nothing {}

/// A report with a text.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Text {
    /// What it is
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
}

/// A blocker.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Block {
    /// What it is
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
    /// The type of the error, such as dependency_missing
    #[serde(rename = "type")]
    #[arg(long = "type", value_name = "TYPE", value_parser = words)]
    pub(crate) kind: Option<String>,
}

/// Details of the work beside its steps.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Details {
    /// Files that were created, not as part of a finished step
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) created: Vec<String>,
    /// Files that were changed, not as part of a finished step
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) modified: Vec<String>,
    /// The changed files are committed: start their list anew
    #[arg(long)]
    pub(crate) committed: bool,
    /// How to resume from here
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) instructions: Option<String>,
    /// The remaining steps, in place of the old ones, for example in a new stage
    #[arg(long, value_name = "STEP", num_args = 1.., value_parser = words)]
    pub(crate) plan: Option<Vec<String>>,
    /// The part of the material that was processed last
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) processed: Option<String>,
    /// The part of the material that comes next
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) next: Option<String>,
    /// The inbox was checked now and has this many unread messages
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) unread: Option<u32>,
    /// The overview of the group was updated now
    #[arg(long)]
    pub(crate) overview: bool,
    /// The agent's own status file was updated now
    #[arg(long)]
    pub(crate) status_file: bool,
    /// The measure of success, such as US-003.verificationContract
    #[arg(long, value_name = "REF", value_parser = words)]
    pub(crate) contract: Option<String>,
}

/// A service that asked to wait.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct RateLimit {
    /// How far the work in progress is
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) pause: Pause,
}

/// A task that waits.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Pause {
    /// The earliest time to continue, such as 2026-03-02T14:30:00Z, or a span from now such as 35m: until then
    /// `ckpt resume` says to wait
    #[arg(long, value_name = "TIME", value_parser = until)]
    pub(crate) until: Option<String>,
}

/// How much of a context is used.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Used {
    /// The part that is used, such as 0.78
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, value_parser = used, required_unless_present = "messages")]
    pub(crate) used: Option<ContextUse>,
    /// The number of messages so far, if the tokens are not known
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with = "used"
    )]
    pub(crate) messages: Option<u64>,
    /// How many messages fill the whole context [default: 200]
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "messages",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) of: Option<u64>,
}

/// The agent that receives the task.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct To {
    /// The agent
    #[arg(long, value_name = "AGENT", value_parser = words)]
    pub(crate) to: String,
}

/// The name of a phase or sync point.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Name {
    /// Its name
    #[arg(value_name = "NAME", value_parser = words)]
    pub(crate) name: String,
}

/// A reason.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Because {
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
}

/// A decision.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Decision {
    /// What was decided
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
    /// The reason, in at most 100 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
}

/// A result of verification.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Verification {
    /// The activity, such as `unit tests`
    #[arg(value_name = "ACTIVITY", value_parser = words)]
    pub(crate) activity: String,
    /// Its result, as the format spells it, such as `passed`
    #[arg(value_name = "STATUS", value_parser = words)]
    pub(crate) status: String,
}

/// A change of a step.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// A step begins; it stays in the plan until it is done
    Start(Forcible<StepStart>),
    /// A step is finished
    Done(Forcible<StepDone>),
    /// A step joins the plan
    Add(Forcible<StepAdd>),
    /// A planned step is no longer to be done
    Drop(Forcible<StepDrop>),
    /// A planned step gets a new text
    Edit(Forcible<StepEdit>),
    /// A planned step moves before another
    Move(Forcible<StepMove>),
}

/// A step to add to the plan.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepAdd {
    /// The step
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
    /// The planned step that it comes before [default: the end of the plan]
    #[arg(long, value_name = "TEXT")]
    pub(crate) before: Option<String>,
}

/// A planned step that is no longer to be done.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepDrop {
    /// The step, as the plan has it
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Why; recorded as a decision if the format has decisions
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
}

/// A planned step that gets a new text.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepEdit {
    /// The step, as the plan has it
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// The new text
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) to: String,
}

/// A planned step that moves before another.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepMove {
    /// The step, as the plan has it
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// The planned step that it comes before
    #[arg(long, value_name = "TEXT")]
    pub(crate) before: String,
}

/// A step that begins.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepStart {
    /// The step, as the plan has it [default: the one in progress, else the next of the plan; printed alone]
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: Option<String>,
}

/// A step that is finished.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepDone {
    /// What was done [default: the current step]
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: Option<String>,
    /// The step of the plan that is finished with it [default: TEXT, where the plan has it, else the current step,
    /// unless TEXT reads more like another]
    #[arg(long, value_name = "TEXT")]
    pub(crate) pending: Option<String>,
    /// The current step is the finished one, whatever TEXT says
    #[arg(long, conflicts_with = "pending")]
    pub(crate) current: bool,
    /// Files it created, relative to the project's folder
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) created: Vec<String>,
    /// Files it changed, relative to the project's folder
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) modified: Vec<String>,
}

/// A change of a workstream.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workstream {
    #[command(flatten)]
    Item(Item),
    /// It becomes dormant in this run
    Dormant(Forcible<Dormant>),
}

/// A workstream that becomes dormant.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Dormant {
    /// Its id
    #[arg(value_name = "ID", value_parser = words)]
    pub(crate) id: String,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
}

/// A change of an item of the plan.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Item {
    /// It joins the plan
    Add(Forcible<ItemStart>),
    /// It begins
    Start(Forcible<ItemStart>),
    /// It is finished
    Done(Forcible<ItemDone>),
    /// It failed
    Fail(Forcible<ItemFail>),
}

/// An item that begins.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct ItemStart {
    /// Its id
    #[arg(value_name = "ID", value_parser = words)]
    pub(crate) id: String,
}

/// An item that is finished.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct ItemDone {
    /// Its id
    #[arg(value_name = "ID", value_parser = words)]
    pub(crate) id: String,
    /// Files it created or changed, relative to the project's folder
    #[arg(long = "file", value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) files: Vec<String>,
}

/// An item that failed.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct ItemFail {
    /// Its id
    #[arg(value_name = "ID", value_parser = words)]
    pub(crate) id: String,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: Option<String>,
}

/// The result of a gate.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Gate {
    /// It was passed
    Pass(Forcible<GatePass>),
    /// It was not passed: the build failed
    Fail(Forcible<GateFail>),
}

/// A gate that was passed.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct GatePass {
    /// Its name
    #[arg(value_name = "NAME", value_parser = words)]
    pub(crate) name: String,
    /// The phase that it ends
    #[arg(long, value_name = "N")]
    pub(crate) phase: Option<u32>,
}

/// A gate that was not passed.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct GateFail {
    /// Its name
    #[arg(value_name = "NAME", value_parser = words)]
    pub(crate) name: String,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
    /// The workstream that must be fixed [default: the one in the gate's name, else the only one in progress]
    #[arg(long, value_name = "W", value_parser = words)]
    pub(crate) workstream: Option<String>,
    /// The file in which it failed
    #[arg(long, value_name = "F", value_parser = words)]
    pub(crate) file: Option<String>,
    /// The line of that file
    #[arg(long, value_name = "N", requires = "file")]
    pub(crate) line: Option<u32>,
}
