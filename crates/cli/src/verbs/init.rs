//! `ckpt init`: a project's settings, and the instructions for its agents.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use agent_checkpoint::fleet::{Fleet, Row, RowState, Source};
use agent_checkpoint::formats::Format;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::{Document, EditError};
use agent_checkpoint::store::{create_file, read_file};
use serde::Serialize;
use serde_json::{Value, json};

use super::resume::REPORTS;
use super::scan;
use crate::args::Agent;
use crate::backend::{is_address, shown};
use crate::config_file::{self, ConfigFile};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::{is_folder, shell_word};
use crate::output::{Outcome, harmless, one_line};
use crate::replace::replace;
use crate::report::count;

/// The folder for checkpoints in a project that has none yet.
const USUAL_STORE: &str = "checkpoints";

/// What git must ignore of a store in a folder that existed before it. Folders that a store creates ignore it
/// themselves.
const IGNORED: &str = ".agent-checkpoint-*.tmp";

/// The first and last line of our block in a file of the project.
const BLOCK_BEGIN: &str = "<!-- ckpt: begin -->";
const BLOCK_END: &str = "<!-- ckpt: end -->";

/// What `init --json` prints.
#[derive(Serialize)]
struct Report {
    found: Vec<Found>,
    files: Vec<Change>,
    written: bool,
}

/// An existing checkpoint.
#[derive(Serialize)]
struct Found {
    place: String,
    format: Option<&'static str>,
    /// Its problem in words; `null` if it has none.
    problem: Option<String>,
}

/// A change of a file.
#[derive(Serialize)]
struct Change {
    file: PathBuf,
    action: Action,
    /// The text to add.
    text: String,
    /// The whole new file; `None` if `text` is appended.
    #[serde(skip)]
    whole: Option<String>,
    /// The whole old file; `None` if the change does not depend on it.
    #[serde(skip)]
    before: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Make,
    Append,
    Merge,
    /// The file needs no change.
    Keep,
}

pub(super) fn run(write: bool, hooks: &[Agent], global: &Global) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::new();
    let fleet = Fleet::scan(
        &[Source::folder(".")],
        &scan::options(global)?,
        global.now(),
    );
    let rows: Vec<&Row> = fleet.rows().iter().filter(|row| is_there(row)).collect();
    scan::tell_skipped(&fleet, &mut outcome);
    let found: Vec<Found> = rows.iter().map(|row| found(row, &mut outcome)).collect();
    let store = match &global.store {
        Some(store) => store.clone(),
        None => only_store(&rows)?,
    };
    // A clone of the repository has it at another path.
    let within = within_repository(&store);
    let store = within.clone().unwrap_or(store);
    let format = format_in(&store, &rows, global)?;
    let mut changes = vec![
        settings(within.as_deref(), &format, &mut outcome)?,
        ignored()?,
    ];
    let block = block(&store, within.is_some(), &format, global);
    changes.push(instructions("AGENTS.md", &block)?);
    changes.push(match is_same_file("AGENTS.md", "CLAUDE.md") {
        true => keep(Path::new("CLAUDE.md")),
        false => instructions("CLAUDE.md", &block)?,
    });
    for (at, agent) in hooks.iter().enumerate() {
        if !hooks[..at].contains(agent) {
            changes.push(hooks_of(*agent)?);
        }
    }
    let mut failed = None;
    if write {
        for (at, change) in changes.iter_mut().enumerate() {
            if let Err(failure) = apply(change) {
                failed = Some((at, failure));
                break;
            }
        }
    }
    // Files that were written before the failure are still reported.
    let failed = match failed {
        Some((0, failure)) => return Err(failure),
        Some((at, failure)) => {
            changes.truncate(at);
            Some(failure)
        }
        None => None,
    };
    let report = Report {
        found,
        files: changes,
        written: write,
    };
    match global.json {
        true => outcome.json(&report),
        false => print(&report, &mut outcome),
    }
    if let Some(failure) = failed {
        outcome.fail(&failure);
    }
    Ok(outcome)
}

