//! What each verb does.

mod decide;
mod detect;
mod resume;
mod revision;
mod set;
mod show;
mod stale;
mod start;
mod step;
mod validate;

use chrono::{DateTime, Utc};

use crate::args::{Args, Global, Verb};
use crate::failure::Failure;
use crate::output::Outcome;

/// Does what the command line says.
pub(crate) fn run(args: &Args) -> Outcome {
    let global = &args.global;
    let outcome: Result<Outcome, Failure> = match &args.verb {
        Verb::Detect { files } => detect::run(files, global),
        Verb::Validate { files } => validate::run(files, global),
        Verb::Show { file } => show::run(file.as_deref(), global),
        Verb::Set { words, expect } => set::run(words, expect.as_deref(), global),
        Verb::Revision { file } => revision::run(file.as_deref(), global),
        Verb::Stale { file } => stale::run(file.as_deref(), global),
        Verb::Resume {
            file,
            template,
            budget_tokens,
            description,
            header,
        } => {
            let how = resume::How {
                template: template.as_deref(),
                budget_tokens: *budget_tokens,
                description: description.as_deref(),
                header: *header,
            };
            resume::run(file.as_deref(), &how, global)
        }
        Verb::Start { plan } => start::run(plan, global),
        Verb::Step(step) => step::run(step, global),
        Verb::Decide { text, why } => decide::run(text, why.as_deref(), global),
    };
    outcome.unwrap_or_else(Outcome::from)
}

/// The present, or what `--now` says it is.
pub(crate) fn now(global: &Global) -> DateTime<Utc> {
    global.now.unwrap_or_else(Utc::now)
}
