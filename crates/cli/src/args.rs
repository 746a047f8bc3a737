//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::formats::builder_state::Slot;
use agent_checkpoint::formats::{Formats, Given};
use agent_checkpoint::{ContextUse, Fence, Timestamp, is_blank};
use chrono::{DateTime, TimeDelta, Utc};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Outcome;
use crate::settings::{self, Origin, Setting, variable};
use crate::verbs::{Action, Ask, Decide, Once, Prove, Settle, hook};
use crate::{help, inputs};

/// What follows the list of verbs in `ckpt --help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; nothing to report
  1  done, with findings: violations, stale files, a resume that says verify or ask, a start where a checkpoint is,
     a conversion that does not hold everything, two states that differ, a recovery that left something behind,
     a context that is nearly full,
     an agent that is late, stalled, stuck or missing
  2  could not: usage, missing file, I/O, an operation that the format lacks
  3  corrupt input
  4  refused: complete, a transition that the protocol lacks, newer schema version, values that would be lost,
     a task that another has claimed, that waits for a time or a person, or that is poisoned; an action that is
     not approved; or done, and the context is full: stop
  5  conflict: the checkpoint is not at the revision given with --expect
Over several files the gravest wins: 2, 3, 5, 4, 1, 0.
`once` and `approved` with a COMMAND end with its exit code, or with 125 where COMMAND did not run.

An agent's day:
  export CKPT_STORE=checkpoints CKPT_KEY=US-003 CKPT_AGENT=ui-dev
  ckpt start --plan 'Wire toggle' 'Write tests'
  ckpt step start 'Wire toggle'
  ckpt decide 'Use CSS custom properties' --why 'no runtime cost'
  ckpt step done 'Wired toggle to context' --modified src/toggle.tsx
  ckpt resume --header

The variables CKPT_STORE, CKPT_KEY, CKPT_FORMAT, CKPT_ROOT, CKPT_AGENT, CKPT_SESSION and CKPT_FENCE stand for the options, and
then the ckpt.toml of the project; `ckpt config` prints where each value comes from.";

/// Read, check, change and resume AI-agent checkpoints.
///
/// FILE is a checkpoint file; its format is detected (`ckpt detect FILE` says which and why) unless --format names it.
/// In a builder-state host file, --slot says which checkpoint is meant where it has more than one.
#[derive(Debug, Parser)]
#[command(name = "ckpt", after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The options that every verb takes, before or after it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options of all verbs")]
pub(crate) struct Global {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The format of the file, instead of detecting it
    #[arg(long, global = true, value_name = "F")]
    pub(crate) format: Option<String>,
    /// A folder of checkpoint files or a database, sqlite:PATH, postgres://HOST/DATABASE or s3://BUCKET/PREFIX (each
    /// with --key), one checkpoint file, or a builder-state host file
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// Let a report overwrite values that could not be read; they are kept with what was cut
    #[arg(long, global = true)]
    pub(crate) allow_loss: bool,
    /// The checkpoint in a folder or a database: a task or agent id
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
    /// The writing agent
    #[arg(long, global = true, value_name = "A", value_parser = words)]
    pub(crate) agent: Option<String>,
    /// The session that is writing
    #[arg(long, global = true, value_name = "S", value_parser = words)]
    pub(crate) session: Option<String>,
    /// The fence of your claim, as `ckpt claim` printed it; needed for every change while a claim stands
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,
    /// Print what has the shape of a secret; without this a mark such as [redacted: github-token] stands for it
    #[arg(long, global = true)]
    pub(crate) show_secrets: bool,
    /// Take what has the shape of a secret out of what a report writes
    #[arg(long, global = true)]
    pub(crate) redact: bool,
    /// The largest file or document that is read, in bytes
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, default_value_t = 16 * 1024 * 1024)]
    pub(crate) max_bytes: u64,
    /// Print nothing but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Exit with 0 where there are findings, in place of 1; errors keep their codes
    #[arg(long, global = true)]
    pub(crate) exit_zero: bool,
    /// Where the values come from.
    #[arg(skip)]
    pub(crate) settings: Vec<Setting>,
    /// The formats that this program knows.
    #[arg(skip)]
    pub(crate) formats: Formats,
    /// The values of the formats' own options.
    #[arg(skip)]
    pub(crate) given: Given,
    /// How long a save waits for the lock of a file, where that is not the usual time.
    #[arg(skip)]
    pub(crate) lock_timeout: Option<Duration>,
}

impl Global {
    /// Where the value of a setting comes from.
    pub(crate) fn origin(&self, name: &str) -> &Origin {
        let setting = self.settings.iter().find(|setting| setting.name == name);
        setting.map_or(&Origin::Default, |setting| &setting.origin)
    }