fn is_there(row: &Row) -> bool {
    matches!(
        row.state,
        RowState::Checkpoint { .. }
            | RowState::Corrupt { .. }
            | RowState::Unreadable { .. }
            | RowState::TakenOver { .. }
    )
}

fn found(row: &Row, outcome: &mut Outcome) -> Found {
    let problem = match &row.state {
        RowState::Corrupt { reason } => {
            outcome.exit = outcome.exit.and(Exit::Corrupt);
            Some(format!("corrupt: {reason}"))
        }
        RowState::Unreadable { reason } => {
            outcome.exit = outcome.exit.and(Exit::Failed);
            Some(reason.clone())
        }
        _ if row.violations > 0 => {
            outcome.found();
            Some(count(row.violations, "violation"))
        }
        _ => None,
    };
    Found {
        place: relative(&row.place.to_string()).to_owned(),
        format: row.format,
        problem,
    }
}

/// A path inside the current folder, without a leading `./`.
fn relative(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// The only place with checkpoints: a folder or a host file.
fn only_store(rows: &[&Row]) -> Result<PathBuf, Failure> {
    let mut stores: Vec<(PathBuf, usize)> = Vec::new();
    for row in rows {
        let Some(place) = store_of(row) else { continue };
        match stores.iter_mut().find(|(known, _)| *known == place) {
            Some((_, times)) => *times += 1,
            None => stores.push((place, 1)),
        }
    }
    match stores.as_slice() {
        [] => Ok(USUAL_STORE.into()),
        [(store, _)] => Ok(store.clone()),
        several => {
            let words = several.iter().map(|(store, times)| {
                format!("{} ({})", store.display(), count(*times, "checkpoint"))
            });
            let words: Vec<String> = words.collect();
            Err(Failure::usage(format!(
                "checkpoints are in several places: {}; name the store of the project with --store",
                words.join(", ")
            )))
        }
    }
}

fn store_of(row: &Row) -> Option<PathBuf> {
    let file = row.place.file.as_deref()?;
    let place = match row.place.slot {
        Some(_) => file,
        None => file.parent()?,
    };
    let place = place.strip_prefix(".").unwrap_or(place);
    Some(match place.as_os_str().is_empty() {
        true => ".".into(),
        false => place.to_path_buf(),
    })
}

/// The format of new checkpoints: the named one, else the one that all existing checkpoints have.
fn format_in(store: &Path, rows: &[&Row], global: &Global) -> Result<Format, Failure> {
    if let Some(name) = &global.format {
        return Ok(*global.formats.get(name)?);
    }
    let there = rows
        .iter()
        .filter(|row| store_of(row).as_deref() == Some(store));
    let mut names: Vec<&str> = there.filter_map(|row| row.format).collect();
    names.sort_unstable();
    names.dedup();
    Ok(match names.as_slice() {
        [name] => *global.formats.get(name)?,
        _ => Format::of::<TaskCheckpoint>(),
    })
}

/// A store in the form that the `ckpt.toml` of the current folder may name, relative to it; `None` if it is on a
/// server, or outside of the repository (or the folder, if there is no repository).
fn within_repository(store: &Path) -> Option<PathBuf> {
    let text = store.to_str()?;
    let (scheme, path) = match text.strip_prefix("sqlite:") {
        Some(path) => ("sqlite:", Path::new(path)),
        None if is_address(store) => return None,
        None => ("", store),
    };
    let here = Path::new(".").canonicalize().ok()?;
    let real = real(&here.join(path))?;
    let above = here.ancestors().position(|above| real.starts_with(above))?;
    let common = here.ancestors().nth(above)?;
    if above > 0 {
        let is_top = |folder: &&Path| fs::symlink_metadata(folder.join(".git")).is_ok();
        let top = here.ancestors().find(is_top)?;
        if !common.starts_with(top) {
            return None;
        }
    }
    let within = match path.is_relative() {
        true => path.to_path_buf(),
        false => {
            let mut within: PathBuf = std::iter::repeat_n("..", above).collect();
            within.push(real.strip_prefix(common).ok()?);
            within
        }
    };
    let within = match within.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => within,
    };
    Some(format!("{scheme}{}", within.display()).into())
}

