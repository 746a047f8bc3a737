//! One store for a program that answers calls, such as the MCP server: the work of the verbs, returned as values.
//!
//! The store, its format and the project's folder come from the command line of that program, the environment or
//! `ckpt.toml`. A call names only a key and its caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent_checkpoint::fleet::{Fleet, Row};
use agent_checkpoint::formats::{Format, Formats, Given, GivenValue};
use agent_checkpoint::json::Document;
use agent_checkpoint::ledger::{ApprovalRecord, Ledger};
use agent_checkpoint::resume::{PromptOptions, Prompts, Rendered, Resume, ResumeDecision};
use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::{
    Claim, Error, ErrorKind, Fence, Handoff, Key, Operation, OperationContext, Report, Revision,
    RuleContext,
};
use chrono::{DateTime, Utc};

use super::status::judged;
use super::{operate, own, resume, start};
use crate::address::Target;
use crate::args::{Line, Scope, Verb};
use crate::backend::{is_address, shown};
use crate::failure::{Failure, chain};
use crate::global::Global;
use crate::named::{is_folder, is_host_named, shell_word};
use crate::output::Outcome;
use crate::parse::parse_words;
use crate::read;

/// The command line of such a program; the environment and `ckpt.toml` complete it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The store, as `--store` takes it.
    pub store: Option<OsString>,
    /// The format of its checkpoints.
    pub format: Option<OsString>,
    /// The project's folder.
    pub root: Option<OsString>,
    /// The calling agent if a call does not name it.
    pub agent: Option<OsString>,
    /// Its session.
    pub session: Option<OsString>,
}

/// A store and the settings for prompts.
#[derive(Debug)]
pub struct Served {
    global: Global,
    scope: Scope,
    prompts: Prompts,
    budget_tokens: Option<usize>,
}

/// The caller and the checkpoint of a call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The key; for a host file the slot.
    pub key: String,
    /// The agent.
    pub agent: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// The fence of its claim.
    pub fence: Option<Fence>,
}

/// One checkpoint of the store, existing or to be created.
pub struct Task {
    target: Target,
    global: Global,
    place: String,
}

/// The result of a call in lines for a reader.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The changes that were made.
    pub lines: Vec<String>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The kind of failure in one word.
    pub code: &'static str,
    /// What failed and why, without the place of the store.
    pub message: String,
    /// The index of the failed report, if there were several.
    pub report: Option<usize>,
}

impl Served {
    /// Opens the store that these options select.
    ///
    /// # Errors
    ///
    /// If the options, the environment or `ckpt.toml` are wrong: the problem in a sentence.
    pub fn new(options: &Options, formats: &Formats) -> Result<Served, String> {
        let parse = |verb: &[&str]| {
            let words = verb.iter().map(OsString::from).chain(options.words());
            let line = parse_words(words, formats.clone());
            match line.map_err(|outcome| outcome.notes.join("; "))? {
                Line::Common(args) => Ok(*args),
                Line::Own(..) => Err("no verb".to_owned()),
            }
        };
        let (of_status, of_resume) = (
            parse(&["ckpt", "status", "--depth", "0"])?,
            parse(&["ckpt", "resume"])?,
        );
        let mut global = of_status.global;
        // A call gives these.
        (global.key, global.slot, global.fence) = (None, None, None);
        let Some(store) = &global.store else {
            return Err(
                "which store? Name it with --store PATH, or with CKPT_STORE or in ckpt.toml"
                    .to_owned(),
            );
        };
        if store.as_os_str().is_empty() {
            return Err("the store is an empty path; name one".to_owned());
        }
        if let Some(name) = &global.format {
            formats.get(name).map_err(|error| error.to_string())?;
        }
        let Verb::Status(status) = of_status.verb else {
            return Err("no verb".to_owned());
        };
        let (prompts, budget_tokens) = match &of_resume.verb {
            Verb::Resume {
                message,
                template,
                templates,
                budget_tokens,
                ..
            } => {
                let how = resume::How {
                    name: message,
                    template: template.as_deref(),
                    templates: templates.as_deref(),
                    budget_tokens: *budget_tokens,
                    description: None,
                    header: false,
                    is_stdin: false,
                };
                let prompts = resume::prompts(&how, &global);
                (prompts.map_err(|failure| failure.message)?, *budget_tokens)
            }
            _ => (Prompts::default(), None),
        };
        Ok(Served {
            global,
            scope: status.scope,
            prompts,
            budget_tokens,
        })
    }

