//! The command line.

use std::path::PathBuf;

use agent_checkpoint::Timestamp;
use agent_checkpoint::formats::builder_state::Slot;
use chrono::{DateTime, Utc};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::output::Outcome;

/// What follows the list of verbs in `ckpt --help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; nothing to report
  1  done, with findings: violations, stale files, a resume that says verify or ask, a start where a checkpoint is
  2  could not: usage, missing file, I/O
  3  corrupt input
  4  refused: complete, newer schema version, values that would be lost
  5  conflict: the checkpoint is not at the revision given with --expect
Over several files the gravest wins: 2, 3, 5, 4, 1, 0.

An agent's day:
  ckpt start --store checkpoints --key US-003 --agent ui-dev --plan 'Wire toggle' 'Write tests'
  ckpt step start 'Wire toggle' --store checkpoints --key US-003
  ckpt decide 'Use CSS custom properties' --why 'no runtime cost' --store checkpoints --key US-003
  ckpt step done 'Wired toggle to context' --modified src/toggle.tsx --store checkpoints --key US-003
  ckpt resume checkpoints/US-003.json --header";

/// Read, check, change and resume AI-agent checkpoints.
///
/// FILE is a checkpoint file; its format is detected (`ckpt detect FILE` says which and why) unless --format names it.
/// In a builder-state host file, --slot says which checkpoint is meant where it has more than one.
#[derive(Debug, Parser)]
#[command(name = "ckpt", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The options that every verb takes, before or after it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of all verbs")]
pub(crate) struct Global {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The format of the file, instead of detecting it: task or builder-state
    #[arg(long, global = true, value_name = "F")]
    pub(crate) format: Option<String>,
    /// A folder of checkpoint files (with --key), one checkpoint file, or a builder-state host file
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// The checkpoint in a folder: a task or agent id
    #[arg(long, global = true, value_name = "K")]
    pub(crate) key: Option<String>,
    /// The checkpoint in a builder-state host file: active, adhoc:ID or top [default: the only one there]
    #[arg(long, global = true, value_name = "SLOT", value_parser = slot)]
    pub(crate) slot: Option<Slot>,
    /// The project's folder, which tracked files are relative to
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// Take this RFC 3339 time for the present, also in stamps
    #[arg(long, global = true, value_name = "T", value_parser = time)]
    pub(crate) now: Option<DateTime<Utc>>,
    /// Who is writing
    #[arg(long, global = true, value_name = "A")]
    pub(crate) agent: Option<String>,
    /// The session that is writing
    #[arg(long, global = true, value_name = "S")]
    pub(crate) session: Option<String>,
    /// The largest file that is read, in bytes
    #[arg(long, global = true, value_name = "N", default_value_t = 16 * 1024 * 1024)]
    pub(crate) max_bytes: u64,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say which format each file has, and why
    Detect {
        /// The files; or --store
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Say whether each file is a valid checkpoint, and what is wrong with it
    ///
    /// A corrupt file is reported as such whatever its format. Stamps in the future are judged only with --now.
    Validate {
        /// The files; or --store
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Show a checkpoint: task, agent, status, progress, steps, decisions, blockers, files, age
    Show {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Change values at JSON pointers, and nothing else in the text
    ///
    /// The pointers are those of the file, also in a host file. A value is JSON: text needs its quotes,
    /// `ckpt set FILE '/phase="verification"'`. Members that are missing are made in objects that are there;
    /// `/list/-` appends. Several assignments are one change: all or none.
    Set {
        /// The checkpoint file (not with --store), then the assignments, each POINTER=JSON
        #[arg(value_name = "FILE POINTER=JSON", required = true, num_args = 1..)]
        words: Vec<String>,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV")]
        expect: Option<String>,
    },
    /// Print the token of the checkpoint's present state, for `set --expect`
    Revision {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Say of each file that the checkpoint names whether it changed since
    Stale {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the prompt for the agent that goes on
    ///
    /// The prompt goes to standard output; warnings, and questions to be answered first, to standard error.
    /// Exit 0 says continue, 1 verify or answer first, 4 do not resume, 3 the checkpoint is corrupt.
    Resume {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// A Jinja template of your own for the prompt
        #[arg(long, value_name = "FILE")]
        template: Option<PathBuf>,
        /// Leave out the oldest finished steps until the prompt has at most N tokens (of 4 bytes)
        #[arg(long, value_name = "N")]
        budget_tokens: Option<usize>,
        /// What the task is, where the file does not say it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Begin with the line "Resuming from checkpoint (created by …)"
        #[arg(long)]
        header: bool,
    },
    /// Begin a checkpoint in --store
    ///
    /// Where a checkpoint is already, it is shown with its resume verdict and not touched: exit 1.
    Start {
        /// The steps of the plan, in order
        #[arg(long, value_name = "STEP", num_args = 1.., value_parser = words)]
        plan: Vec<String>,
    },
    /// Report a step that begins or is finished
    #[command(subcommand)]
    Step(Step),
    /// Record a decision that the next agent must respect
    Decide {
        /// What was decided
        #[arg(value_name = "TEXT", value_parser = words)]
        text: String,
        /// The reason, in at most 100 characters
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
}

/// What became of a step.
#[derive(Debug, Subcommand)]
pub(crate) enum Step {
    /// A step begins; it stays in the plan until it is done
    Start {
        /// The step, as the plan has it
        #[arg(value_name = "TEXT", value_parser = words)]
        text: String,
    },
    /// A step is finished
    Done {
        /// What was done [default: the current step]
        #[arg(value_name = "TEXT", value_parser = words)]
        text: Option<String>,
        /// The step of the plan that is finished with it [default: one that reads like TEXT, else the current step]
        #[arg(long, value_name = "TEXT")]
        pending: Option<String>,
        /// Files it made, relative to the project's folder
        #[arg(long, value_name = "F", num_args = 1..)]
        created: Vec<String>,
        /// Files it changed, relative to the project's folder
        #[arg(long, value_name = "F", num_args = 1..)]
        modified: Vec<String>,
    },
}

/// A text that says something: an unset shell variable must not become a step.
fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("it is empty; say it in a few words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn slot(text: &str) -> Result<Slot, String> {
    text.parse()
        .map_err(|_| "a slot is `active`, `adhoc:ID` or `top`".to_owned())
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = Timestamp::parse(text).time();
    time.map(|time| time.to_utc())
        .ok_or_else(|| "a time is RFC 3339 with a zone, such as 2026-03-02T08:05:00Z".to_owned())
}

/// The command line, or what is to be said instead: the help, the version, or what is wrong with it.
pub(crate) fn parse() -> Result<Args, Outcome> {
    Args::try_parse().map_err(|error| {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Outcome {
                out: text,
                ..Outcome::new()
            },
            _ => usage(&text).into(),
        }
    })
}

/// The several lines of a usage error as one.
fn usage(text: &str) -> Failure {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.first().is_some_and(|line| line.starts_with("error:")) {
        let joined = lines.join("; ");
        return Failure::new(joined.trim_start_matches("error:").trim().to_owned());
    }
    Failure::new("no verb; `ckpt --help` lists them")
}