/// A path with links resolved, whose last parts need not exist, as when `ckpt.toml` is read; `None` if it cannot be
/// determined.
fn real(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Some(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_link = fs::symlink_metadata(path).is_ok();
            let (above, name) = (path.parent()?, path.file_name()?);
            (!is_link)
                .then(|| real(above))?
                .map(|above| above.join(name))
        }
        Err(_) => None,
    }
}

/// The `ckpt.toml` of the project.
fn settings(
    store: Option<&Path>,
    format: &Format,
    outcome: &mut Outcome,
) -> Result<Change, Failure> {
    let path = Path::new(config_file::NAME);
    if read(path)?.is_some() {
        return Ok(keep(path));
    }
    if ConfigFile::find()?.is_some() {
        outcome.note("the ckpt.toml of a folder above counts here; `ckpt config` names it");
        return Ok(keep(path));
    }
    let mut text =
        "# The settings of `ckpt` in this project; `ckpt config` prints all of them.\n".to_owned();
    match store {
        Some(store) => {
            let store = store.to_string_lossy().replace('\\', "/");
            text.push_str(&format!("store = {}\n", json!(store)));
        }
        None => text.push_str(
            "# The store is that of CKPT_STORE: this file names none on a server or outside of the repository.\n",
        ),
    }
    let is_usual = format.name() == Format::of::<TaskCheckpoint>().name();
    if !is_usual && !format.is_host() {
        text.push_str(&format!("format = {}\n", json!(format.name())));
    }
    text.push_str("root = \".\"\n");
    Ok(Change {
        file: path.to_path_buf(),
        action: Action::Make,
        text: text.clone(),
        whole: Some(text),
        before: None,
    })
}

/// The change of `.gitignore`.
fn ignored() -> Result<Change, Failure> {
    let path = Path::new(".gitignore");
    let present = read(path)?;
    let has_it = present
        .as_deref()
        .is_some_and(|text| text.lines().any(|line| line.trim() == IGNORED));
    Ok(match has_it {
        true => keep(path),
        false => added(path, present.as_deref(), &format!("{IGNORED}\n")),
    })
}

/// Whether two names lead to one file, even if it does not exist yet.
fn is_same_file(one: &str, other: &str) -> bool {
    let (one_real, other_real) = (
        Path::new(one).canonicalize(),
        Path::new(other).canonicalize(),
    );
    if let (Ok(one), Ok(other)) = (&one_real, &other_real) {
        return one == other;
    }
    let leads = |from: &str, to: &str| {
        fs::read_link(from).is_ok_and(|at| at.to_str().map(relative) == Some(to))
    };
    leads(one, other) || leads(other, one)
}

fn has_block(text: &str) -> bool {
    let after = text.split_once(BLOCK_BEGIN).map(|(_, after)| after);
    after.is_some_and(|after| after.contains(BLOCK_END))
}

/// The change of a file that agents read: our block.
fn instructions(name: &str, block: &str) -> Result<Change, Failure> {
    let path = Path::new(name);
    let present = read(path)?;
    // Claude Code includes the file that such a line names.
    let has_it =
        |text: &str| has_block(text) || (name == "CLAUDE.md" && text.contains("@AGENTS.md"));
    Ok(match present.as_deref() {
        Some(text) if has_it(text) => keep(path),
        Some("") => added(path, Some(""), block),
        Some(text) => added(path, Some(text), &format!("\n{block}")),
        None => added(path, None, block),
    })
}

