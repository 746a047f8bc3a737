//! The arguments of the verbs for many checkpoints.

use std::path::PathBuf;
use std::time::Duration;

use super::values::some_span;
use crate::global::{span, words};

/// Which checkpoints are scanned, and how they are judged.
#[derive(Debug, clap::Args)]
pub(crate) struct Scope {
    /// The folders, or single files; or --store
    #[arg(value_name = "DIR")]
    pub(crate) places: Vec<PathBuf>,
    /// Agents that should have a checkpoint
    #[arg(long, value_name = "AGENT", num_args = 1.., value_parser = words)]
    pub(crate) expect: Vec<String>,
    /// Planned tasks: TASK, TASK@AGENT, or a file (`-`: standard input) with one of these per line or a JSON array of
    /// them
    #[arg(long, value_name = "FILE|TASK", num_args = 1.., value_parser = words)]
    pub(crate) planned: Vec<String>,
    /// How many levels of sub-folders to scan
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 8
    )]
    pub(crate) depth: usize,
    /// After how long a silence an agent is late [default: by its protocol]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) late: Option<Duration>,
    /// After how long a silence an agent is stalled [default: by its protocol]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) stalled: Option<Duration>,
    /// After how long without progress an agent that beats is stuck [default: 2h]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) stuck: Option<Duration>,
}

/// Which checkpoints `status` scans, and how it prints them.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Print the STATUS table as markdown
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub(crate) markdown: bool,
    /// Keep running, and print a line for each event: changed, late, stalled, finished
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) watch: bool,
    /// Only tasks that can be resumed, as `ckpt resume` judges them from --root
    #[arg(long)]
    pub(crate) resumable: bool,
    /// Only tasks that may continue now: they can be resumed, wait for no later time, and no claim keeps others out
    #[arg(long)]
    pub(crate) due: bool,
    /// Print the protocols' own messages about agents that are late or stalled
    #[arg(long, conflicts_with_all = ["json", "markdown", "watch"])]
    pub(crate) messages: bool,
    /// How often --watch scans, even if the system does not report changes
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = some_span, requires = "watch")]
    pub(crate) every: Duration,
}

/// What the HTML page shows, and where it is written.
#[derive(Debug, clap::Args)]
pub(crate) struct HtmlReport {
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Write the page to this file, replacing an earlier page; `-` is standard output
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) html: PathBuf,
}

/// Which old tasks are forgotten.
#[derive(Debug, clap::Args)]
pub(crate) struct Old {
    /// All complete tasks that were last changed longer ago than this, such as `30days`
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "expect")]
    pub(crate) ended: Option<Duration>,
    /// All tasks that another agent took over into its own checkpoint and that were last changed longer ago than this
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "expect")]
    pub(crate) taken_over: Option<Duration>,
    /// All tasks that were last changed longer ago than this, complete or not
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "expect")]
    pub(crate) older_than: Option<Duration>,
    /// Keep this many of them, the most recently changed ones
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) keep: Option<usize>,
}