    /// The agent that the command line or the environment names.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.global.agent.as_deref()
    }

    /// The session that the command line or the environment names.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.global.session.as_deref()
    }

    /// The format of all checkpoints, if one is named.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        let name = self.global.format.as_deref()?;
        self.global.formats.get(name).ok()
    }

    /// The known formats.
    #[must_use]
    pub fn formats(&self) -> &Formats {
        &self.global.formats
    }

    /// Opens the checkpoint of a call for reading.
    ///
    /// # Errors
    ///
    /// If there is no checkpoint, or it cannot be read.
    pub fn read(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, |global| Target::to_read(None, global))
    }

    /// Opens the checkpoint of a call for a change.
    ///
    /// # Errors
    ///
    /// If it cannot be changed.
    pub fn write(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, Target::to_write)
    }

    /// Opens the place of a checkpoint that may have to be created first.
    ///
    /// # Errors
    ///
    /// If there can be no checkpoint of this key.
    pub fn begin(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, Target::to_begin)
    }

    /// Scans and judges all checkpoints of the store.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn fleet(&self) -> Result<Fleet, Refused> {
        judged::fleet(&self.scope, &self.global).map_err(|failure| self.refused(failure, ""))
    }

    /// The key of a row in the form that a call uses.
    #[must_use]
    pub fn key(&self, row: &Row) -> Option<String> {
        let slot = row.place.slot.clone();
        slot.or_else(|| super::list::key(row, &self.global))
    }

    /// The prompt of a resume; `None` if no agent may continue. It has at most about the given number of tokens, else
    /// the number in `ckpt.toml`, else the default.
    ///
    /// # Errors
    ///
    /// If a template of the project is wrong.
    pub fn prompt(
        &self,
        resume: &Resume,
        budget_tokens: Option<usize>,
        usual: usize,
    ) -> Result<Option<Rendered>, Refused> {
        if resume.plan.decision >= ResumeDecision::Wait {
            return Ok(None);
        }
        let budget = budget_tokens.or(self.budget_tokens).unwrap_or(usual);
        let options = PromptOptions::new().with_budget_tokens(budget);
        let rendered = self.prompts.render("resume", resume, &options);
        Ok(Some(rendered.map_err(|error| Refused::from(&error))?))
    }

    fn open(
        &self,
        call: &Call,
        open: impl FnOnce(&Global) -> Result<Target, Failure>,
    ) -> Result<Task, Refused> {
        Key::new(call.key.as_str()).map_err(|error| Refused::from(&error))?;
        let mut global = self.global.clone();
        global.agent.clone_from(&call.agent);
        global.session.clone_from(&call.session);
        global.fence = call.fence;
        let opened = self.is_host().and_then(|is_host| {
            match is_host {
                true => global.slot = Some(call.key.parse()?),
                false => global.key = Some(call.key.clone()),
            }
            open(&global)
        });
        let target = opened.map_err(|failure| self.refused(failure, &call.key))?;
        Ok(Task {
            place: self.place(),
            target,
            global,
        })
    }

    /// Whether the store is a host file, whose slots are the keys.
    fn is_host(&self) -> Result<bool, Failure> {
        let store = self.global.store.as_deref().unwrap_or(Path::new(""));
        if is_address(store) || is_folder(store, &self.global) {
            return Ok(false);
        }
        if self.global.format.is_some() {
            return Ok(is_host_named(&self.global));
        }
        let host = read::checkpoint(store, &self.global)?;
        let found = self.global.formats.detect(store, host.as_ref());
        Ok(found.is_ok_and(|found| found.format.is_host()))
    }

    fn place(&self) -> String {
        let store = self.global.store.as_deref();
        store.map_or_else(String::new, |store| shown(store).display().to_string())
    }

    fn refused(&self, failure: Failure, key: &str) -> Refused {
        Refused::of(failure, key, &self.place())
    }
}

