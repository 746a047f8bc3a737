//! One store for a program that answers calls on it, such as the MCP server: what the verbs do, in values and not printed.
//!
//! The store, its format and the project's folder are those of the command line of that program, of the environment or of
//! `ckpt.toml`. A call names a key and who calls, and nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent_checkpoint::fleet::{Fleet, Row};
use agent_checkpoint::formats::{Format, Formats, Given, GivenValue};
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::{PromptOptions, Prompts, Rendered, Resume, ResumeDecision};
use agent_checkpoint::store::CheckpointStore;
use agent_checkpoint::{
    Claim, Error, Fence, Handoff, Key, Operation, OperationContext, Report, Revision, RuleContext,
};
use chrono::{DateTime, Utc};

use super::{effects, operate, own, resume, start, status};
use crate::address::Target;
use crate::args::{Global, Line, Scope, Verb, parse_words};
use crate::backend::{is_address, shown};
use crate::failure::{Failure, chain};
use crate::named::{is_folder, is_host_named};
use crate::output::Outcome;
use crate::read;

/// What the command line of a program says; the environment and `ckpt.toml` say the rest.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The store, as `--store` takes it.
    pub store: Option<OsString>,
    /// The format of its checkpoints.
    pub format: Option<OsString>,
    /// The project's folder.
    pub root: Option<OsString>,
    /// The agent that calls where a call does not name it.
    pub agent: Option<OsString>,
    /// Its session.
    pub session: Option<OsString>,
}

/// A store, and how prompts are made.
#[derive(Debug)]
pub struct Served {
    global: Global,
    scope: Scope,
    prompts: Prompts,
    budget_tokens: Option<usize>,
}

/// Who calls, and about which checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The key; of a host file the slot.
    pub key: String,
    /// The agent.
    pub agent: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// The fence of its claim.
    pub fence: Option<Fence>,
}

/// One checkpoint of the store, or its place.
pub struct Task {
    target: Target,
    global: Global,
    place: String,
}

/// What came of a call, in lines for a reader.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// What was done.
    pub lines: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// Why a call could not be carried out.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What kind of failure it is, in a word.
    pub code: &'static str,
    /// What failed and why, without the place of the store.
    pub message: String,
    /// Which of several reports it is about.
    pub report: Option<usize>,
}

impl Served {
    /// The store that this command line means.
    ///
    /// # Errors
    ///
    /// What is wrong with the options, the environment or `ckpt.toml`, in a sentence.
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
        // These are of a call.
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

    /// The session that they name.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.global.session.as_deref()
    }

    /// The format of all checkpoints, where one is named.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        let name = self.global.format.as_deref()?;
        self.global.formats.get(name).ok()
    }

    /// The formats that are known.
    #[must_use]
    pub fn formats(&self) -> &Formats {
        &self.global.formats
    }

    /// The checkpoint of a call, for reading.
    ///
    /// # Errors
    ///
    /// That there is none, or that it cannot be read.
    pub fn read(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, |global| Target::to_read(None, global))
    }

    /// The checkpoint of a call, for a change.
    ///
    /// # Errors
    ///
    /// Why it cannot be changed.
    pub fn write(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, Target::to_write)
    }

    /// The place of a checkpoint that may have to be made first.
    ///
    /// # Errors
    ///
    /// Why none can be there.
    pub fn begin(&self, call: &Call) -> Result<Task, Refused> {
        self.open(call, Target::to_begin)
    }

    /// All checkpoints of the store, judged.
    ///
    /// # Errors
    ///
    /// That the store cannot be read.
    pub fn fleet(&self) -> Result<Fleet, Refused> {
        status::fleet(&self.scope, &self.global).map_err(|failure| self.refused(failure, ""))
    }

    /// The key of a row, as a call names it.
    #[must_use]
    pub fn key(&self, row: &Row) -> Option<String> {
        let slot = row.place.slot.clone();
        slot.or_else(|| super::list::key(row, &self.global))
    }

    /// The prompt of a resume that goes on; `None` where no agent may go on. It has about so many tokens: as many as are
    /// given, else as `ckpt.toml` says, else the usual number.
    ///
    /// # Errors
    ///
    /// That a template of the project is wrong.
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
    /// Its format.
    #[must_use]
    pub fn format(&self) -> &Format {
        &self.target.format
    }

    /// Its key in its store.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.target.key
    }

    /// The store, for claims.
    #[must_use]
    pub fn store(&self) -> &dyn CheckpointStore {
        self.target.store()
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        super::now(&self.global)
    }

    /// The state that is there; `None` where there is no checkpoint.
    ///
    /// # Errors
    ///
    /// That it cannot be read.
    pub fn revision(&self) -> Result<Option<Revision>, Refused> {
        let stored = self.store().load(self.key());
        let stored = stored.map_err(|error| self.error(error))?;
        Ok(stored.map(|stored| stored.revision))
    }

    /// The first checkpoint of a task with this plan and these values of the format's own, and what it says.
    ///
    /// # Errors
    ///
    /// Why the format takes no such plan, or why there can be no checkpoint of this key.
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

    /// Saves a first checkpoint; `false` where one is there already.
    ///
    /// # Errors
    ///
    /// Why it could not be saved.
    pub fn begin(&self, first: &Document) -> Result<bool, Refused> {
        let begun = start::begin(&self.target, first, &self.global);
        let begun = begun.map_err(|failure| self.refused(failure))?;
        Ok(begun.is_some())
    }

    /// Counts the attempt that ended before `claim` was granted, where `before` was the last claim and the checkpoint had
    /// this hand-off.
    ///
    /// # Errors
    ///
    /// That it could not be written. The claim stands all the same.
    pub fn count_take_over(
        &self,
        before: Option<&Claim>,
        claim: &Claim,
        handoff: &Handoff,
    ) -> Result<(), Refused> {
        let ledger = effects::ledger(&self.target, &self.global);
        let counted = ledger.count_take_over(before, claim, handoff);
        counted.map(|_| ()).map_err(|error| self.error(error))
    }

    /// Makes the task that of the caller, who has claimed it.
    ///
    /// # Errors
    ///
    /// Why the protocol does not let this agent go on.
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
    /// Why one of them is refused.
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

    /// Gives the task to another agent, and the claim back. This session is the other agent's, where the protocol names
    /// it.
    ///
    /// # Errors
    ///
    /// Why it cannot be given.
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

    /// Whether and how to go on.
    ///
    /// # Errors
    ///
    /// That the checkpoint cannot be read, or that another agent took its work over.
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

    /// An error at this checkpoint.
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
        // What is said of a key need not begin with it.
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

/// A text without the path of a checkpoint and of its store: a caller knows keys, and no more.
fn without_place(text: &str, key: &str, file: &Path, place: &str) -> String {
    let mut text = text.to_owned();
    let paths = [
        (file.to_path_buf(), key),
        (PathBuf::from(place), "the store"),
    ];
    for (path, instead) in paths {
        // A path such as `c` may be any word.
        let is_path = path.is_absolute() || is_address(&path) || path.components().count() > 1;
        if is_path {
            text = text.replace(&path.display().to_string(), instead);
        }
    }
    text
}
