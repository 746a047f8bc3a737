//! `ckpt reassign` where a checkpoint belongs to its agent: another takes over from one that crashed.

use agent_checkpoint::formats::agent_session::messages;
use agent_checkpoint::formats::agent_session::{TakeOver, take_over};

use super::now;
use crate::address::Target;
use crate::args::{Global, To};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::saved;

pub(super) fn run(to: &To, target: &Target, global: &Global) -> Result<Outcome, Failure> {
    target.require_file()?;
    let place = target.path.display();
    let Some(session) = &global.session else {
        return Err(Failure::new(format!(
            "{place}: taking over needs a fresh session; name it with --session"
        )));
    };
    let Some(files) = target.files() else {
        return Err(Failure::new(format!("{place}: is no file of an agent")));
    };
    let because = to.because.clone();
    let because = because.unwrap_or_else(|| format!("Taken over from {}", target.key));
    let mut by = TakeOver::new(&to.to, session, because).fenced(global.fence);
    if to.beside {
        by = by.beside();
    }
    let mut taken =
        take_over(files, &target.key, &by, now(global)).map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    let old = taken.archive.as_deref().unwrap_or(&target.path);
    let what = match &taken.archive {
        Some(archive) => format!("its checkpoint was put aside as {}", archive.display()),
        None => format!("its checkpoint stays in {place}"),
    };
    let who = taken.checkpoint.previous_agent.as_deref();
    let line = format!(
        "{} takes over from {}; {what}",
        to.to,
        who.unwrap_or(target.key.as_str())
    );
    if !global.json {
        // The line has it.
        taken.saved.archive = None;
    }
    saved::report(&mut outcome, target, global, &taken.saved, &[line]);
    let words = messages::handoff_note_from(&taken.before, &old.display().to_string());
    outcome.note(format!("give the new agent this:\n{}", words.trim_end()));
    Ok(outcome)
}
