//! `ckpt decide`: a decision that the next agent must respect.

use crate::address::Target;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::saved;

pub(super) fn run(text: &str, why: Option<&str>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_write(global)?;
    target.require_file()?;
    let now = super::now(global);
    let mut made = 0;
    let saved = target
        .checkpoints(global)
        .update(&target.key, |task| {
            task.decide(text, why.map(str::to_owned), now);
            made = task.decisions.len();
        })
        .map_err(|error| target.error(error))?;
    let line = match saved.outcome {
        agent_checkpoint::Outcome::Unchanged => format!("decided already: {text}"),
        _ => format!("decided: {text} (decision {made})"),
    };
    let mut outcome = Outcome::new();
    saved::report(&mut outcome, global, &saved, &line);
    Ok(outcome)
}
