//! The verbs.

mod approvals;
mod archive;
mod busy;
mod claim;
mod config;
mod convert;
mod copy;
mod detect;
mod diff;
mod doctor;
mod effects;
mod forget;
mod forget_old;
mod guide;
mod history;
pub(crate) mod hook;
mod init;
mod list;
mod once;
mod operate;
mod own;
mod pages;
mod prove;
mod recover;
mod report;
mod restore;
mod resume;
mod revision;
mod scan;
mod schema;
pub mod served;
mod set;
mod show;
mod stale;
mod start;
mod status;
mod validate;

use std::path::Path;

use agent_checkpoint::ledger::ApprovalDecision;
use agent_checkpoint::store::{CopyOptions, Keep, Recovery};

use crate::args::{Args, Line, Verb};
use crate::backend::shown;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::stdin;

pub(crate) use once::{refused_words, wait_and_run};

/// Runs the command line.
pub(crate) fn run(line: Line) -> Outcome {
    let mut args = match line {
        Line::Common(args) => *args,
        Line::Own(global, verb) => {
            settle(&global);
            let store = global.store.as_deref().map(shown);
            let outcome = own::run(&verb, &global);
            let outcome = outcome.unwrap_or_else(|failure| {
                failure.at(store.as_deref(), global.key.as_deref()).into()
            });
            return finish(outcome, How::of(&global));
        }
    };
    let input = stdin::AsFile::take(args.verb.read_files(), args.global.max_bytes);
    let how = How::of(&args.global);
    let (input, mut outcome) = match input {
        Ok(input) => {
            let outcome = run_on(args, input.is_some());
            (input, outcome)
        }
        Err(failure) => (None, Outcome::from(failure)),
    };
    outcome = finish(outcome, how);
    if let Some(input) = input {
        input.name(&mut outcome);
    }
    outcome
}

/// The wanted form of the final output.
#[derive(Clone, Copy)]
struct How {
    json: bool,
    quiet: bool,
    exit_zero: bool,
}

impl How {
    fn of(global: &Global) -> How {
        How {
            json: global.json,
            quiet: global.quiet,
            exit_zero: global.exit_zero,
        }
    }
}

fn finish(mut outcome: Outcome, how: How) -> Outcome {
    if how.quiet {
        outcome.keep_errors();
    }
    if how.json {
        outcome = outcome.with_error_as_json();
    }
    if how.exit_zero && outcome.exit == Exit::Findings {
        outcome.exit = Exit::Done;
    }
    outcome
}

/// Applies the options for all output.
fn settle(global: &Global) {
    if global.show_secrets {
        crate::output::show_secrets();
    }
    if global.quiet {
        crate::output::keep_quiet();
    }
    crate::advice::advise_for(global);
}

