//! What each verb does.

mod convert;
mod detect;
mod operate;
mod resume;
mod revision;
mod schema;
mod set;
mod show;
mod stale;
mod start;
mod validate;

use chrono::{DateTime, Utc};

use crate::args::{Args, Global, Verb};
use crate::failure::Failure;
use crate::output::Outcome;

/// Does what the command line says.
pub(crate) fn run(args: Args) -> Outcome {
    let global = &args.global;
    let outcome: Result<Outcome, Failure> = match args.verb {
        Verb::Detect { files } => detect::run(&files, global),
        Verb::Validate { files, known } => validate::run(&files, &known, global),
        Verb::Show { file } => show::run(file.as_deref(), global),
        Verb::Set { words, expect } => set::run(&words, expect.as_deref(), global),
        Verb::Revision { file } => revision::run(file.as_deref(), global),
        Verb::Stale { file } => stale::run(file.as_deref(), global),
        Verb::Resume {
            file,
            template,
            budget_tokens,
            description,
            header,
            known,
        } => {
            let how = resume::How {
                template: template.as_deref(),
                budget_tokens,
                description: description.as_deref(),
                header,
                known: &known,
            };
            resume::run(file.as_deref(), &how, global)
        }
        Verb::Start {
            plan,
            task,
            title,
            spec,
        } => {
            let what = start::What {
                plan: &plan,
                task: task.as_deref(),
                title: title.as_deref(),
                spec: spec.as_deref(),
            };
            start::run(&what, global)
        }
        Verb::Report(report) => operate::run(report, global),
        Verb::Batch { state } => operate::batch(state.as_deref(), global),
        Verb::Convert { file, to, out } => {
            convert::run(file.as_deref(), &to, out.as_deref(), global)
        }
        Verb::Schema {
            name,
            contract,
            out,
        } => schema::run(name.as_deref(), contract, out.as_deref(), global),
    };
    outcome.unwrap_or_else(Outcome::from)
}

/// The present, or what `--now` says it is.
pub(crate) fn now(global: &Global) -> DateTime<Utc> {
    global.now.unwrap_or_else(Utc::now)
}