    /// What gave a setting its value, for the advice to leave it out.
    pub(crate) fn source(&self, name: &str) -> String {
        match self.origin(name) {
            Origin::Variable => variable(name),
            _ => format!("--{name}"),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say which format each file has, and why
    Detect {
        /// The files, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Say whether each file is a valid checkpoint, and what is wrong with it
    ///
    /// A corrupt file is reported as such whatever its format. Stamps in the future are judged only with --now.
    Validate {
        /// The files, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Show a checkpoint: task, agent, status, progress, steps, decisions, blockers, files, age
    Show {
        /// The checkpoint file, `-` for standard input; or --store
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
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Say of each file that the checkpoint names whether it changed since
    Stale {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the prompt for the agent that goes on
    ///
    /// The prompt goes to standard output; warnings, and questions to be answered first, to standard error. What has
    /// the shape of a secret is redacted in it. --agent and --session say who asks: a task that another has claimed
    /// is refused.
    /// Exit 0 says continue, 1 verify or answer first, 4 do not resume, 3 the checkpoint is corrupt.
    Resume {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print another message: block (the prompt in short), header, take-over, status-check, escalation, progress
        #[arg(long, value_name = "NAME", default_value = "resume")]
        message: String,
        /// A Jinja template of your own for the message, `-` for standard input
        #[arg(long, value_name = "FILE")]
        template: Option<PathBuf>,
        /// A folder of templates of your own, NAME.md and FORMAT/NAME.md; those it lacks are the built-in ones
        #[arg(long, value_name = "DIR")]
        templates: Option<PathBuf>,
        /// Omit the oldest finished steps, then the oldest reasons of decisions, until the prompt has at most N
        /// tokens (of 4 bytes)
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
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
        /// The steps of the plan, in order; where the plan has ids, such as those of subtasks or stories, these
        #[arg(long, value_name = "STEP", num_args = 1.., value_parser = words)]
        plan: Vec<String>,
    },
    /// Show all checkpoints of these folders in one table: who works on what, how far it is, who is alive
    ///
    /// Sub-folders are looked into. Exit 1 when an agent is late, stalled, stuck, missing or in an unknown state, or
    /// something does not go together; 3 when a checkpoint is corrupt.
    Status(Box<Status>),
    /// Make a page for people: all checkpoints of these folders, and the timeline of each task
    ///
    /// One HTML file without scripts, which asks nothing of a network: steps, decisions, hand-overs, silences and effects of
    /// each task, what it needs, and what comes next. Exit codes as `status` has them; a file that is no such page: 4.
    #[command(name = "report")]
    HtmlReport(Box<HtmlReport>),
    /// List the checkpoints of a store: key, format and file, with a tab between
    ///
    /// Of a host file the slot stands for the key. Sub-folders are stores of their own.
    List {
        /// The folder, file or database; or --store
        #[arg(value_name = "STORE")]
        place: Option<PathBuf>,
    },
    #[command(flatten)]
    Report(Report),
    /// Report several things as one change: one JSON object a line on standard input
    ///
    /// Each has "op", such as "step done", and what the verb takes: {"op": "step done", "text": "Wired it"}.
    /// A line that is wrong or refused: nothing is written, and the line is named.
    Batch,
    /// Print the same hand-off in another format
    ///
    /// What that format cannot hold is listed on standard error: exit 1.
    Convert {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The other format
        #[arg(long, value_name = "F")]
        to: String,
        /// Write it to this file, which must not be there yet
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the earlier states of a checkpoint, newest first
    History {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Keep this entry whatever comes; `current` makes an entry of the present state
        #[arg(long, value_name = "ENTRY")]
        pin: Option<String>,
        /// Let this entry go when its time comes
        #[arg(long, value_name = "ENTRY", conflicts_with = "pin")]
        unpin: Option<String>,
    },
    /// Say in words what changed between two states of a checkpoint
    ///
    /// Exit 1 when they differ. An entry is one that `ckpt history` lists, a revision, `current`, or `-`: what is on
    /// standard input.
    Diff {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The earlier state [default: the one before --to]
        #[arg(long, value_name = "ENTRY")]
        from: Option<String>,
        /// The later state [default: the present one]
        #[arg(long, value_name = "ENTRY")]
        to: Option<String>,
    },
    /// Bring an earlier state back; the present one becomes an entry of the history
    Restore {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The state: one that `ckpt history` lists, or a revision
        #[arg(long, value_name = "ENTRY")]
        entry: String,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV")]
        expect: Option<String>,
    },
    /// Go on from a checkpoint that cannot be read, or was deleted
    ///
    /// The damaged text is quarantined, never lost, and the newest earlier state that can be read takes its place. What the
    /// damaged text has that the other lacks is listed: exit 1.
    Recover {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Begin anew instead: nothing takes its place
        #[arg(long, conflicts_with = "salvage")]
        fresh: bool,
        /// Go on with the good part of the damaged text instead
        #[arg(long)]
        salvage: bool,
    },
    /// Put a checkpoint aside under the protocol's name for that, so that its key is free again
    Archive {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Why [default: complete, where its task is; else it must be said]
        #[arg(long = "as", value_name = "WHY", value_enum)]
        why: Option<ArchivedAs>,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV")]
        expect: Option<String>,
    },
    /// Copy all checkpoints of one store into another, with their history
    ///
    /// A copy that was interrupted goes on where it stopped. What is another checkpoint in TO is not touched: exit 5; what
    /// an agent has claimed is not copied: exit 4. What is no checkpoint is named and stays: exit 1.
    Copy {
        /// The store that is read: a folder, one checkpoint file, a host file or a database, `sqlite:PATH`
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// The store that is written to: a folder or a database, which is made
        #[arg(value_name = "TO")]
        to: PathBuf,
        /// Only keys that begin so
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        /// Copy no earlier states
        #[arg(long)]
        without_history: bool,
        /// Copy also what an agent has claimed, which goes on in FROM
        #[arg(long)]
        include_claimed: bool,
    },
    /// Remove everything that is kept of a task, for good; without --apply, say what that would be
    ///
    /// The checkpoint and its archives, its history with what is pinned, damaged texts, dropped items and the claim go. The
    /// number of the last fence stays, so that no earlier owner writes again. With --ended, --taken-over or --older-than
    /// all tasks of a folder and its sub-folders, or of a database, that were kept for so long.
    Forget {
        /// The checkpoint file, or with an age the folder; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        old: Old,
        /// Remove it; nothing brings it back
        #[arg(long)]
        apply: bool,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV", requires = "apply")]
        expect: Option<String>,
    },
    /// Remove old entries of the history; the newest and those that are pinned stay
    Prune {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Keep so many [default: 10, unless another limit is given]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        keep: Option<usize>,
        /// Keep none that was written longer ago, such as `36h` or `30days`
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        older_than: Option<Duration>,
        /// Keep so many bytes together
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        within_bytes: Option<u64>,
    },
    /// Claim a task for --agent, and print the fence that its changes must show; without --agent, say who holds it
    ///
    /// A claim of another that still stands: exit 4. The holder of a claim gets the same fence again.
    Claim {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// How long the claim stands unless it is claimed again, such as `90s` or `2h`
        #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = claimed_for)]
        time_to_live: Duration,
        /// Take the task from an owner whose claim still stands, because it is known to be dead
        #[arg(long)]
        take_over: bool,
        /// The process that works on the task: once it is gone, --agent may claim the task again at once, in any session
        #[arg(long, value_name = "N", conflicts_with = "renew")]
        pid: Option<u32>,
        /// Extend the claim of --fence, even an expired one if no other agent took the task
        #[arg(long, conflicts_with = "take_over")]
        renew: bool,
        /// Start the count of attempts without progress anew: their cause is mended, and `ckpt resume` refuses the task no more
        #[arg(long)]
        reset_attempts: bool,
        /// Print lines for `eval "$(ckpt claim … --export)"`: the commands that follow in this shell show the fence, and
        /// change the same checkpoint
        #[arg(long, conflicts_with_all = ["json", "quiet"])]
        export: bool,
    },
    /// Give the claim with --fence back
    Release {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Set a project up: say which checkpoints are there, and what `ckpt.toml`, `.gitignore`, AGENTS.md and CLAUDE.md need
    ///
    /// Works in the current folder. Nothing is written without --write, and nothing is overwritten: a file that is there
    /// gets at its end what it lacks. Exit 1 when a checkpoint has violations, 3 when one is corrupt.
    Init {
        /// Write it
        #[arg(long)]
        write: bool,
        /// Also add `ckpt hook` to the project's settings of these coding agents, of which the rest stays as it is
        #[arg(long, value_name = "AGENT", value_enum, num_args = 1..)]
        hooks: Vec<Agent>,
    },
    /// Say what is wrong with a store, and with which command it is mended
    ///
    /// Looks into sub-folders, as `status` does. Exit 1 when something is wrong, 3 when a checkpoint is corrupt.
    Doctor {
        /// The folder, file or database; or --store
        #[arg(value_name = "DIR")]
        place: Option<PathBuf>,
        /// Remove what killed writers left; nothing else is safe without a decision
        #[arg(long)]
        fix: bool,
    },
    /// Answer a hook of a coding agent, whose JSON is on standard input
    ///
    /// For Claude Code, Codex and Gemini CLI. SessionStart answers with the prompt of the checkpoint; PostToolUse and
    /// AfterTool record the files that were edited; PreCompact and PreCompress save a checkpoint, and so do Stop,
    /// AfterAgent and SessionEnd, which also tell of files that changed while no step was reported. Without --key it is
    /// the only checkpoint of the store that is not complete. Always exit 0: a failure is a `systemMessage`.
    Hook(Hook),
    /// Run a command at most once for the task, whatever is killed: COMMAND follows `--`
    ///
    /// That the command is begun is on disk before it runs, and its output and exit code afterwards: the next time nothing is
    /// run, and both come again. The exit code is that of COMMAND; 125 says that it did not run: because it is in doubt whether
    /// it took place, because another is at it, or because of an error.
    Once(Once),
    /// Ask a person to approve exactly this command, or this action: COMMAND follows `--`
    ///
    /// The plan says to wait until it is decided. Asking again for the same changes nothing while it is pending or
    /// approved; another action under the same ID is refused until the earlier one is denied, expired or consumed.
    Ask(Ask),
    /// Approve what was asked for, once
    ///
    /// It goes through whichever agent has claimed the task. NAME is no proof of who decides.
    Approve(Decide),
    /// Deny what was asked for, also where it was approved and is not used yet
    Deny {
        #[command(flatten)]
        decide: Decide,
        /// Why, for the agent
        #[arg(long, value_name = "TEXT")]
        because: Option<String>,
    },
    /// Say whether an action is approved; run the COMMAND that is, once: it follows `--`
    ///
    /// Without the action it is only looked at: exit 0 says approved and not used yet, 1 pending, 4 denied, expired, consumed
    /// or not asked. With --action the approval is consumed, which exit 0 says. With COMMAND it is consumed in the same step
    /// in which COMMAND is begun, as by `ckpt once` with the same ID: the exit code is that of COMMAND; 125 says that it
    /// did not run.
    Approved(Action),
    /// List what the task did outside of its checkpoint with `ckpt once`, and settle what is in doubt
    ///
    /// Exit code 1 says that something is in doubt.
    Effects {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        settle: Settle,
    },
    /// Show that a step, criterion or gate is done, with a command: COMMAND follows `--`
    ///
    /// It runs in --root, without a shell. Its exit code is recorded with the end of its output and the files that it
    /// covers: once one of them changes, the proof is outdated. A criterion or gate of the format is passed or failed by it.
    /// Exit code 0 says that it is proven, 1 that it is not.
    Prove(Prove),
    /// List what finished work is proven, failed, outdated or only claimed, and what is to be proven again
    ///
    /// Exit code 1 says that something is failed or outdated.
    Check {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Run the fewest proofs that have to be run again, and record what they show
        #[arg(long)]
        rerun: bool,
    },
    /// Print each setting with its value, and where that comes from: an option, a variable, `ckpt.toml`, a default
    Config,
    /// Print the script with which a shell completes verbs and options
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Print the manual page of the command
    Man {
        /// Write the pages of the command and of all verbs into this folder instead
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print the page to give an agent: when to write what, examples, how to resume, what stale means
    Guide {
        /// The format [default: the list of them]
        #[arg(value_name = "FORMAT")]
        name: Option<String>,
    },
    /// Print the JSON Schema of a format
    Schema {
        /// The format [default: all, as one object by name]
        #[arg(value_name = "FORMAT")]
        name: Option<String>,
        /// For what is read without a violation of shape (read), or what this program writes (write)
        /// [default: read; with --out, both]
        #[arg(long, value_name = "C", value_enum)]
        contract: Option<Contract>,
        /// Write FORMAT.CONTRACT.schema.json into this folder instead
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// A coding agent that has hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// A hook that an agent calls.
#[derive(Debug, clap::Args)]
pub(crate) struct Hook {
    /// The name that the agent has for the event; one that is not known does nothing
    #[arg(value_name = "EVENT")]
    pub(crate) event: String,
    /// What the agent sent.
    #[arg(skip)]
    pub(crate) payload: serde_json::Value,
    /// How `ckpt.toml` has the prompt made.
    #[arg(skip)]
    pub(crate) template: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) templates: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) budget_tokens: Option<usize>,
}

/// For how long tasks are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Old {
    /// All complete tasks that were last changed so long ago, such as `30days`
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "expect")]
    pub(crate) ended: Option<Duration>,
    /// All that another agent took over into a checkpoint of its own, and that were last changed so long ago
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "expect")]
    pub(crate) taken_over: Option<Duration>,
    /// All that were last changed so long ago, complete or not
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "expect")]
    pub(crate) older_than: Option<Duration>,
    /// Of these keep so many, the last changed ones
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) keep: Option<usize>,
}

impl Verb {
    /// Which checkpoints a verb of many looks at.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Verb::Status(how) => Some(&how.scope),
            Verb::HtmlReport(how) => Some(&how.scope),
            _ => None,
        }
    }

    /// The same, for the settings that it lacks.
    pub(crate) fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Verb::Status(how) => Some(&mut how.scope),
            Verb::HtmlReport(how) => Some(&mut how.scope),
            _ => None,
        }
    }

    /// The FILE that a verb of one checkpoint is given.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Verb::Show { file }
            | Verb::Revision { file }
            | Verb::Stale { file }
            | Verb::Resume { file, .. }
            | Verb::Convert { file, .. }
            | Verb::History { file, .. }
            | Verb::Diff { file, .. }
            | Verb::Restore { file, .. }
            | Verb::Recover { file, .. }
            | Verb::Archive { file, .. }
            | Verb::Forget { file, .. }
            | Verb::Prune { file, .. }
            | Verb::Claim { file, .. }
            | Verb::Release { file }
            | Verb::Doctor { place: file, .. }
            | Verb::Effects { file, .. }
            | Verb::Check { file, .. }
            | Verb::Approve(Decide { file, .. })
            | Verb::Deny {
                decide: Decide { file, .. },
                ..
            }
            | Verb::List { place: file } => file.as_deref(),
            _ => None,
        }
    }
}