fn block(store: &Path, is_within: bool, format: &Format, global: &Global) -> String {
    let operations = format.operations();
    let has_keys = is_address(store) || is_folder(store, global);
    let key = if has_keys { " --key TASK" } else { "" };
    let is_on_server = is_address(store) && !store.to_string_lossy().starts_with("sqlite:");
    let place = match is_within || is_on_server {
        true => shell_word(&shown(store).display().to_string()),
        // It has another path on another machine.
        false => "$CKPT_STORE".to_owned(),
    };
    let mut lines = vec![
        BLOCK_BEGIN.to_owned(),
        "## Checkpoints".to_owned(),
        String::new(),
        format!(
            "Record your work with `ckpt` as you do it, so that another agent can continue where you stop. The \
             checkpoints are in `{place}`. Run these in the project; each is one save:"
        ),
        String::new(),
        format!(
            "- `ckpt resume{key}`: is there one to continue? If not, `ckpt start{key} --agent YOU --plan 'STEP' 'STEP'`"
        ),
    ];
    let reports = REPORTS.iter().filter(|(name, _)| operations.contains(name));
    lines.extend(reports.map(|(name, what)| format!("- `ckpt {name}{what}{key} --agent YOU`")));
    lines.push(format!(
        "- `ckpt guide {}`: all there is to record, and when",
        format.name()
    ));
    lines.push(BLOCK_END.to_owned());
    lines.join("\n") + "\n"
}

/// The events for an agent's hooks, each with the tools that it matches.
fn events(
    agent: Agent,
) -> (
    &'static str,
    &'static [(&'static str, Option<&'static str>)],
) {
    match agent {
        Agent::Claude => (
            ".claude/settings.json",
            &[
                ("SessionStart", None),
                ("PostToolUse", Some("Write|Edit|MultiEdit|NotebookEdit")),
                ("PreCompact", None),
                ("Stop", None),
                ("SessionEnd", None),
            ],
        ),
        Agent::Codex => (
            ".codex/hooks.json",
            &[
                ("SessionStart", None),
                ("PostToolUse", Some("apply_patch")),
                ("PreCompact", None),
                ("Stop", None),
            ],
        ),
        Agent::Gemini => (
            ".gemini/settings.json",
            &[
                ("SessionStart", None),
                ("AfterTool", Some("write_file|replace")),
                ("PreCompress", None),
                ("AfterAgent", None),
                ("SessionEnd", None),
            ],
        ),
    }
}

/// The hooks in an agent's settings file, whose other bytes stay the same.
fn hooks_of(agent: Agent) -> Result<Change, Failure> {
    let (name, events) = events(agent);
    let path = Path::new(name);
    let present = read(path)?;
    let wrong = |why: String| {
        let message = format!("{name}: {why}; correct it, then run this again");
        Failure::new(message).at(Some(path), None)
    };
    let text = present.as_deref().unwrap_or(NO_SETTINGS);
    let before: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let parse =
        |text: &str| Document::from_text(text).map_err(|corrupt| wrong(corrupt.to_string()));
    let (mut whole, mut added) = (parse(text)?, parse(NO_SETTINGS)?);
    for (event, tools) in events {
        let command = format!("ckpt hook {event}");
        if has_hook(&before["hooks"][event], &command) {
            continue;
        }
        let group = Group {
            matcher: *tools,
            hooks: [Hook {
                kind: "command",
                command,
            }],
        };
        for document in [&mut whole, &mut added] {
            add(document, event, &group).map_err(|error| wrong(error.to_string()))?;
        }
    }
    if added.text() == NO_SETTINGS {
        return Ok(keep(path));
    }
    Ok(Change {
        file: path.to_path_buf(),
        action: if present.is_some() {
            Action::Merge
        } else {
            Action::Make
        },
        text: added.into_text(),
        whole: Some(whole.into_text()),
        before: present,
    })
}

/// Empty settings of an agent.
const NO_SETTINGS: &str = "{}\n";

/// A group of hooks, in the form that all three agents use.
#[derive(Serialize)]
struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'static str>,
    hooks: [Hook; 1],
}

#[derive(Serialize)]
struct Hook {
    #[serde(rename = "type")]
    kind: &'static str,
    command: String,
}

/// Whether one of these groups runs a command.
fn has_hook(groups: &Value, command: &str) -> bool {
    let groups = groups.as_array().into_iter().flatten();
    let hooks = groups.filter_map(|group| group["hooks"].as_array());
    let mut commands = hooks.flatten().filter_map(|hook| hook["command"].as_str());
    commands.any(|own| own.contains(command))
}

