//! `ckpt claim` and `ckpt release`: who may write.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::agent_session::same_agent;
use agent_checkpoint::store::Stored;
use agent_checkpoint::{Claim, ClaimRequest, Error, Fence, ProcessId, RuleContext};
use serde::Serialize;

use super::effects;
use crate::address::Target;
use crate::backend::{is_address, shown as shown_place};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::{Global, Origin, variable};
use crate::named::shell_word;
use crate::output::{Outcome, harmless, stamp};
use crate::settings::environment;

/// How a task is claimed.
pub(super) struct How {
    pub(super) time_to_live: Duration,
    pub(super) take_over: bool,
    pub(super) renew: bool,
    pub(super) reset_attempts: bool,
    pub(super) pid: Option<u32>,
    /// Whether a shell evaluates the output.
    pub(super) export: bool,
}

#[derive(Serialize)]
struct Report<'c> {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<String>,
    /// Absent if the task never had a claim.
    claim: Option<&'c Claim>,
    /// Whether it is valid now and so keeps others out.
    stands: bool,
}

pub(super) fn run(file: Option<&Path>, how: &How, global: &Global) -> Result<Outcome, Failure> {
    if !how.export {
        return claim(file, how, global);
    }
    Ok(claim(file, how, global).unwrap_or_else(|failure| Outcome::from(failure).for_a_shell(true)))
}

fn claim(file: Option<&Path>, how: &How, global: &Global) -> Result<Outcome, Failure> {
    refuse_halves(how, global)?;
    let target = match global.owner() {
        Some(_) => Target::to_claim(file, global)?,
        None => Target::to_change(file, global)?,
    };
    let store = target.store();
    let before = store.claimed(&target.key).ok().flatten();
    // A renewal needs the claim of this very fence. For any other fence the store reports who holds the task.
    let renewed = before
        .as_ref()
        .filter(|before| how.renew && global.fence == Some(before.fence));
    if let Some(agent) = &global.agent
        && let Some(of) = renewed.and_then(|claim| claim.agent.as_ref())
        && !same_agent(of, agent)
    {
        return Err(Failure::exiting(
            Exit::Refused,
            format!(
                "the claim belongs to {of}, so {agent} cannot renew it; `ckpt claim --agent {agent}` asks for one"
            ),
        ));
    }
    let last = before.clone();
    let before = before.filter(|before| before.stands(global.now()));
    let claim = match (global.owner(), global.fence) {
        (_, Some(fence)) if how.renew => Some(store.renew(&target.key, fence, how.time_to_live)),
        (Some(owner), _) => {
            let mut request = ClaimRequest::new(owner, how.time_to_live);
            request.take_over = how.take_over;
            request.agent.clone_from(&global.agent);
            // Not the process of this command, which ends as soon as it has printed the fence.
            if let Some(pid) = how.pid {
                request.process = Some(ProcessId::of(pid).ok_or_else(|| no_process(pid))?);
            }
            Some(store.claim(&target.key, &request))
        }
        (None, _) if how.take_over => {
            return Err(Failure::new(
                "who takes it over? Name the owner with --agent",
            ));
        }
        (None, _) => None,
    };
    let claim = match claim {
        Some(claim) => Some(claim.map_err(|error| target.error(error))?),
        None => {
            let claimed = store.claimed(&target.key);
            let claimed = claimed.map_err(|error| target.error(error))?;
            let reset = reset(&target, how, global.fence, global)?;
            let mut outcome = tell(
                &target,
                claimed.as_ref(),
                global,
                shown(claimed.as_ref(), global),
            );
            reset.into_iter().for_each(|note| outcome.note(note));
            return Ok(outcome);
        }
    };
    let line = claim.as_ref().map(|claim| match how.export {
        true => exports(file, claim.fence, global),
        false => claim.fence.to_string(),
    });
    let mut outcome = tell(&target, claim.as_ref(), global, line.unwrap_or_default());
    if let Some(claim) = &claim {
        let is_again = before.is_some_and(|before| before.fence == claim.fence);
        outcome.note(format!(
            "{} {} until {}{}",
            if is_again {
                "already claimed by"
            } else {
                "claimed for"
            },
            claim.owner,
            stamp(claim.expires),
            match how.export {
                true => "",
                false => "; pass the fence with --fence in every change",
            }
        ));
        let there = store.load(&target.key);
        if let Ok(None) = &there {
            outcome.note("there is no checkpoint under this key yet");
        }
        if how.reset_attempts {
            match reset(&target, how, Some(claim.fence), global) {
                Ok(reset) => reset.into_iter().for_each(|note| outcome.note(note)),
                // The claim is already made and printed.
                Err(failure) => outcome.fail(&failure),
            }
        } else if let Ok(Some(there)) = &there
            && let Err(error) = count(&target, last.as_ref(), claim, there, global)
        {
            let why = target.error(error).message;
            outcome.note(format!("{why}; the previous attempt is not counted"));
        }
        if let Some(now_for) = there
            .ok()
            .flatten()
            .and_then(|there| there.context.place_is_for)
        {
            outcome.note(format!(
                "the checkpoint here does not belong to {now_for}; archive it with `ckpt archive`"
            ));
        }
        if let Ok(state) = target.ledger(global).state()
            && let Some((_, message)) = effects::standing(&state, &target, global)
        {
            outcome.note(message);
        }
    }
    Ok(outcome)
}

