//! The command line: its verbs and their arguments.

mod fleet;
mod ledger;
mod report;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::global::{Global, span, words};
use values::lasting;

pub(crate) use fleet::{HtmlReport, Old, Scope, Status};
pub(crate) use ledger::{Action, Ask, Decide, Once, Prove, Settle};
pub(crate) use report::{Report, Step};

/// What follows the list of verbs in `ckpt --help`.
pub(crate) const EXIT_CODES: &str = "\
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

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Line {
    /// A verb that all formats have.
    Common(Box<Args>),
    /// A verb of a single format, in its words.
    Own(Box<Global>, String),
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
        #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = lasting)]
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