fn add(document: &mut Document, event: &str, group: &Group) -> Result<(), EditError> {
    if document.get("/hooks").is_none() {
        document.set("/hooks", &json!({}))?;
    }
    let pointer = format!("/hooks/{event}");
    match document.get(&pointer) {
        None => document.set(&pointer, &[group])?,
        Some(_) => document.append(&pointer, group)?,
    };
    Ok(())
}

fn keep(path: &Path) -> Change {
    Change {
        file: path.to_path_buf(),
        action: Action::Keep,
        text: String::new(),
        whole: None,
        before: None,
    }
}

fn added_whole(path: &Path, text: String) -> Change {
    Change {
        file: path.to_path_buf(),
        action: Action::Make,
        whole: Some(text.clone()),
        before: None,
        text,
    }
}

/// The change that appends a text to a file, or creates it.
fn added(path: &Path, present: Option<&str>, text: &str) -> Change {
    let Some(present) = present else {
        return added_whole(path, text.to_owned());
    };
    let is_open = !present.is_empty() && !present.ends_with('\n');
    Change {
        file: path.to_path_buf(),
        action: Action::Append,
        text: format!("{}{text}", if is_open { "\n" } else { "" }),
        whole: None,
        before: None,
    }
}

/// The text of a file of the project; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let bytes = read_file(path, 1 << 20)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| Failure::new("is not UTF-8 text; save it as UTF-8").at(Some(path), None))
}

/// Applies a change, and never overwrites other changes of the file.
fn apply(change: &mut Change) -> Result<(), Failure> {
    let path = &change.file;
    let failed = |error: std::io::Error| {
        let message = format!(
            "{}: cannot be written: {error}; check the path and its rights",
            path.display()
        );
        Failure::new(message).at(Some(path), None)
    };
    match (change.action, &change.whole) {
        (Action::Make, Some(text)) => {
            if let Some(folder) = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
            {
                fs::create_dir_all(folder).map_err(failed)?;
            }
            create_file(path, text.as_bytes())?;
        }
        (Action::Merge, Some(text)) => {
            let before = change.before.as_deref().unwrap_or_default();
            if !replace(path, before, text).map_err(failed)? {
                let message = format!("{}: was changed meanwhile; run it again", path.display());
                return Err(Failure::new(message).at(Some(path), None));
            }
        }
        (Action::Append, _) => {
            if has_block(&change.text) && read(path)?.as_deref().is_some_and(has_block) {
                change.action = Action::Keep;
                return Ok(());
            }
            let mut file = fs::OpenOptions::new()
                .append(true)
                .open(path)
                .map_err(failed)?;
            file.write_all(change.text.as_bytes()).map_err(failed)?;
        }
        _ => {}
    }
    Ok(())
}

fn print(report: &Report, outcome: &mut Outcome) {
    for found in &report.found {
        let format = found.format.unwrap_or("unknown format");
        let problem = found
            .problem
            .as_ref()
            .map_or_else(String::new, |it| format!(": {it}"));
        outcome.line(one_line(&format!(
            "found: {} ({format}){problem}",
            found.place
        )));
    }
    let mut is_anything_left = false;
    for change in &report.files {
        let file = change.file.display();
        let what = match (change.action, report.written) {
            (Action::Keep, _) => "has what it needs",
            (Action::Make, true) => "was made",
            (Action::Make, false) => "would be made",
            (Action::Append, true) => "was added to, at its end",
            (Action::Append, false) => "would be added to, at its end",
            (Action::Merge, true) => "was added to",
            (Action::Merge, false) => "would be added to",
        };
        if change.action == Action::Keep {
            outcome.line(format!("{file}: {what}"));
            continue;
        }
        is_anything_left = true;
        outcome.line(format!("{file}: {what}:"));
        for line in change.text.trim_matches('\n').lines() {
            outcome.line(format!("  {}", harmless(line)).trim_end());
        }
    }
    if is_anything_left && !report.written {
        outcome.note("nothing was written; `ckpt init --write` writes it, with the same options");
    }
}