/// Which checkpoints are looked at, and how they are judged.
#[derive(Debug, clap::Args)]
pub(crate) struct Scope {
    /// The folders, or single files; or --store
    #[arg(value_name = "DIR")]
    pub(crate) places: Vec<PathBuf>,
    /// Agents that should have a checkpoint
    #[arg(long, value_name = "AGENT", num_args = 1.., value_parser = words)]
    pub(crate) expect: Vec<String>,
    /// Tasks that are planned: TASK, TASK@AGENT, or a file (`-`: standard input) with one of these a line or as a JSON array
    #[arg(long, value_name = "FILE|TASK", num_args = 1.., value_parser = words)]
    pub(crate) planned: Vec<String>,
    /// How many folders deep
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 8
    )]
    pub(crate) depth: usize,
    /// From which silence on an agent is late [default: by its protocol]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) late: Option<Duration>,
    /// From which silence on an agent is stalled [default: by its protocol]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) stalled: Option<Duration>,
    /// From which time without progress on an agent that beats is stuck [default: 2h]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) stuck: Option<Duration>,
}

/// What is looked at, and how it is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Print the STATUS table as markdown
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub(crate) markdown: bool,
    /// Stay, and print a line for whatever happens: changed, late, stalled, finished
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) watch: bool,
    /// Only what can be resumed, as `ckpt resume` judges it from --root
    #[arg(long)]
    pub(crate) resumable: bool,
    /// Only what may go on now: it can be resumed, waits for no later time, and no claim keeps others out
    #[arg(long)]
    pub(crate) due: bool,
    /// Print the protocols' own messages about agents that are late or stalled
    #[arg(long, conflicts_with_all = ["json", "markdown", "watch"])]
    pub(crate) messages: bool,
    /// How often --watch looks, also where the system does not tell of changes
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = pause, requires = "watch")]
    pub(crate) every: Duration,
}

