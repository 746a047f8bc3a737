//! The inputs that the command takes for an agent's session, and the verb `reassign`.

use super::{AgentCheckpoint, TakeOver, Worked, take_over};
use crate::checkpoint::{Checkpoint, Error, Given, Input, InputKind, Inputs, Result, Start};
use crate::formats::{OwnVerb, VerbCall, VerbDone};

pub(super) const INPUTS: &[Input] = &[
    Input::new("task", InputKind::Text, "The feature", &["start"]),
    Input::new(
        "worked",
        InputKind::Time,
        "How long the agent worked on the task, such as `20m`: after little work the task is restarted",
        &["resume"],
    ),
];

pub(super) fn start(start: &Start<'_>) -> Result<AgentCheckpoint> {
    let key = start.key_is_named.then_some(start.key.as_str());
    let [agent, session, feature] = start.needs(
        AgentCheckpoint::FORMAT,
        [
            (start.agent.or(key), "the agent's id (--agent)"),
            (start.session, "a session (--session)"),
            (start.given.text("task"), "a feature (--task)"),
        ],
    )?;
    let (plan, now) = (start.plan, start.now);
    Ok(AgentCheckpoint::begin(agent, session, feature, plan, now))
}

pub(super) fn take(given: &Given) -> Inputs {
    let worked = given.time("worked").map(|time| Inputs::of(Worked(time)));
    worked.unwrap_or_default()
}

/// A checkpoint belongs to one agent, so another agent takes over with a verb of the format.
pub(crate) const VERBS: &[OwnVerb] = &[OwnVerb::new(
    "reassign",
    "",
    &[
        Input::new(
            "because",
            InputKind::Text,
            "Why, in the new agent's checkpoint",
            &[],
        ),
        Input::new(
            "beside",
            InputKind::Flag,
            "Leave the old agent's file in place; else it is archived as crashed",
            &[],
        ),
    ],
    reassign,
)];

fn reassign(call: &VerbCall<'_>) -> Result<VerbDone> {
    let wrong = |message: &str| Error::wrong_input(message).with_path(call.file.path);
    let new = call
        .given
        .text("to")
        .ok_or_else(|| wrong("who takes over? name the agent with --to"))?;
    let session = call
        .session
        .ok_or_else(|| wrong("taking over needs a fresh session; name it with --session"))?;
    let files = call.files.ok_or_else(|| {
        wrong(
            "a take-over makes a file for the new agent, and so needs a store of files; archive this checkpoint as \
             crashed, and start one for the new agent",
        )
    })?;
    let because = call.given.text("because").map(str::to_owned);
    let because = because.unwrap_or_else(|| format!("Taken over from {}", call.key));
    let mut by = TakeOver::new(new, session, because).fenced(call.fence);
    if call.given.has("beside") {
        by = by.beside();
    }
    let taken = take_over(files, call.key, &by, call.now)?;
    let what = match &taken.archive {
        Some(archive) => format!("its checkpoint was archived as {}", archive.display()),
        None => format!("its checkpoint stays in {}", call.file.path.display()),
    };
    let who = taken.checkpoint.previous_agent.as_deref();
    let who = who.unwrap_or(call.key.as_str());
    let done = VerbDone::new(format!("{new} takes over from {who}; {what}"), taken.saved);
    #[cfg(feature = "template")]
    let done = {
        let old = taken.archive.as_deref().unwrap_or(call.file.path);
        let old = old.display().to_string();
        let note = super::messages::handoff_note(&taken.before, Some(&old));
        done.with_note(format!("give the new agent this:\n{}", note.trim_end()))
    };
    Ok(done)
}
