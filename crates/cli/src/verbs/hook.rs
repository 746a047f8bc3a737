//! `ckpt hook`: the answer to a hook of a coding agent.
//!
//! Claude Code, Codex and Gemini CLI send the same members under the same names and read the same answer; only their
//! names of some events and tools differ. No answer blocks or refuses anything, and the exit code is always 0: these
//! agents take 2 as *block*.

use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::fleet::{Fleet, Row, RowState};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{Formats, SourceFiles};
use agent_checkpoint::staleness::Reason;
use agent_checkpoint::{
    Checkpoint, CheckpointStoreExt, ContextUse, Detail, Handoff, Limits, Operation,
    OperationContext, RuleContext, Status,
};
use serde_json::{Map, Value, json};

use super::{operate, resume, scan};
use crate::address::Target;
use crate::args;
use crate::backend::{Access, is_address};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::help;
use crate::named::is_folder;
use crate::output::{ERROR, Outcome, one_line};
use crate::stdin;

/// How long a call waits for a lock, in a store of any kind. Claude Code kills a hook after 1.5 s at the end of a session.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest prompt, in tokens of four bytes: Codex passes on about 2,500 tokens of a hook, Claude Code 10,000
/// characters.
const MOST_TOKENS: usize = 2_000;

/// How many files a message names.
const MOST_NAMED: usize = 5;

/// The moment in a session that an event marks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// A session begins, or continues after its context was compacted.
    Begin,
    /// A tool was used.
    ToolUse,
    /// The context is about to be compacted.
    Compact,
    /// A turn or the session ends.
    End,
}

impl Moment {
    fn of(event: &str) -> Option<Moment> {
        Some(match event {
            "SessionStart" => Moment::Begin,
            "PostToolUse" | "AfterTool" => Moment::ToolUse,
            "PreCompact" | "PreCompress" => Moment::Compact,
            "Stop" | "AfterAgent" | "SessionEnd" => Moment::End,
            _ => return None,
        })
    }
}

/// The answer to the agent.
#[derive(Default)]
struct Answer {
    /// For the model.
    context: Option<String>,
    /// For the person.
    message: Option<String>,
}

/// Whether the command line calls this verb, even if something in it is wrong.
pub(crate) fn is_called(formats: &Formats) -> bool {
    std::env::args_os().any(|word| word == "hook") && {
        let command = help::command(formats).ignore_errors(true);
        let matches = command.try_get_matches_from(std::env::args_os());
        matches.is_ok_and(|matches| matches.subcommand_name() == Some("hook"))
    }
}

/// Runs `run`, and turns even a failure or a panic into an answer that no agent takes for an error.
pub(crate) fn guarded(run: impl FnOnce() -> Outcome) -> Outcome {
    let before = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    set_hook(before);
    let failed = |_| {
        let message = "this hook has an error of its own, and recorded nothing; `ckpt show` says whether the checkpoint \
                       can be read";
        Outcome::from(Failure::new(message))
    };
    let outcome = outcome.unwrap_or_else(failed);
    if outcome.exit == Exit::Done {
        return outcome;
    }
    let error = outcome
        .notes
        .into_iter()
        .find(|note| note.starts_with(ERROR));
    answered(
        Answer {
            message: error,
            ..Answer::default()
        },
        "",
    )
}

/// The answer of a hook that took too long. After an edit it is on standard error, since there would be too many of them.
pub(crate) fn late(timeout: Duration) -> Outcome {
    let is_tool_use = std::env::args().any(|word| Moment::of(&word) == Some(Moment::ToolUse));
    let message = format!(
        "{ERROR}the hook took longer than {} s, and may have recorded nothing; see that the store can be reached, and that \
         no other program keeps it locked",
        timeout.as_secs()
    );
    match is_tool_use {
        true => Outcome {
            notes: vec![message],
            ..Outcome::new()
        },
        false => answered(
            Answer {
                message: Some(message),
                ..Answer::default()
            },
            "",
        ),
    }
}

