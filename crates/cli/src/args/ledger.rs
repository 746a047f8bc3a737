//! The arguments of the verbs for a task's ledger.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use agent_checkpoint::ledger::Approval;

use super::values::{id, lasting};

/// A command to run once.
#[derive(Debug, clap::Args)]
pub(crate) struct Once {
    /// The id of the effect: commands with the same id are one effect of the task
    #[arg(value_name = "ID", allow_hyphen_values = true, value_parser = id)]
    pub(crate) id: String,
    /// If the effect is in doubt, find out with this shell command: exit code 0 means that it took place, 1 that it did
    /// not; with any other exit code the doubt stays
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Option<String>,
    /// How a person or an agent finds out whether it took place
    #[arg(long, value_name = "TEXT")]
    pub(crate) how: Option<String>,
    /// The exit codes with which the command had no effect, so that it may run again
    #[arg(long, value_name = "CODE", num_args = 1.., value_delimiter = ',')]
    pub(crate) retry_on: Vec<u8>,
    /// The command and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
    /// The approval that the command requires.
    #[arg(skip)]
    pub(crate) approval: Option<Approval>,
}

/// A request for an approval.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) action: Action,
    /// Why it is needed, for the person who decides
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// How long it can be decided and then used, such as 2h
    #[arg(long = "for", value_name = "TIME", value_parser = lasting, default_value = "24h")]
    pub(crate) time: Duration,
}

/// The action to approve: COMMAND, or a text.
#[derive(Debug, clap::Args)]
pub(crate) struct Action {
    /// The id of the action within the task
    #[arg(value_name = "ID", allow_hyphen_values = true, value_parser = id)]
    pub(crate) id: String,
    /// The exact action, if it is not a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub(crate) action: Option<String>,
    /// The exact command and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<OsString>,
}

/// A decision on an approval.
#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// The id of the requested action
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    pub(crate) id: String,
    /// The checkpoint file; or --store
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The person who decides
    #[arg(long, value_name = "NAME")]
    pub(crate) by: String,
    /// Only if this is the current round of asking, as in the line that the plan prints for the decision
    #[arg(long, value_name = "NAME")]
    pub(crate) round: Option<String>,
}

/// How an effect in doubt is settled.
#[derive(Debug, clap::Args)]
pub(crate) struct Settle {
    /// Settle this effect: it took place
    #[arg(long, value_name = "ID", conflicts_with = "not_done")]
    pub(crate) done: Option<String>,
    /// The receipt, as far as it is known
    #[arg(long, value_name = "TEXT", requires = "done")]
    pub(crate) receipt: Option<String>,
    /// Settle this effect: it did not take place, and may be begun again
    #[arg(long, value_name = "ID")]
    pub(crate) not_done: Option<String>,
    /// Only if this attempt is the one in doubt, as in the line that the plan prints to settle it
    #[arg(long, value_name = "NAME")]
    pub(crate) round: Option<String>,
}

/// A proof to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Prove {
    /// The step, criterion or gate, as the checkpoint has it
    #[arg(value_name = "STEP|CRITERION|GATE")]
    pub(crate) item: String,
    /// The files that it covers, and folders with all source files below them [default: the files that the checkpoint names]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) inputs: Vec<String>,
    /// The command and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<String>,
}