fn run_on(args: Args, is_stdin: bool) -> Outcome {
    let global = &args.global;
    settle(global);
    let does_more_than_look = does_more_than_look(&args.verb, global);
    let file = named_file(&args.verb, global).map(shown);
    if let Err(failure) = stdin::refuse(file.as_deref()) {
        return failure.into();
    }
    let outcome: Result<Outcome, Failure> = match args.verb {
        Verb::Detect { files } => detect::run(&files, global),
        Verb::Validate { files } => validate::run(&files, global),
        Verb::Show { file } => show::run(file.as_deref(), global),
        Verb::Set { words, expect } => set::run(&words, expect.as_deref(), global),
        Verb::Revision { file } => revision::run(file.as_deref(), global),
        Verb::Stale { file } => stale::run(file.as_deref(), global),
        Verb::Resume {
            file,
            message,
            template,
            templates,
            budget_tokens,
            description,
            header,
        } => {
            let how = resume::How {
                name: &message,
                template: template.as_deref(),
                templates: templates.as_deref(),
                budget_tokens,
                description: description.as_deref(),
                header,
                is_stdin,
            };
            resume::run(file.as_deref(), &how, global)
        }
        Verb::Start { plan } => start::run(&plan, global),
        Verb::List { place } => list::run(place.as_deref(), global),
        Verb::Status(how) => status::run(&how, global),
        Verb::HtmlReport(how) => report::run(&how, global),
        Verb::Report(verb) => operate::run(&verb, global),
        Verb::Batch => operate::batch(global),
        Verb::Convert { file, to, out } => {
            convert::run(file.as_deref(), &to, out.as_deref(), is_stdin, global)
        }
        Verb::History { file, pin, unpin } => {
            let pin = pin.map(|entry| (entry, true));
            let change = pin.or(unpin.map(|entry| (entry, false)));
            history::run(file.as_deref(), change, global)
        }
        Verb::Diff { file, from, to } => {
            diff::run(file.as_deref(), from.as_deref(), to.as_deref(), global)
        }
        Verb::Restore {
            file,
            entry,
            expect,
        } => restore::run(file.as_deref(), &entry, expect.as_deref(), global),
        Verb::Recover {
            file,
            fresh,
            salvage,
        } => {
            let with = match (fresh, salvage) {
                (true, _) => Recovery::Fresh,
                (_, true) => Recovery::Salvage,
                _ => Recovery::Newest,
            };
            recover::run(file.as_deref(), with, global)
        }
        Verb::Archive { file, why, expect } => {
            archive::run(file.as_deref(), why, expect.as_deref(), global)
        }
        Verb::Copy {
            from,
            to,
            prefix,
            without_history,
            include_claimed,
        } => {
            let mut options = CopyOptions::new().with_prefix(prefix.unwrap_or_default());
            if without_history {
                options = options.skip_history();
            }
            if include_claimed {
                options = options.include_claimed();
            }
            copy::run(&from, &to, options, global)
        }
        Verb::Forget {
            file,
            old,
            apply,
            expect,
        } => match forget_old::retention(&old) {
            Ok(Some(retention)) => forget_old::run(file.as_deref(), retention, apply, global),
            Ok(None) => forget::run(file.as_deref(), expect.as_deref(), apply, global),
            Err(failure) => Err(failure),
        },
        Verb::Prune {
            file,
            keep,
            older_than,
            within_bytes,
        } => {
            let mut limits = Keep::default();
            limits.count = match (keep, older_than, within_bytes) {
                (None, None, None) => Some(Keep::COUNT),
                (None, ..) => Some(usize::MAX),
                (keep, ..) => keep,
            };
            limits.age = older_than;
            limits.bytes = within_bytes;
            history::prune(file.as_deref(), &limits, global)
        }
        Verb::Claim {
            file,
            time_to_live,
            take_over,
            pid,
            renew,
            reset_attempts,
            export,
        } => {
            let how = claim::How {
                export,
                time_to_live,
                take_over,
                renew,
                reset_attempts,
                pid,
            };
            claim::run(file.as_deref(), &how, global)
        }
        Verb::Release { file } => claim::release(file.as_deref(), global),
        Verb::Init { write, hooks } => init::run(write, &hooks, global),
        Verb::Doctor { place, fix } => doctor::run(place.as_deref(), fix, global),
        Verb::Hook(called) => hook::run(&called, global),
        Verb::Once(once) => Ok(once::run(&once, global)),
        Verb::Ask(ask) => ask.run(global),
        Verb::Approve(decide) => decide.run(&ApprovalDecision::Approved, global),
        Verb::Deny { decide, because } => decide.run(&ApprovalDecision::Denied { because }, global),
        Verb::Approved(action) => approvals::approved(&action, global),
        Verb::Effects { file, settle } => effects::run(file.as_deref(), &settle, global),
        Verb::Prove(prove) => prove::run(&prove, global),
        Verb::Check { file, rerun } => prove::check(file.as_deref(), rerun, global),
        Verb::Config => Ok(config::run(global)),
        Verb::Completions { shell } => Ok(pages::completions(shell, global)),
        Verb::Man { out } => pages::manual(out.as_deref(), global),
        Verb::Guide { name } => guide::run(name.as_deref(), global),
        Verb::Schema {
            name,
            contract,
            out,
        } => schema::run(name.as_deref(), contract, out.as_deref(), global),
    };
    match outcome {
        Ok(mut outcome) => {
            outcome.is_done |= does_more_than_look;
            outcome
        }
        Err(failure) => failure.at(file.as_deref(), global.key.as_deref()).into(),
    }
}

/// The only place that a command line names, for errors that name none.
fn named_file<'v>(verb: &'v Verb, global: &'v Global) -> Option<&'v Path> {
    let file = match verb {
        Verb::Detect { files } | Verb::Validate { files } => match files.as_slice() {
            [file] => Some(file.as_path()),
            _ => None,
        },
        Verb::Set { words, .. } if global.store.is_none() => {
            return words.first().map(Path::new);
        }
        verb => verb.file(),
    };
    file.or(global.store.as_deref())
}

/// Whether a verb changes something when it succeeds. Reports and `start` set this themselves.
fn does_more_than_look(verb: &Verb, global: &Global) -> bool {
    match verb {
        Verb::Set { .. }
        | Verb::Restore { .. }
        | Verb::Recover { .. }
        | Verb::Archive { .. }
        | Verb::Prune { .. }
        | Verb::Copy { .. }
        | Verb::Release { .. } => true,
        Verb::Forget { apply, .. } => *apply,
        Verb::Init { write, .. } => *write,
        Verb::Doctor { fix, .. } => *fix,
        Verb::Claim {
            renew,
            reset_attempts,
            ..
        } => *renew || *reset_attempts || global.owner().is_some(),
        Verb::HtmlReport(how) => !stdin::is_named(&how.html),
        Verb::History { pin, unpin, .. } => pin.is_some() || unpin.is_some(),
        Verb::Convert { out, .. } | Verb::Schema { out, .. } | Verb::Man { out } => out.is_some(),
        _ => false,
    }
}
