//! `ckpt stale`: whether the files that a checkpoint names have changed.

use std::path::Path;

use agent_checkpoint::staleness::{Reason, Staleness, TrackedFile};
use comfy_table::Cell;
use serde::Serialize;

use crate::address::Target;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, harmless};
use crate::report::{Style, lines};

#[derive(Serialize)]
struct Report<'s> {
    file: String,
    root: String,
    verdict: &'s str,
    files: &'s [TrackedFile],
    untracked: &'s [String],
    reasons: &'s [Reason],
}

pub(super) fn run(file: Option<&Path>, global: &Global) -> Result<Outcome, Failure> {
    let target = Target::to_read(file, global)?;
    let staleness = target
        .any_checkpoints(global)
        .stale(&target.key, &global.root)
        .map_err(|error| target.error(error))?;
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&Report {
            file: target.path.display().to_string(),
            root: global.root.display().to_string(),
            verdict: staleness.as_str(),
            files: staleness.files(),
            untracked: &staleness.judged().untracked,
            reasons: staleness.reasons(),
        });
    } else {
        print(&staleness, global, &mut outcome);
        say_how_to_restore(&staleness, &target, &mut outcome);
    }
    outcome.exit = Exit::findings_if(!matches!(staleness, Staleness::Fresh(_)));
    Ok(outcome)
}

fn print(staleness: &Staleness, global: &Global, outcome: &mut Outcome) {
    let files = staleness.files();
    if files.is_empty() {
        outcome.line("the checkpoint names no files");
    } else {
        let style = Style::of_output();
        let mut table = style.table(&["file", "state", ""]);
        for file in files {
            let is_well = file.state.is_same();
            table.add_row([
                Cell::new(harmless(&file.path)),
                style.verdict(file.state.as_str(), is_well),
                Cell::new(harmless(&detail(file))),
            ]);
        }
        for line in lines(&table) {
            outcome.styled(&line);
        }
    }
    for path in &staleness.judged().untracked {
        outcome.note(format!(
            "{path} is not tracked: it is the checkpoint itself, or not a source file of the project"
        ));
    }
    for reason in staleness.reasons() {
        outcome.note(match reason {
            Reason::NothingThere => format!("{reason}, named with --root (now {})", root(global)),
            reason => reason.to_string(),
        });
    }
    outcome.line(staleness.as_str());
}

/// Explains how to restore the later state of a checkpoint that was rolled back.
pub(super) fn say_how_to_restore(staleness: &Staleness, target: &Target, outcome: &mut Outcome) {
    let later = staleness.reasons().iter().find_map(|reason| match reason {
        Reason::RolledBack { later, .. } => later.as_ref(),
        _ => None,
    });
    if let Some(entry) = later {
        outcome.note(format!(
            "restore the later state with: ckpt restore {} --entry {entry}",
            target.words()
        ));
    }
}

fn root(global: &Global) -> String {
    let root = std::path::absolute(&global.root);
    let root = root.or_else(|_| std::env::current_dir());
    root.map_or_else(|_| ".".to_owned(), |root| root.display().to_string())
}

/// A detail of the file's state: the time of the change, or the reason.
fn detail(file: &TrackedFile) -> String {
    let state = serde_json::to_value(&file.state).unwrap_or_default();
    let text = ["modified", "reason", "by"]
        .iter()
        .find_map(|member| state.get(member)?.as_str());
    text.unwrap_or_default().to_owned()
}