/// Reads the agent's input and enters its working folder. Relative paths of the command line, and the search for
/// `ckpt.toml`, start from there.
pub(crate) fn enter(hook: &mut args::Hook, global: &Global) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "a coding agent runs this verb, with its JSON on standard input; `ckpt hook --help` says how",
        ));
    }
    let text = stdin::read(global.max_bytes)?;
    if text.len() as u64 > global.max_bytes {
        return Err(Failure::usage(format!(
            "standard input has more than {} bytes; raise --max-bytes",
            global.max_bytes
        )));
    }
    hook.payload = serde_json::from_slice(&text).map_err(|error| {
        Failure::usage(format!(
            "standard input is not the JSON of a hook: {error}; check which program runs `ckpt hook`"
        ))
    })?;
    if let Some(folder) = hook.payload["cwd"].as_str() {
        // A missing folder has no checkpoint, but the present one may have.
        let _ = std::env::set_current_dir(folder);
    }
    Ok(())
}

pub(super) fn run(hook: &args::Hook, global: &Global) -> Result<Outcome, Failure> {
    let Some(moment) = Moment::of(&hook.event) else {
        return Ok(Outcome::new());
    };
    let session = hook.payload["session_id"].as_str().map(str::to_owned);
    let global = Global {
        json: false,
        session: global.session.clone().or(session),
        lock_timeout: Some(LOCK_TIMEOUT),
        ..global.clone()
    };
    let answer = addressed(global, moment).and_then(|addressed| {
        let Some(Addressed { global, is_named }) = addressed else {
            return Ok(Answer::default());
        };
        let (global, standing) = claimed(global);
        let may_write = match standing {
            Standing::Own => true,
            Standing::OfAnother => false,
            Standing::Free => is_named || is_of_session(&global),
        };
        match moment {
            Moment::Begin => begin(hook, &global),
            _ if !may_write => Ok(Answer::default()),
            Moment::ToolUse => tool_use(&hook.payload, &global),
            Moment::Compact | Moment::End => record(&hook.payload, moment, &global),
        }
    });
    match answer {
        Ok(answer) => Ok(answered(answer, &hook.event)),
        Err(failure) if failure.code == "not-found" => Ok(Outcome::new()),
        // One message per edit would bury the agent's own output.
        Err(failure) if moment == Moment::ToolUse => Ok(Outcome {
            notes: vec![format!("{ERROR}{}", one_line(&failure.message))],
            ..Outcome::new()
        }),
        Err(failure) => Err(failure),
    }
}

/// The answer in the members that all three agents document.
fn answered(answer: Answer, event: &str) -> Outcome {
    let mut members = Map::new();
    if let Some(message) = answer.message {
        members.insert("systemMessage".to_owned(), message.into());
    }
    if let Some(context) = answer.context {
        let specific = json!({"hookEventName": event, "additionalContext": context});
        members.insert("hookSpecificOutput".to_owned(), specific);
    }
    let mut outcome = Outcome::new();
    if !members.is_empty() {
        outcome.json(&members);
    }
    outcome
}

/// The checkpoint that the hook is about.
struct Addressed {
    /// The options, with its place filled in.
    global: Global,
    /// Whether its place or key was named; otherwise it is the only open one.
    is_named: bool,
}

/// Who holds the claim of the task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The session: it gave its fence, or has claimed the task.
    Own,
    OfAnother,
    /// No claim is valid.
    Free,
}