/// What a page for people shows, and where it goes.
#[derive(Debug, clap::Args)]
pub(crate) struct HtmlReport {
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Write the page to this file, in the place of an earlier one; `-` is standard output
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) html: PathBuf,
}

/// Why a checkpoint is archived.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ArchivedAs {
    /// Its task is complete
    Complete,
    /// Its agent crashed and another takes over
    Crashed,
    /// Its task begins anew
    Aborted,
}

/// For which side a schema is.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Contract {
    /// What is read without a violation of shape
    Read,
    /// What this program writes
    Write,
}

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
    /// Report that something is in the way
    Block(Forcible<Block>),
    /// Record what goes with the work beside its steps: files, instructions, where in the material it is
    ///
    /// Each format has some of them; another is refused with the list of those it has.
    Detail(Forcible<Details>),
    /// Report that nothing is in the way any more
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
    /// Record what an activity of verification gave
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
    /// Record what a review of the plan came to
    Review(Forcible<Review>),
}

/// A proof that need not be given.
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
    /// How many findings of the gravest kind there are
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) p0: u32,
    /// How many of the second kind there are
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

/// What is reported, and whether the protocol need not have the way there.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Forcible<T: clap::Args> {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) what: T,
    /// Make a transition that the protocol does not have
    #[arg(long)]
    pub(crate) force: bool,
}

