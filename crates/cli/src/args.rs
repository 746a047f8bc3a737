//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::ContextUse;
use agent_checkpoint::formats::Formats;
use chrono::Utc;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use serde::Serialize;

use crate::failure::Failure;
pub(crate) use crate::global::Global;
use crate::global::{after, span, time_from, words};
use crate::output::Outcome;
use crate::settings;
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
     a task that another has claimed, a resume of one that waits for a time or a person or is poisoned, an action
     that is not approved; or done, and the context is full: stop
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

/// The verb of the command line.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Report which format each file has, and why
    Detect {
        /// The files, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Report whether each file is a valid checkpoint, and what is wrong with it
    ///
    /// A file can be corrupt in any format. Stamps in the future are judged only with --now.
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
    /// Pointers begin at the root of the file, even in a host file. A value is JSON: text needs its quotes, `ckpt set
    /// FILE '/phase="verification"'`. Missing members are added to objects that exist; `/list/-` appends. Several
    /// assignments are one change: all or none.
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
    /// Report for each file that the checkpoint names whether it has changed since
    Stale {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the prompt for the agent that continues the task
    ///
    /// The prompt goes to standard output; warnings, and questions to be answered first, go to standard error. Text
    /// that looks like a secret is redacted. --agent and --session say who asks: a task that another agent has claimed
    /// is refused. Exit 0 means continue, 1 verify or answer first, 4 do not resume, 3 the checkpoint is corrupt.
    Resume {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print another message: block (the prompt in short), header, take-over, status-check, escalation, progress
        #[arg(long, value_name = "NAME", default_value = "resume")]
        message: String,
        /// Your own Jinja template for the message, `-` for standard input
        #[arg(long, value_name = "FILE")]
        template: Option<PathBuf>,
        /// A folder of your own templates, NAME.md and FORMAT/NAME.md; built-in ones replace those it lacks
        #[arg(long, value_name = "DIR")]
        templates: Option<PathBuf>,
        /// Omit the oldest finished steps, then the oldest reasons of decisions, until the prompt has at most N
        /// tokens (of 4 bytes)
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        budget_tokens: Option<usize>,
        /// A description of the task, if the file has none
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Begin with the line "Resuming from checkpoint (created by …)"
        #[arg(long)]
        header: bool,
    },
    /// Begin a checkpoint in --store
    ///
    /// If there is a checkpoint already, it is shown with its resume verdict and not changed: exit 1.
    Start {
        /// The steps of the plan, in order; if the format identifies them by ids (subtasks, stories), the ids
        #[arg(long, value_name = "STEP", num_args = 1.., value_parser = words)]
        plan: Vec<String>,
    },
    /// Show all checkpoints of these folders in one table: who works on what, how far it is, who is alive
    ///
    /// Includes sub-folders. Exit 1 when an agent is late, stalled, stuck, missing or in an unknown state, or when
    /// checkpoints do not fit together; 3 when a checkpoint is corrupt.
    Status(Box<Status>),
    /// Make a page for people: all checkpoints of these folders, and the timeline of each task
    ///
    /// One HTML file without scripts that loads nothing from a network: steps, decisions, hand-overs, silences and
    /// effects of each task, what it needs, and what comes next. Exit codes as for `status`; 4 if the file exists and
    /// is not such a page.
    #[command(name = "report")]
    HtmlReport(Box<HtmlReport>),
    /// List the checkpoints of a store: key, format and file, with a tab between
    ///
    /// For a host file the slot takes the place of the key. Sub-folders are separate stores.
    List {
        /// The folder, file or database; or --store
        #[arg(value_name = "STORE")]
        place: Option<PathBuf>,
    },
    #[command(flatten)]
    Report(Report),
    /// Report several things as one change: one JSON object a line on standard input
    ///
    /// Each has "op", such as "step done", and the arguments of that verb: {"op": "step done", "text": "Wired it"}. If
    /// a line is wrong or refused, nothing is written, and the error names the line.
    Batch,
    /// Print the same hand-off in another format
    ///
    /// Anything that this format cannot hold is listed on standard error: exit 1.
    Convert {
        /// The checkpoint file, `-` for standard input; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The other format
        #[arg(long, value_name = "F")]
        to: String,
        /// Write it to this file, which must not exist yet
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the earlier states of a checkpoint, newest first
    History {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Pin this entry, so that it is never removed; `current` pins the present state
        #[arg(long, value_name = "ENTRY")]
        pin: Option<String>,
        /// Unpin this entry, so that it may be removed when it is old
        #[arg(long, value_name = "ENTRY", conflicts_with = "pin")]
        unpin: Option<String>,
    },
    /// Describe in words what changed between two states of a checkpoint
    ///
    /// Exit 1 when they differ. An ENTRY is one that `ckpt history` lists, a revision, `current`, or `-` for standard
    /// input.
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
    /// Recover a checkpoint that cannot be read or was deleted
    ///
    /// The damaged text is quarantined, and the newest readable earlier state takes its place. Content of the damaged
    /// text that this state lacks is listed: exit 1.
    Recover {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Begin anew instead, without an earlier state
        #[arg(long, conflicts_with = "salvage")]
        fresh: bool,
        /// Continue with the good part of the damaged text instead
        #[arg(long)]
        salvage: bool,
    },
    /// Archive a checkpoint under its protocol's name for archives, so that its key is free again
    Archive {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Why [default: complete if the task is; otherwise required]
        #[arg(long = "as", value_name = "WHY", value_enum)]
        why: Option<ArchivedAs>,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV")]
        expect: Option<String>,
    },
    /// Copy all checkpoints of one store into another, with their history
    ///
    /// An interrupted copy continues where it stopped. A different checkpoint in TO is not changed: exit 5. A claimed
    /// task is not copied: exit 4. A file that is no checkpoint is named and not copied: exit 1.
    Copy {
        /// The store to read: a folder, one checkpoint file, a host file or a database, `sqlite:PATH`
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// The store to write to: a folder or a database, which is created if missing
        #[arg(value_name = "TO")]
        to: PathBuf,
        /// Only keys that begin with this text
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        /// Copy no earlier states
        #[arg(long)]
        without_history: bool,
        /// Copy claimed tasks, too; their agents continue in FROM
        #[arg(long)]
        include_claimed: bool,
    },
    /// Remove everything that is kept of a task, for good; without --apply, only list it
    ///
    /// This removes the checkpoint and its archives, its history with pinned entries, damaged texts, dropped items and
    /// the claim. The number of the last fence stays, so that no earlier owner writes again. --ended, --taken-over and
    /// --older-than select all such tasks of a folder and its sub-folders, or of a database.
    Forget {
        /// The checkpoint file, or with an age the folder; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        old: Old,
        /// Remove it; this cannot be undone
        #[arg(long)]
        apply: bool,
        /// Only if the checkpoint is at this revision, as `ckpt revision` prints it; else exit 5
        #[arg(long, value_name = "REV", requires = "apply")]
        expect: Option<String>,
    },
    /// Remove old entries of the history; the newest and the pinned ones stay
    Prune {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Keep this many [default: 10, unless another limit is given]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        keep: Option<usize>,
        /// Keep none that was written longer ago than this, such as `36h` or `30days`
        #[arg(long, value_name = "TIME", value_parser = span)]
        older_than: Option<Duration>,
        /// Keep at most this many bytes in total
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        within_bytes: Option<u64>,
    },
    /// Claim a task for --agent and print the fence that its changes need; without --agent, print who holds it
    ///
    /// If another agent's claim is valid: exit 4. The holder of a claim gets the same fence again.
    Claim {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// How long the claim lasts unless it is claimed again, such as `90s` or `2h`
        #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = claimed_for)]
        time_to_live: Duration,
        /// Take the task from an owner whose claim is still valid, because that owner is known to be dead
        #[arg(long)]
        take_over: bool,
        /// The process that works on the task: once it is gone, --agent may claim the task again at once, in any session
        #[arg(long, value_name = "N", conflicts_with = "renew")]
        pid: Option<u32>,
        /// Extend the claim of --fence, even an expired one if no other agent took the task
        #[arg(long, conflicts_with = "take_over")]
        renew: bool,
        /// Reset the count of attempts without progress once their cause is fixed, so that `ckpt resume` accepts the
        /// task again
        #[arg(long)]
        reset_attempts: bool,
        /// Print lines for `eval "$(ckpt claim … --export)"`: later commands in this shell then use this fence and this
        /// checkpoint
        #[arg(long, conflicts_with_all = ["json", "quiet"])]
        export: bool,
    },
    /// Release the claim with --fence
    Release {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Set up a project: list its checkpoints and what `ckpt.toml`, `.gitignore`, AGENTS.md and CLAUDE.md need
    ///
    /// Works in the current folder. Nothing is written without --write, and nothing is overwritten: missing lines are
    /// appended to files that exist. Exit 1 when a checkpoint has violations, 3 when one is corrupt.
    Init {
        /// Write it
        #[arg(long)]
        write: bool,
        /// Also add `ckpt hook` to the project's settings of these coding agents; their other settings stay unchanged
        #[arg(long, value_name = "AGENT", value_enum, num_args = 1..)]
        hooks: Vec<Agent>,
    },
    /// List what is wrong with a store, with the command that fixes each problem
    ///
    /// Includes sub-folders, as `status` does. Exit 1 when something is wrong, 3 when a checkpoint is corrupt.
    Doctor {
        /// The folder, file or database; or --store
        #[arg(value_name = "DIR")]
        place: Option<PathBuf>,
        /// Remove leftovers of killed writers; every other problem needs a decision
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
    /// Run a command at most once for the task, even if a process is killed: COMMAND follows `--`
    ///
    /// The start of the command is on disk before it runs, its output and exit code afterwards. The next time nothing
    /// is run, and both are given again. The exit code is that of COMMAND; 125 means that it did not run: because it is
    /// in doubt whether it took place, because another process is running it, or because of an error.
    Once(Once),
    /// Ask a person to approve exactly this command, or this action: COMMAND follows `--`
    ///
    /// The plan says to wait until it is decided. Asking again for the same changes nothing while it is pending or
    /// approved; another action under the same ID is refused until the earlier one is denied, expired or consumed.
    Ask(Ask),
    /// Approve the requested action, once
    ///
    /// This works whichever agent has claimed the task. NAME does not prove who decided.
    Approve(Decide),
    /// Deny the requested action, even if it was approved and is not used yet
    Deny {
        #[command(flatten)]
        decide: Decide,
        /// Why, for the agent
        #[arg(long, value_name = "TEXT")]
        because: Option<String>,
    },
    /// Report whether an action is approved, or run the approved COMMAND once: it follows `--`
    ///
    /// Without the action this only looks: exit 0 means approved and not used yet, 1 pending, 4 denied, expired,
    /// consumed or not asked for. With --action the approval is consumed: exit 0. With COMMAND it is consumed in the
    /// same step that begins COMMAND, as by `ckpt once` with the same ID: the exit code is that of COMMAND, and 125
    /// means that it did not run.
    Approved(Action),
    /// List the effects of the task outside of its checkpoint (`ckpt once`), and settle those in doubt
    ///
    /// Exit code 1 means that an effect is in doubt.
    Effects {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        settle: Settle,
    },
    /// Prove with a command that a step, criterion or gate is done: COMMAND follows `--`
    ///
    /// COMMAND runs in --root, without a shell. Its exit code is recorded with the end of its output and the files that
    /// it covers: once one of them changes, the proof is outdated. It also passes or fails a criterion or gate of the
    /// format. Exit code 0 means proven, 1 not proven.
    Prove(Prove),
    /// List which finished work is proven, failed, outdated or only reported, and what must be proven again
    ///
    /// Exit code 1 means that something is failed or outdated.
    Check {
        /// The checkpoint file; or --store
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Run the proofs that must be run again, as few as possible, and record the results
        #[arg(long)]
        rerun: bool,
    },
    /// Print each setting with its value and its origin: an option, a variable, `ckpt.toml`, a default
    Config,
    /// Print the script that lets a shell complete verbs and options
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
    /// The template that `ckpt.toml` names for the prompt.
    #[arg(skip)]
    pub(crate) template: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) templates: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) budget_tokens: Option<usize>,
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

impl Verb {
    /// Which checkpoints a verb for many checkpoints scans.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Verb::Status(how) => Some(&how.scope),
            Verb::HtmlReport(how) => Some(&how.scope),
            _ => None,
        }
    }

    /// The same, mutable, to fill in missing settings.
    pub(crate) fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Verb::Status(how) => Some(&mut how.scope),
            Verb::HtmlReport(how) => Some(&mut how.scope),
            _ => None,
        }
    }

    /// The FILE arguments of a verb that only reads them, each of which may be standard input.
    pub(crate) fn read_files(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Verb::Detect { files } | Verb::Validate { files, .. } => files.iter_mut().collect(),
            Verb::Show { file }
            | Verb::Revision { file }
            | Verb::Stale { file }
            | Verb::Resume { file, .. }
            | Verb::Convert { file, .. } => file.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// The FILE argument of a verb for one checkpoint.
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

/// Which side a schema describes.
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

/// An id that a caller makes up. It is told from an option that is misspelled.
pub(crate) fn id(text: &str) -> Result<String, String> {
    if text.starts_with('-') {
        return Err(
            "this is no option here, and no ID begins with `-`; write another ID".to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn used(text: &str) -> Result<ContextUse, String> {
    let used = text.trim().parse().ok().and_then(ContextUse::new);
    used.ok_or_else(|| "a part of the context is a fraction, such as 0.78 for 78 %".to_owned())
}

/// How long a claim lasts.
fn claimed_for(text: &str) -> Result<Duration, String> {
    let span = some_span(text)?;
    after(span, Utc::now()).map(|_| span)
}

/// A span that is not zero.
fn some_span(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    match span.is_zero() {
        true => Err("it is longer than no time, such as 2s or 15m".to_owned()),
        false => Ok(span),
    }
}

/// The text of a time or a span from now. It becomes a time later, since `--now` may come after it.
fn until(text: &str) -> Result<String, String> {
    time_from(text, Utc::now()).map(|_| text.to_owned())
}

/// The command, with the arguments that these formats add.
pub(crate) fn command(formats: &Formats) -> clap::Command {
    help::with_help(inputs::command(Args::command(), formats))
}

/// The command line, or the text to print instead: the help, the version, or the usage error.
pub(crate) fn parse(formats: Formats) -> Result<Line, Box<Outcome>> {
    parse_words(std::env::args_os(), formats)
}

/// Parses these words, the first of which is the name of the command.
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
                // Nothing was parsed, so look for the option itself.
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

/// Whether a shell evaluates the output, even if the command line is wrong.
fn is_exported() -> bool {
    std::env::args_os().any(|word| word == "--export")
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Line {
    /// A verb that all formats have.
    Common(Box<Args>),
    /// A verb of a single format, in its words.
    Own(Box<Global>, String),
}

/// Joins the lines of a usage error into one.
fn usage(text: &str, command: &clap::Command) -> Failure {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    if lines.first().is_some_and(|line| line.starts_with("error:")) {
        // A line that ends with a colon continues in the next.
        let joined = lines
            .join("; ")
            .replace(":; ", ": ")
            .replace("; Usage: ", "; usage: ");
        let joined = joined.trim_start_matches("error:").trim();
        let joined = joined.replace(
            "invalid digit found in string",
            "it is a whole number, such as 10",
        );
        // Words after `--` are not options.
        return Failure::usage(
            joined.replace("as a value, use", "as a value, end the command with"),
        );
    }
    // Clap printed the help of a verb that needs another word.
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

    /// Collects the words of this command and its subcommands, and all their long options.
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

    /// The text between backticks in a line.
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
        // The options of cargo are not ours.
        let lines = reference
            .lines()
            .filter(|line| !line.starts_with("$ cargo "));
        let reference = lines.collect::<Vec<_>>().join("\n");

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

        // Each heading and each command in the text names a verb that exists.
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