/// The options with the checkpoint filled in: the named one, else the only one in the store that is not complete.
/// `None` if there is none.
fn addressed(global: Global, moment: Moment) -> Result<Option<Addressed>, Failure> {
    let Some(store) = &global.store else {
        return Ok(None);
    };
    if !is_address(store) && !store.exists() {
        return Ok(None);
    }
    let holds_several = is_address(store) || is_folder(store, &global);
    if global.key.is_some() || !holds_several {
        return Ok(Some(Addressed {
            global,
            is_named: true,
        }));
    }
    let opened = scan::Opened::new(store, Access::Read, &global)?;
    let options = scan::options(&global)?.with_depth(0);
    let fleet = Fleet::scan(&[opened.source()], &options, global.now());
    let is_corrupt = |row: &&Row| matches!(row.state, RowState::Corrupt { .. });
    let mut rows: Vec<&Row> = fleet.rows().iter().filter(|row| is_open(row)).collect();
    if rows.is_empty() {
        rows = fleet.rows().iter().filter(is_corrupt).collect();
    }
    match rows.as_slice() {
        // In a store that cannot be read there may be one.
        [] => unread(&fleet).map_or(Ok(None), Err),
        [row] => Ok(Some(Addressed {
            global: at(row, global),
            is_named: false,
        })),
        _ if moment != Moment::Begin => Ok(None),
        several => Err(Failure::usage(format!(
            "{}: has {} checkpoints that are not complete; name the one of this session with CKPT_KEY",
            crate::backend::shown(store).display(),
            several.len()
        ))),
    }
}

/// That some place of a scan could not be read.
fn unread(fleet: &Fleet) -> Option<Failure> {
    let mut outcome = Outcome::new();
    scan::tell_skipped(fleet, &mut outcome);
    let mut errors = outcome.notes.iter();
    errors
        .find_map(|note| note.strip_prefix(ERROR))
        .map(Failure::new)
}

/// The options with the fence and agent of this session's claim: an agent passes its fence to its reports, but not to
/// its hooks.
fn claimed(mut global: Global) -> (Global, Standing) {
    if global.fence.is_some() {
        return (global, Standing::Own);
    }
    // The action that uses the checkpoint reports a failure to open it.
    let target = Target::to_look_at(None, &global).ok();
    let claim = target.and_then(|target| target.store().claimed(&target.key).ok().flatten());
    let Some(claim) = claim.filter(|claim| claim.stands(global.now())) else {
        return (global, Standing::Free);
    };
    let session = global
        .session
        .as_deref()
        .filter(|session| !session.is_empty());
    let before =
        session.and_then(|session| claim.owner.strip_suffix(&format!("session {session}")));
    let agent = match before.map(|before| (before, before.strip_suffix(", "))) {
        Some((_, Some(agent))) => Some(agent.to_owned()),
        Some(("", None)) => None,
        _ => return (global, Standing::OfAnother),
    };
    global.agent = global.agent.or(claim.agent).or(agent);
    global.fence = Some(claim.fence);
    (global, Standing::Own)
}

/// Whether the checkpoint names this session or none. Only formats of agent sessions name one.
fn is_of_session(global: &Global) -> bool {
    let Ok(target) = Target::to_look_at(None, global) else {
        return true;
    };
    if target.format.name() != AgentCheckpoint::FORMAT {
        return true;
    }
    let document = target.load().ok().flatten();
    let recorded = document
        .as_ref()
        .and_then(|document| Some(document.get("/session_id")?.as_str()?.into_owned()));
    recorded.is_none() || recorded == global.session
}

fn is_open(row: &Row) -> bool {
    matches!(row.state, RowState::Checkpoint { .. })
        && row.status.as_deref() != Some(Status::Complete.as_str())
}

/// The options with the place of a row filled in.
fn at(row: &Row, mut global: Global) -> Global {
    match &row.place.file {
        Some(file) => global.store = Some(file.clone()),
        None => global.key.clone_from(&row.place.key),
    }
    let slot = row.place.slot.as_ref();
    global.slot = slot.and_then(|slot| slot.parse().ok()).or(global.slot);
    global.format = global.format.or(row.format.map(str::to_owned));
    global
}