/// A report that needs no more words.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Nothing {}

/// A report in words.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Text {
    /// What it is
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
}

/// What is in the way.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Block {
    /// What it is
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
    /// Of which type the error is, such as dependency_missing
    #[serde(rename = "type")]
    #[arg(long = "type", value_name = "TYPE", value_parser = words)]
    pub(crate) kind: Option<String>,
}

/// What goes with the work beside its steps.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Details {
    /// Files that were made, apart from a finished step
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) created: Vec<String>,
    /// Files that were changed, apart from a finished step
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) modified: Vec<String>,
    /// The changed files are committed: their list begins anew
    #[arg(long)]
    pub(crate) committed: bool,
    /// How to resume from here
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) instructions: Option<String>,
    /// The steps that are left, in place of those that were, as in a new stage
    #[arg(long, value_name = "STEP", num_args = 1.., value_parser = words)]
    pub(crate) plan: Option<Vec<String>>,
    /// What of the material was processed last
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) processed: Option<String>,
    /// What of the material comes next
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) next: Option<String>,
    /// The inbox was checked now, and has so many unread messages
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) unread: Option<u32>,
    /// The overview of the group was updated now
    #[arg(long)]
    pub(crate) overview: bool,
    /// The agent's own status file was updated now
    #[arg(long)]
    pub(crate) status_file: bool,
    /// What success is measured by, such as US-003.verificationContract
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
    /// When to go on, and not before, such as 2026-03-02T14:30:00Z: `ckpt resume` then says to wait
    #[arg(long, value_name = "T", value_parser = time)]
    pub(crate) until: Option<DateTime<Utc>>,
}