impl Options {
    fn words(&self) -> Vec<OsString> {
        let options = [
            ("--store=", &self.store),
            ("--format=", &self.format),
            ("--root=", &self.root),
            ("--agent=", &self.agent),
            ("--session=", &self.session),
        ];
        let given = options.into_iter().filter_map(|(option, value)| {
            let mut word = OsString::from(option);
            word.push(value.as_ref()?);
            Some(word)
        });
        given.collect()
    }
}

impl Task {
    /// The format of the checkpoint.
    #[must_use]
    pub fn format(&self) -> &Format {
        &self.target.format
    }

    /// The key of the checkpoint.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.target.key
    }

    /// The store, for claims.
    #[must_use]
    pub fn store(&self) -> &dyn CheckpointStore {
        self.target.store()
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.global.now()
    }

    /// The present revision; `None` if there is no checkpoint.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn revision(&self) -> Result<Option<Revision>, Refused> {
        let stored = self.store().load(self.key());
        let stored = stored.map_err(|error| self.error(error))?;
        Ok(stored.map(|stored| stored.revision))
    }

    /// Refuses a key without a checkpoint: its task may have been archived.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read.
    pub fn require(&self) -> Result<(), Refused> {
        match self.revision()? {
            Some(_) => Ok(()),
            None => Err(self.error(Error::new(ErrorKind::NotFound))),
        }
    }

    /// The first checkpoint of a task, with this plan and these values for the format's own options, and its hand-off.
    /// It is not saved.
    ///
    /// # Errors
    ///
    /// If the format does not accept such a plan, or there can be no checkpoint of this key.
    pub fn first(&self, plan: &[String], given: Given) -> Result<(Document, Handoff), Refused> {
        let global = Global {
            given,
            ..self.global.clone()
        };
        let first = start::first(&self.target, plan, &global);
        let first = first.map_err(|failure| self.refused(failure))?;
        let handoff = start::handoff(&self.target, &first);
        let handoff = handoff.map_err(|failure| self.refused(failure))?;
        Ok((first, handoff))
    }

    /// Saves a first checkpoint. Returns `false` if there is a checkpoint already.
    ///
    /// # Errors
    ///
    /// If it could not be saved.
    pub fn begin(&self, first: &Document) -> Result<bool, Refused> {
        let begun = start::begin(&self.target, first, &self.global);
        let begun = begun.map_err(|failure| self.refused(failure))?;
        Ok(begun.is_some())
    }

    /// Counts the attempt that ended before `claim` was granted. `before` was the last claim, and the checkpoint had
    /// this hand-off.
    ///
    /// # Errors
    ///
    /// If it could not be written. The claim is valid anyway.
    pub fn count_take_over(
        &self,
        before: Option<&Claim>,
        claim: &Claim,
        handoff: &Handoff,
    ) -> Result<(), Refused> {
        let ledger = self.target.ledger(&self.global);
        let counted = ledger.count_take_over(before, claim, handoff);
        counted.map(|_| ()).map_err(|error| self.error(error))
    }

    /// Records the caller, who has claimed the task, as its owner.
    ///
    /// # Errors
    ///
    /// If the protocol does not let this agent continue.
    pub fn take_up(&self) -> Result<(), Refused> {
        let context = OperationContext::at(self.now())
            .by(self.global.agent.as_deref(), self.global.session.as_deref())
            .with_rules(RuleContext::none().with_key(self.key()));
        let checkpoints = self.target.any_checkpoints(&self.global);
        let taken_up = checkpoints.take_up(self.key(), &context);
        taken_up.map(|_| ()).map_err(|error| self.error(error))
    }

    /// Saves reports as one change: all of them or none.
    ///
    /// # Errors
    ///
    /// If one of them is refused.
    pub fn report(&self, reports: &[Report]) -> Result<Said, Refused> {
        let beats = |report: &Report| report.operation == Operation::Heartbeat;
        let outcome = match reports {
            [report] if beats(report) && self.format().is_host() => {
                operate::beat(&self.target, &self.global)
            }
            reports => operate::change(&self.target, reports, &self.global),
        };
        self.said(outcome)
    }

    /// Hands the task over to another agent and releases the claim. `session` is the other agent's session, if the
    /// protocol records it.
    ///
    /// # Errors
    ///
    /// If it cannot be handed over.
    pub fn reassign(&self, to: &str, session: String) -> Result<Said, Refused> {
        let mut verbs = self.format().verbs().iter();
        let outcome = match verbs.find(|own| own.name == "reassign") {
            Some(own) => {
                let mut given = Given::default();
                given.set("to", GivenValue::Text(to.to_owned()));
                let global = Global {
                    session: Some(session),
                    ..self.global.clone()
                };
                own::run_on(&self.target, own, &given, &global)
            }
            None => {
                let report = Operation::Reassign { to: to.to_owned() }.into();
                operate::reassign(&self.target, to, report, &self.global)
            }
        };
        self.said(outcome)
    }

    /// The ledger of the task, for the caller.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.target.ledger(&self.global)
    }

    /// The command with which a person approves a pending action. It names the key, but not the store, which the caller
    /// does not know.
    #[must_use]
    pub fn deciding(&self, pending: &ApprovalRecord) -> String {
        let (option, key) = match &self.target.slot {
            Some(slot) => ("--slot", slot.to_string()),
            None => ("--key", self.key().to_string()),
        };
        format!(
            "ckpt approve {} --store STORE {option} {} --round {} --by NAME",
            shell_word(&pending.id),
            shell_word(&key),
            pending.round
        )
    }

    /// The plan of the task: whether and how another agent may continue.
    ///
    /// # Errors
    ///
    /// If the checkpoint cannot be read, or another agent took over its work.
    pub fn resume(&self, recording: Vec<String>, ignores_claims: bool) -> Result<Resume, Refused> {
        let mut options = resume::options(&self.global).with_recording(recording);
        if ignores_claims {
            options = options.ignoring_claims();
        }
        let judged = resume::refuse_taken_over(&self.target, &self.global).and_then(|()| {
            let mut unsaid = Outcome::new();
            resume::judge(&self.target, options, false, &self.global, &mut unsaid)
        });
        let (resume, _) = judged.map_err(|failure| self.refused(failure))?;
        Ok(resume)
    }

    /// An error about this checkpoint.
    #[must_use]
    pub fn error(&self, error: Error) -> Refused {
        self.refused(self.target.error(error))
    }

    fn refused(&self, failure: Failure) -> Refused {
        Refused::of(failure, self.key().as_str(), &self.place)
    }

    fn said(&self, outcome: Result<Outcome, Failure>) -> Result<Said, Refused> {
        let outcome = outcome.map_err(|failure| self.refused(failure))?;
        let here =
            |text: &str| without_place(text, self.key().as_str(), &self.target.path, &self.place);
        Ok(Said {
            lines: outcome.out.lines().map(here).collect(),
            notes: outcome.notes.iter().map(|note| here(note)).collect(),
        })
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Task").field(self.key()).finish()
    }
}