/// The prompt of the checkpoint, while there is work left to continue.
fn begin(hook: &args::Hook, global: &Global) -> Result<Answer, Failure> {
    let how = resume::How {
        name: "resume",
        template: hook.template.as_deref(),
        templates: hook.templates.as_deref(),
        budget_tokens: Some(
            hook.budget_tokens
                .map_or(MOST_TOKENS, |own| own.min(MOST_TOKENS)),
        ),
        description: None,
        header: false,
        is_stdin: false,
    };
    let resumed = resume::run(None, &how, global)?;
    if !resumed.out.is_empty() {
        return Ok(Answer {
            context: Some(with_notes(resumed.out, &resumed.notes)),
            ..Answer::default()
        });
    }
    let is_refused = resumed.exit == Exit::Refused;
    if is_refused && handoff(&Target::to_read(None, global)?)?.status == Status::Complete {
        return Ok(Answer::default());
    }
    let error = resumed
        .notes
        .into_iter()
        .find(|note| note.starts_with(ERROR));
    Ok(Answer {
        message: error,
        ..Answer::default()
    })
}

/// A prompt, followed by warnings and questions that it lacks, for example that another agent may be at work.
fn with_notes(prompt: String, notes: &[String]) -> String {
    const MOST: usize = MOST_TOKENS * 4;
    let mut known = String::new();
    for note in notes {
        let text = note
            .split_once(": ")
            .map_or(note.as_str(), |(_, text)| text);
        if !prompt.contains(text) {
            known.push_str(&format!("\n{note}"));
        }
    }
    if known.is_empty() {
        return bounded(prompt, MOST);
    }
    // If a prompt is too long, its end is cut and these stay.
    let known = bounded(format!("\nBefore you go on:\n{known}\n"), MOST / 4);
    bounded(prompt, MOST - known.len()) + &known
}

/// A text, cut to this many bytes.
fn bounded(mut text: String, most: usize) -> String {
    const REST: &str = "\n(the rest is cut: `ckpt resume` prints it)\n";
    if text.len() > most {
        let end = (0..=most - REST.len())
            .rev()
            .find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push_str(REST);
    }
    text
}

fn handoff(target: &Target) -> Result<Handoff, Failure> {
    target.require_file()?;
    let Some(document) = target.load()? else {
        return Err(Failure::not_found(format!(
            "{}: no checkpoint",
            target.place()
        )));
    };
    let inspected = target.format.inspect(&document, &RuleContext::none());
    Ok(inspected.map_err(|error| target.error(error))?.handoff)
}

/// Records the files that a tool changed.
fn tool_use(payload: &Value, global: &Global) -> Result<Answer, Failure> {
    let changed = changed_files(payload);
    if changed.is_empty() {
        return Ok(Answer::default());
    }
    let target = Target::to_write(global)?;
    let (created, modified) = in_project(changed, &target, &global.root);
    let is_nothing = created.is_empty() && modified.is_empty();
    if is_nothing || handoff(&target)?.status == Status::Complete {
        return Ok(Answer::default());
    }
    if target.format.name() == TaskCheckpoint::FORMAT || target.format.is_host() {
        // The format records files of finished steps only, so those of the current step go into its note.
        let context = OperationContext::at(global.now())
            .by(global.agent.as_deref(), global.session.as_deref());
        let most = Limits::default().partial_work.unwrap_or(usize::MAX);
        let files: Vec<String> = created.into_iter().chain(modified).collect();
        let tasks = target.checkpoints::<TaskCheckpoint>(global);
        let saved = tasks.try_update(&target.key, |task| {
            let step = task.current_step.as_ref();
            let text =
                step.and_then(|step| with_edited(step.partial_work.as_deref(), &files, most));
            text.map_or(Ok(()), |text| {
                task.apply(&Operation::Note { text }, &context)
            })
        });
        saved.map_err(|error| target.error(error))?;
    } else if target.format.operations().contains(&"detail") {
        let mut detail = Detail::default();
        (detail.files_created, detail.files_modified) = (created, modified);
        operate::change(&target, &[Operation::Detail(detail).into()], global)?;
    }
    Ok(Answer::default())
}

/// A file that a tool changed, and whether the tool created it.
type Changed = (String, bool);