/// How much of a context is used.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Used {
    /// The part that is used, such as 0.78
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, value_parser = used, required_unless_present = "messages")]
    pub(crate) used: Option<ContextUse>,
    /// The messages so far, if the tokens are not known
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with = "used"
    )]
    pub(crate) messages: Option<u64>,
    /// How many messages stand for the whole context [default: 200]
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "messages",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) of: Option<u64>,
}

/// Who is to go on.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct To {
    /// The agent
    #[arg(long, value_name = "AGENT", value_parser = words)]
    pub(crate) to: String,
}

/// What is entered or passed.
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
    /// What it gave, as the format spells it, such as `passed`
    #[arg(value_name = "STATUS", value_parser = words)]
    pub(crate) status: String,
}

/// What became of a step.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// A step begins; it stays in the plan until it is done
    Start(Forcible<StepStart>),
    /// A step is finished
    Done(Forcible<StepDone>),
    /// A step joins the plan
    Add(Forcible<StepAdd>),
    /// A planned step is not to be done
    Drop(Forcible<StepDrop>),
    /// A planned step reads otherwise
    Edit(Forcible<StepEdit>),
    /// A planned step comes before another
    Move(Forcible<StepMove>),
}

/// A step that joins the plan.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepAdd {
    /// The step
    #[arg(value_name = "TEXT", value_parser = words)]
    pub(crate) text: String,
    /// The planned step that it comes before [default: the end of the plan]
    #[arg(long, value_name = "TEXT")]
    pub(crate) before: Option<String>,
}

/// A planned step that is not to be done.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepDrop {
    /// The step, as the plan has it
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Why: recorded as a decision where the format has those
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) because: String,
}

/// A planned step that reads otherwise.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct StepEdit {
    /// The step, as the plan has it
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// How it reads from now on
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub(crate) to: String,
}

/// A planned step that comes before another.
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
    /// It is the current step that is finished, whatever TEXT reads like
    #[arg(long, conflicts_with = "pending")]
    pub(crate) current: bool,
    /// Files it made, relative to the project's folder
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) created: Vec<String>,
    /// Files it changed, relative to the project's folder
    #[arg(long, value_name = "F", num_args = 1.., value_parser = words)]
    pub(crate) modified: Vec<String>,
}

/// What became of a workstream.
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

/// What became of an item of the plan.
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
    /// Files it made or changed, relative to the project's folder
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

/// What became of a gate.
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
    /// The workstream that is to be mended [default: the one in the gate's name, else the only one in progress]
    #[arg(long, value_name = "W", value_parser = words)]
    pub(crate) workstream: Option<String>,
    /// The file in which it failed
    #[arg(long, value_name = "F", value_parser = words)]
    pub(crate) file: Option<String>,
    /// The line of that file
    #[arg(long, value_name = "N", requires = "file")]
    pub(crate) line: Option<u32>,
}