impl Refused {
    fn of(failure: Failure, key: &str, place: &str) -> Refused {
        let file = failure.file.unwrap_or_default();
        let said = failure.source.as_deref().map(|error| chain(error));
        let message = said.unwrap_or(failure.message);
        let begin = file.display().to_string();
        let rest = message.strip_prefix(&begin).filter(|_| !begin.is_empty());
        // The message need not repeat the key at its beginning.
        let rest = rest.map(|rest| rest.strip_prefix(&format!(" ({key})")).unwrap_or(rest));
        let rest = rest.or(message.strip_prefix(key).filter(|_| !key.is_empty()));
        let message = rest
            .and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or(&message);
        Refused {
            code: failure.code,
            message: without_place(message, key, &file, place),
            report: failure.report,
        }
    }
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Refused {
        Refused {
            code: error.code(),
            message: error.to_string(),
            report: error.report(),
        }
    }
}

/// A text without the paths of a checkpoint and of its store: a caller knows only keys.
fn without_place(text: &str, key: &str, file: &Path, place: &str) -> String {
    let mut text = text.to_owned();
    let paths = [
        (file.to_path_buf(), key),
        (PathBuf::from(place), "the store"),
    ];
    for (path, instead) in paths {
        // A path such as `c` may be an ordinary word.
        let is_path = path.is_absolute() || is_address(&path) || path.components().count() > 1;
        if is_path {
            text = text.replace(&path.display().to_string(), instead);
        }
    }
    text
}
