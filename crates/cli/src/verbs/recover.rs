//! `ckpt recover`: go on from a checkpoint that cannot be read.

use std::path::Path;

use agent_checkpoint::difference::Difference;
use agent_checkpoint::json::Corrupt;
use agent_checkpoint::{EntryId, Error, ErrorKind, RecoverOptions, Recovered, Recovery, Revision};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::address::Target;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct Report<'r> {
    file: String,
    damage: Option<&'r Corrupt>,
    with: Recovery,
    entry: Option<&'r EntryId>,
    /// When that state was written.
    written: Option<String>,
    /// Whether what was reported after it is not in it.
    may_lack: bool,
    passed_over: &'r [EntryId],
    revision: Option<&'r Revision>,
    put_aside: Option<&'r str>,
    /// What the damaged text tells that is not there now.
    lost: Option<&'r Difference>,
}

pub(super) fn run(
    file: Option<&Path>,
    with: Recovery,
    global: &Global,
) -> Result<Outcome, Failure> {
    let target = Target::to_change(file, global)?;
    let options = RecoverOptions::with(with).fenced(global.fence);
    let recovered = target.store().recover(&target.key, &options);
    let recovered = recovered.map_err(|error| with_advice(error, &target))?;
    let lost = lost(&target, &recovered);
    let mut outcome = Outcome::new();
    let written = recovered.written.map(DateTime::<Utc>::from);
    let written = written.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
    let has_lost = lost.as_ref().is_some_and(|lost| !lost.is_empty());
    if has_lost || recovered.may_lack || !recovered.passed_over.is_empty() {
        outcome.found();
    }
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            damage: recovered.damage.as_ref(),
            with,
            entry: recovered.entry.as_ref(),
            written,
            may_lack: recovered.may_lack,
            passed_over: &recovered.passed_over,
            revision: recovered.saved.as_ref().map(|saved| &saved.revision),
            put_aside: recovered.put_aside.as_deref(),
            lost: lost.as_ref(),
        });
        return Ok(outcome);
    }
    outcome.line(told(&recovered));
    if recovered.may_lack {
        let of = written.map_or_else(String::new, |time| format!(", of {time}"));
        outcome.warn(match recovered.damage {
            Some(_) => format!(
                "it is the newest state before the damage{of}; what was reported after it is not in it: compare \
                 the work with it before going on"
            ),
            None => format!(
                "it is the newest state of the history{of}; if anything was reported after it, that is not in it: \
                 compare the work with it before going on"
            ),
        });
    }
    for entry in &recovered.passed_over {
        outcome.warn(format!("{entry} is newer and cannot be read either"));
    }
    if let Some(aside) = &recovered.put_aside {
        outcome.note(format!("the damaged text is in {aside}"));
    }
    if let Some(lost) = lost.filter(|lost| !lost.is_empty()) {
        outcome.warn(format!(
            "the damaged text has what is not there now:\n{lost}"
        ));
    }
    Ok(outcome)
}

/// An error with what else a user can do: states that no recovery takes are still in the history.
fn with_advice(error: Error, target: &Target) -> Failure {
    let is_hopeless = matches!(error.kind(), ErrorKind::NotRecoverable { .. });
    let mut failure = target.error(error);
    let entries = target.store().history(&target.key).unwrap_or_default();
    let has_states = entries.iter().any(|entry| !entry.is_current());
    if is_hopeless && has_states {
        failure.message.push_str(
            "; `ckpt history` lists the states, and `ckpt restore --entry ENTRY` brings one back, of a damaged \
             file after `ckpt recover --fresh`",
        );
    }
    failure
}

fn told(recovered: &Recovered) -> String {
    match (&recovered.damage, &recovered.saved, &recovered.entry) {
        (None, None, _) => "nothing is wrong with it; nothing was changed".to_owned(),
        (_, Some(_), Some(entry)) => format!("went on with {entry}"),
        (_, Some(_), None) => "went on with the good part of the damaged text".to_owned(),
        (_, None, _) => "nothing is there any more; the next save begins anew".to_owned(),
    }
}

/// What the damaged text tells that is not there now.
fn lost(target: &Target, recovered: &Recovered) -> Option<Difference> {
    let now = recovered.document.as_ref()?;
    let damaged = recovered.salvaged.as_ref()?;
    Difference::in_format(&target.format, now, damaged).ok()
}