/// A text that says something: an unset shell variable must not become a step. What names a planned step is looked up in
/// the plan, and may be as empty as that step is.
pub(crate) fn words(text: &str) -> Result<String, String> {
    if is_blank(text) {
        Err("it is empty; say it in a few words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn used(text: &str) -> Result<ContextUse, String> {
    let used = text.trim().parse().ok().and_then(ContextUse::new);
    used.ok_or_else(|| "a part of the context is a fraction, such as 0.78 for 78 %".to_owned())
}

/// How long a claim stands.
fn claimed_for(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() {
        return Err("a claim stands for longer than no time, such as 15m".to_owned());
    }
    let latest = TimeDelta::from_std(time).ok();
    let end = latest.and_then(|time| Utc::now().checked_add_signed(time));
    end.map(|_| time)
        .ok_or_else(|| "a claim cannot stand for that long; give a time such as 15m".to_owned())
}

/// A time to wait, which must not be none: that would be no pause at all.
fn pause(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match time.is_zero() {
        true => Err("give a time to wait, such as 2s".to_owned()),
        false => Ok(time),
    }
}

pub(crate) fn worked(text: &str) -> Result<TimeDelta, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    TimeDelta::from_std(time).map_err(|error| error.to_string())
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

/// The command, with what these formats add.
pub(crate) fn command(formats: &Formats) -> clap::Command {
    help::with_help(inputs::command(Args::command(), formats))
}

/// The command line, or what is to be said instead: the help, the version, or what is wrong with it.
pub(crate) fn parse(formats: Formats) -> Result<Line, Box<Outcome>> {
    parse_words(std::env::args_os(), formats)
}

/// The same of these words, the first of which is the name of the command.
pub(crate) fn parse_words(
    words: impl IntoIterator<Item = OsString>,
    formats: Formats,
) -> Result<Line, Box<Outcome>> {
    let mut command = command(&formats);
    let parsed = command.try_get_matches_from_mut(words).and_then(|matches| {
        let (verb, given) = inputs::given(&matches, &formats);
        let is_own = matches
            .subcommand_name()
            .is_some_and(|name| !Verb::has_subcommand(name));
        let mut line = match is_own {
            true => Line::Own(Box::new(Global::from_arg_matches(&matches)?), verb),
            false => Line::Common(Box::new(Args::from_arg_matches(&matches)?)),
        };
        let global = match &mut line {
            Line::Common(args) => &mut args.global,
            Line::Own(global, _) => global,
        };
        (global.formats, global.given) = (formats, given);
        Ok((line, matches))
    });
    let (mut line, matches) = parsed.map_err(|error| {
        let text = error.render().to_string();
        Box::new(match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Outcome {
                out: text,
                ..Outcome::new()
            },
            _ => {
                let outcome = Outcome::from(usage(&text, &command)).for_a_shell(is_exported());
                // Nothing was parsed, so nothing else says how the result is wanted.
                match std::env::args_os().any(|word| word == "--json") {
                    true => outcome.with_error_as_json(),
                    false => outcome,
                }
            }
        })
    })?;
    let entered = match &mut line {
        Line::Common(args) => match &mut args.verb {
            Verb::Hook(called) => hook::enter(called, &args.global),
            _ => Ok(()),
        },
        Line::Own(..) => Ok(()),
    };
    match entered.and_then(|()| settings::settle(&mut line, &matches)) {
        Ok(()) => Ok(line),
        Err(failure) => {
            let outcome = Outcome::from(failure).for_a_shell(is_exported());
            Err(Box::new(match matches.get_flag("json") {
                true => outcome.with_error_as_json(),
                false => outcome,
            }))
        }
    }
}

/// Whether a shell takes what is printed, also where the command line is wrong.
fn is_exported() -> bool {
    std::env::args_os().any(|word| word == "--export")
}

/// What a command line says.
#[derive(Debug)]
pub(crate) enum Line {
    /// A verb that all formats have.
    Common(Box<Args>),
    /// The words of one that a single format has.
    Own(Box<Global>, String),
}

/// The several lines of a usage error as one.
fn usage(text: &str, command: &clap::Command) -> Failure {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    if lines.first().is_some_and(|line| line.starts_with("error:")) {
        // A line that ends with a colon goes on in the next.
        let joined = lines
            .join("; ")
            .replace(":; ", ": ")
            .replace("; Usage: ", "; usage: ");
        let joined = joined.trim_start_matches("error:").trim();
        let joined = joined.replace(
            "invalid digit found in string",
            "it is a whole number, such as 10",
        );
        // What follows `--` is no option any more.
        return Failure::usage(
            joined.replace("as a value, use", "as a value, end the command with"),
        );
    }
    // The help of a verb that needs another word after it.
    let verb = lines
        .iter()
        .find_map(|line| line.strip_prefix("Usage: ckpt "));
    let verb = verb
        .and_then(|line| line.split_once(" ["))
        .map(|(verb, _)| verb);
    let command = verb.and_then(|verb| command.find_subcommand(verb));
    match command {
        Some(command) => {
            let (verb, words) = (command.get_name(), command.get_subcommands());
            let words = words.map(clap::Command::get_name);
            let words: Vec<&str> = words.filter(|word| *word != "help").collect();
            Failure::usage(format!(
                "`ckpt {verb}` is followed by one of: {}; `ckpt {verb} --help` says more",
                words.join(", ")
            ))
        }
        None => Failure::usage("no verb; `ckpt --help` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words that end with this command and with those below it, and all their long options.
    fn collect(
        command: &clap::Command,
        above: &str,
        verbs: &mut BTreeSet<String>,
        options: &mut BTreeSet<String>,
    ) {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long);
        options.extend(longs.map(|long| format!("--{long}")));
        for verb in command.get_subcommands() {
            let words = format!("{above} {}", verb.get_name());
            let words = words.trim();
            if !verb.has_subcommands() {
                verbs.insert(words.to_owned());
            }
            collect(verb, words, verbs, options);
        }
    }

    /// What stands between backticks in a line, without the options and values behind a verb.
    fn code(line: &str) -> impl Iterator<Item = &str> {
        line.split('`').skip(1).step_by(2)
    }

    #[test]
    fn the_users_reference_has_every_verb_and_option_and_no_other() {
        let (mut verbs, mut options) = (BTreeSet::new(), BTreeSet::new());
        let command = command(&Formats::default());
        collect(&command, "", &mut verbs, &mut options);
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();

        let pieces: Vec<&str> = reference.lines().flat_map(code).collect();
        for verb in &verbs {
            let is_named = |piece: &&str| {
                let rest = piece
                    .strip_prefix("ckpt ")
                    .unwrap_or(piece)
                    .strip_prefix(verb.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            assert!(pieces.iter().any(is_named), "docs/cli.md lacks `{verb}`");
        }
        let is_of_option =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let mut named = BTreeSet::new();
        for (at, _) in reference.match_indices("--") {
            let rest = &reference[at..];
            let end = rest
                .find(|letter| !is_of_option(letter))
                .unwrap_or(rest.len());
            let is_option = rest[2..end].starts_with(|letter: char| letter.is_ascii_lowercase());
            if is_option && reference[..at].ends_with([' ', '`', '|', '[', '(']) {
                named.insert(rest[..end].to_owned());
            }
        }
        assert_eq!(
            options.difference(&named).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "not in docs/cli.md"
        );
        assert_eq!(
            named.difference(&options).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "only in docs/cli.md"
        );

        // Each heading of a verb, and each command in the text, names one that is there.
        let first: BTreeSet<&str> = verbs
            .iter()
            .filter_map(|verb| verb.split(' ').next())
            .collect();
        let headings = reference.lines().filter(|line| line.starts_with("### `"));
        let headings = headings.flat_map(code);
        let commands = pieces
            .iter()
            .filter_map(|piece| piece.strip_prefix("ckpt "));
        for command in headings.chain(commands) {
            let verb = command.split(' ').next().unwrap_or_default();
            assert!(
                first.contains(verb) || verb.starts_with("--"),
                "{command:?}"
            );
        }
    }

    #[test]
    fn the_help_and_the_users_reference_have_the_same_exit_codes() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        let (_, table) = reference.split_once("## Exit codes").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let rows = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        let rows: Vec<&str> = rows.filter(|code| code.parse::<u8>().is_ok()).collect();
        let help = EXIT_CODES
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let help: Vec<&str> = help.filter(|code| code.parse::<u8>().is_ok()).collect();
        assert_eq!(rows, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(help, rows);
    }

    #[test]
    fn every_transient_state_is_on_its_formats_page() {
        for format in Formats::default().iter() {
            let transient = format.transient();
            let page = match format.name() {
                "task" => "builder-state",
                "story-pipeline-state" => "story-pipeline",
                own => own,
            };
            let path = format!(
                "{}/../../docs/formats/{page}.md",
                env!("CARGO_MANIFEST_DIR")
            );
            let page = std::fs::read_to_string(&path).unwrap();
            assert!(page.contains("## Transient states"), "{path}");
            for (code, pointer) in transient {
                let is_listed = |line: &str| {
                    line.contains(&format!("| `{code}` |"))
                        && line.contains(&format!("`{pointer}`"))
                };
                assert!(page.lines().any(is_listed), "{path}: {code} at {pointer}");
            }
        }
    }

    #[test]
    fn the_users_reference_lists_the_operations_of_every_format() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        for format in Formats::default().iter() {
            let operations = format.operations().iter();
            let operations: Vec<_> = operations.map(|name| format!("`{name}`")).collect();
            let row = format!("`{}` | {} |", format.name(), operations.join(", "));
            assert!(reference.contains(&row), "{row}");
        }
    }
}