/// The files in the input of a tool that changes files.
fn changed_files(payload: &Value) -> Vec<Changed> {
    let (input, response) = (&payload["tool_input"], &payload["tool_response"]);
    if !response["error"].is_null() {
        return Vec::new();
    }
    let named = |member: &str| -> Vec<Changed> {
        let path = input[member].as_str().map(str::to_owned);
        let is_new = response["type"] == "create";
        path.map(|path| (path, is_new)).into_iter().collect()
    };
    match payload["tool_name"].as_str() {
        Some("Write" | "Edit" | "MultiEdit" | "write_file" | "replace") => named("file_path"),
        Some("NotebookEdit") => named("notebook_path"),
        Some("apply_patch") => {
            let patch = input["command"].as_str().unwrap_or_default();
            let marks = [
                ("*** Add File: ", true),
                ("*** Update File: ", false),
                ("*** Delete File: ", false),
                ("*** Move to: ", true),
            ];
            let file = |line: &str| {
                let mut marks = marks.iter();
                marks.find_map(|(mark, is_new)| {
                    let path = line.strip_prefix(mark)?.trim_end();
                    Some((path.to_owned(), *is_new))
                })
            };
            patch.lines().filter_map(file).collect()
        }
        _ => Vec::new(),
    }
}

/// The source files of the project, relative to its folder: the created ones, and the others.
fn in_project(changed: Vec<Changed>, target: &Target, root: &Path) -> (Vec<String>, Vec<String>) {
    let sources = SourceFiles::default();
    let (root, own) = (real(root), real(&target.file));
    let (mut created, mut modified) = (Vec::new(), Vec::new());
    for (path, is_new) in changed {
        let path = real(Path::new(&path));
        let inside = root.as_ref().zip(path.as_ref());
        let inside = inside.and_then(|(root, path)| path.strip_prefix(root).ok());
        let parts = inside.into_iter().flatten().map(|part| part.to_str());
        let Some(parts) = parts.collect::<Option<Vec<&str>>>() else {
            continue;
        };
        let name = parts.join("/");
        let is_text = !name.is_empty() && !name.chars().any(char::is_control);
        if is_text && path != own && sources.takes(&name) {
            let list = if is_new { &mut created } else { &mut modified };
            list.push(name);
        }
    }
    (created, modified)
}

/// A path whose folder has no links in it; the file itself may be gone.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let name = path.file_name()?;
        let folder = std::path::absolute(path.parent()?).ok()?;
        Some(folder.canonicalize().unwrap_or(folder).join(name))
    })
}

/// The beginning of the list of edited files at the end of a note, and the mark for files that did not fit.
const EDITED: &str = "[edited: ";
const MORE: &str = "…";

/// Splits a note from the edited files at its end.
fn split_note(note: &str) -> (&str, Vec<&str>) {
    let list = note
        .strip_suffix(']')
        .and_then(|note| note.rsplit_once(EDITED));
    match list {
        Some((note, files)) => (note.trim_end(), files.split(", ").collect()),
        None => (note, Vec::new()),
    }
}

/// A note with these files added to its list, of at most `most` characters; `None` if it stays the same.
fn with_edited(note: Option<&str>, new: &[String], most: usize) -> Option<String> {
    let (note, mut files) = split_note(note.unwrap_or_default());
    let known = files.len();
    let text = |files: &[&str]| {
        format!("{note} {EDITED}{}]", files.join(", "))
            .trim_start()
            .to_owned()
    };
    for file in new {
        if files.contains(&file.as_str()) || files.last() == Some(&MORE) {
            continue;
        }
        for name in [file.as_str(), MORE] {
            files.push(name);
            if text(&files).chars().count() <= most {
                break;
            }
            files.pop();
        }
    }
    (files.len() > known).then(|| text(&files))
}