/// Counts the attempt that ended before this claim, if the checkpoint can be read.
fn count(
    target: &Target,
    last: Option<&Claim>,
    claim: &Claim,
    there: &Stored,
    global: &Global,
) -> Result<(), Error> {
    if last.is_none_or(|last| last.released || last.fence == claim.fence) {
        return Ok(());
    }
    let context = RuleContext::none().with_now(global.now());
    let Ok(inspected) = target.format.inspect(&there.document, &context) else {
        return Ok(());
    };
    let ledger = target.ledger(global);
    ledger.count_take_over(last, claim, &inspected.handoff)?;
    Ok(())
}

/// Resets the count of attempts if requested, and reports the result.
fn reset(
    target: &Target,
    how: &How,
    fence: Option<Fence>,
    global: &Global,
) -> Result<Option<&'static str>, Failure> {
    if !how.reset_attempts {
        return Ok(None);
    }
    let ledger = target.ledger(global).fenced(fence);
    let was_counted = ledger.reset_attempts();
    Ok(Some(
        match was_counted.map_err(|error| target.error(error))? {
            true => "the attempts so far no longer count",
            false => "no attempts were counted",
        },
    ))
}

/// Fails if an option lacks another one that it needs.
fn refuse_halves(how: &How, global: &Global) -> Result<(), Failure> {
    let needs = [
        (how.renew && global.fence.is_none(), "renew", "fence"),
        (how.pid.is_some() && global.agent.is_none(), "pid", "agent"),
        (
            how.export && !how.renew && global.owner().is_none(),
            "export",
            "agent",
        ),
    ];
    match needs.into_iter().find(|(is_half, ..)| *is_half) {
        Some((_, option, needed)) => Err(Failure::usage(format!(
            "--{option} needs --{needed}, or {}; add it",
            variable(needed)
        ))),
        None => Ok(()),
    }
}

/// Lines for a shell. Its later commands then need none of the options given here.
fn exports(file: Option<&Path>, fence: Fence, global: &Global) -> String {
    let mut values = vec![("fence", fence.to_string())];
    let given = |name: &str| *global.origin(name) == Origin::Flag;
    // The fence belongs to one checkpoint, so the place of that is exported with it.
    if let Some(place) = file.or(global.store.as_deref()) {
        values.push(("store", absolute(place).display().to_string()));
        if global.key.is_none() && environment("key").is_some() {
            values.push(("key", String::new()));
        }
    }
    let texts = [
        ("key", &global.key),
        ("format", &global.format),
        ("agent", &global.agent),
        ("session", &global.session),
    ];
    for (name, value) in texts {
        if name != "key" && !given(name) {
            continue;
        }
        values.extend(value.clone().map(|value| (name, value)));
    }
    if given("root") {
        values.push(("root", absolute(&global.root).display().to_string()));
    }
    let lines = values.iter().map(|(name, value)| {
        let value = match value.as_str() {
            "" => String::new(),
            value => shell_word(value),
        };
        format!("export {}={value}", variable(name))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An address or a path in a form that is valid from every folder.
fn absolute(place: &Path) -> PathBuf {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let database = place.to_str().and_then(|text| text.strip_prefix("sqlite:"));
    match database {
        Some(path) => format!("sqlite:{}", whole(Path::new(path)).display()).into(),
        None if is_address(place) => shown_place(place),
        None => whole(place),
    }
}

fn no_process(pid: u32) -> Failure {
    Failure::new(format!(
        "--pid: there is no process {pid} here; name a running one, such as $$ in a script, or omit it"
    ))
}

pub(super) fn release(file: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let Some(fence) = global.fence else {
        return Err(Failure::new(
            "which claim? Show its fence with --fence, as `ckpt claim` printed it",
        ));
    };
    let target = Target::to_change(file, global)?;
    let claim = target.store().release(&target.key, fence);
    let claim = claim.map_err(|error| target.error(error))?;
    let line = format!(
        "released; {} no longer holds the claim",
        harmless(&claim.owner)
    );
    Ok(tell(&target, Some(&claim), global, line))
}

fn tell(target: &Target, claim: Option<&Claim>, global: &Global, line: String) -> Outcome {
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            slot: target.slot.as_ref().map(ToString::to_string),
            claim,
            stands: claim.is_some_and(|claim| claim.stands(global.now())),
        });
    } else if line.starts_with("export ") {
        // Unchanged, for the shell.
        outcome.styled(&line);
    } else {
        outcome.line(line);
    }
    outcome
}

/// The holder of the task, in words.
fn shown(claim: Option<&Claim>, global: &Global) -> String {
    let Some(claim) = claim else {
        return "not claimed; `ckpt claim --agent A` claims it".to_owned();
    };
    let (owner, fence) = (harmless(&claim.owner), claim.fence);
    if claim.stands(global.now()) {
        format!(
            "claimed by {owner} until {}, fence {fence}",
            stamp(claim.expires)
        )
    } else if claim.released {
        format!("free; last held by {owner}, who released it")
    } else {
        format!(
            "free; last held by {owner}, whose claim expired at {}",
            stamp(claim.expires)
        )
    }
}