/// Saves a checkpoint with everything that can be recorded without the model, and reports what the agent has not
/// reported.
fn record(payload: &Value, moment: Moment, global: &Global) -> Result<Answer, Failure> {
    let target = Target::to_write(global)?;
    let handoff = handoff(&target)?;
    if matches!(handoff.status, Status::Complete | Status::Paused) {
        return Ok(Answer::default());
    }
    // Judge this before the stamp changes.
    let message = match moment {
        Moment::End => unreported(&target, &handoff, global),
        _ => None,
    };
    let operations = target.format.operations();
    // The agent compacts by itself once its context is full.
    let full = ContextUse::of(1, 1).filter(|_| payload["trigger"] == "auto");
    let operation = match full {
        Some(used) if moment == Moment::Compact && operations.contains(&"context") => {
            Some(Operation::Context { used })
        }
        _ => Some(Operation::Heartbeat).filter(|_| operations.contains(&"heartbeat")),
    };
    match operation {
        Some(Operation::Heartbeat) if target.format.is_host() => {
            operate::beat(&target, global)?;
        }
        Some(operation) => {
            operate::change(&target, &[operation.into()], global)?;
        }
        None => {}
    }
    Ok(Answer {
        message,
        ..Answer::default()
    })
}

/// Reports the files that changed since the last reported step.
fn unreported(target: &Target, handoff: &Handoff, global: &Global) -> Option<String> {
    let note = handoff
        .in_progress
        .first()
        .and_then(|step| step.note.as_deref());
    let (_, edited) = split_note(note.unwrap_or_default());
    let mut files: Vec<String> = edited.into_iter().map(str::to_owned).collect();
    let staleness = target
        .any_checkpoints(global)
        .stale(&target.key, &global.root)
        .ok();
    // If none of the files exists, the project's folder is a different one.
    let judged = staleness.filter(|judged| !judged.reasons().contains(&Reason::NothingThere));
    let changed = judged.iter().flat_map(|judged| judged.changed());
    for file in changed.filter(|file| file.state.is_changed()) {
        if !files.contains(&file.path) {
            files.push(file.path.clone());
        }
    }
    let (count, named) = (files.len(), files.len().min(MOST_NAMED));
    let more = match count - named {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| {
        format!(
            "ckpt: {}: {count} file{} changed and no step was reported since: {}{more}; report the step with `ckpt step \
             done`, or how far it is with `ckpt note`",
            target.place(),
            if count == 1 { "" } else { "s" },
            files[..named].join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_and_a_failure_are_answers_with_exit_0() {
        let panicked = guarded(|| panic!("on purpose"));
        let failed = guarded(|| Failure::exiting(Exit::Corrupt, "a\nb").into());
        for (outcome, message) in [(panicked, "an error of its own"), (failed, "ckpt: a b")] {
            assert_eq!((outcome.exit, outcome.notes.len()), (Exit::Done, 0));
            let answer: Value = serde_json::from_str(&outcome.out).unwrap();
            let text = answer["systemMessage"].as_str().unwrap();
            assert!(text.contains(message), "{text}");
            assert_eq!(answer.as_object().unwrap().len(), 1);
        }
    }

    #[test]
    fn the_edited_files_stand_at_the_end_of_a_note_within_its_limit() {
        let files = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let added =
            |note: Option<&str>, names: &[&str], most| with_edited(note, &files(names), most);
        assert_eq!(added(None, &["a"], 200).unwrap(), "[edited: a]");
        assert_eq!(
            added(Some("half done"), &["a", "b"], 200).unwrap(),
            "half done [edited: a, b]"
        );
        let note = "half done [edited: a, b]";
        assert_eq!(split_note(note), ("half done", vec!["a", "b"]));
        assert_eq!(
            added(Some(note), &["b", "c"], 200).unwrap(),
            "half done [edited: a, b, c]"
        );
        assert_eq!(added(Some(note), &["b"], 200), None);
        // The mark for files without room is added once.
        let full = added(Some(note), &["long name", "d"], 27).unwrap();
        assert_eq!(full, "half done [edited: a, b, …]");
        assert_eq!(added(Some(&full), &["e"], 27), None);
        assert_eq!(added(Some("half done"), &["a"], 12), None);
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        let text = "é".repeat(100);
        assert_eq!(bounded(text.clone(), 200), text);
        let cut = bounded(text, 121);
        assert!(cut.len() <= 121 && cut.starts_with("éé"), "{cut}");
        assert!(cut.ends_with("prints it)\n"), "{cut}");
    }
}
