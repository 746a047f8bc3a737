//! `ckpt doctor`: what is wrong with a store, and what to do about it.
//!
//! Checkpoints are judged as by `status` and `validate`; this module inspects only the files beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use agent_checkpoint::fleet::{self, Fleet, Row, RowState};
use agent_checkpoint::formats::{Format, Formats, SourceFiles};
use agent_checkpoint::json::Code;
use agent_checkpoint::resume::ResumeDecision;
use serde::Serialize;

use super::effects;
use super::scan::{self, Opened};
use super::validate::{self, Corruption};
use crate::address::Target;
use crate::backend::Access;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::{Named, shell_word};
use crate::output::{Outcome, one_line, stamp};
use crate::read;
use crate::report::ledger::in_doubt;
use crate::report::{count, violation};

/// Our own folder beside checkpoints.
const OWN: &str = ".agent-checkpoint";

/// Its folders with states of checkpoints. In each, a folder or file is named after the checkpoint.
const STATES: [&str; 3] = ["history", "pinned", "corrupt"];
const DROPPED_LOG: &str = "overflow";

/// Its other folders, which contain only files.
const PLAIN: [&str; 7] = [
    "archive",
    "claims",
    "files",
    "ledger",
    "lineage",
    "order",
    DROPPED_LOG,
];

/// How many folders deep, as `status` does.
const DEPTH: usize = 8;

/// From this age on, a temporary file belongs to no running writer.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// How long to wait for a running save; a save waits as long for another one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How far a clock may be ahead.
const TOLERANCE: Duration = Duration::from_secs(5);

/// What `doctor --json` prints.
#[derive(Serialize)]
struct Report {
    /// How many checkpoints there are.
    checked: usize,
    findings: Vec<Finding>,
}

/// A problem.
#[derive(Serialize)]
struct Finding {
    kind: String,
    place: String,
    message: String,
    /// A command for it.
    next: Option<String>,
    fixed: bool,
}

pub(super) fn run(place: Option<&Path>, fix: bool, global: &Global) -> Result<Outcome, Failure> {
    if global.key.is_some() || global.slot.is_some() {
        return Err(Failure::usage(
            "doctor looks at all checkpoints of a store; omit --key and --slot",
        ));
    }
    let place = match (place, global.store.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("DIR and --store are both given; omit one"));
        }
        (None, None) => {
            return Err(Failure::usage(
                "which store? Name it, such as `ckpt doctor checkpoints`, or with --store PATH (or CKPT_STORE)",
            ));
        }
        (Some(place), None) | (None, Some(place)) => place,
    };
    let mut outcome = Outcome::new();
    let opened = Opened::new(place, Access::Read, global)?.or_not_begun(global, &mut outcome);
    let options = scan::options(global)?.with_depth(DEPTH);
    let fleet = Fleet::scan(&[opened.source()], &options, global.now());
    scan::tell_skipped(&fleet, &mut outcome);
    let mut doctor = Doctor {
        global,
        findings: Vec::new(),
        exit: Exit::Done,
    };
    let rows = fleet
        .rows()
        .iter()
        .filter(|row| row.revision.is_some() || row.format.is_some());
    let checked = rows.clone().count();
    let mut files = BTreeSet::new();
    for row in fleet.rows() {
        // A host file is one file with several rows.
        let is_new = row
            .place
            .file
            .as_ref()
            .is_none_or(|file| files.insert(file.clone()));
        if is_new {
            doctor.row(row)?;
        }
        doctor.ledger(row);
    }
    for found in fleet.findings() {
        // The ledger of each row was looked at.
        if !matches!(found, fleet::Finding::LedgerUnreadable { .. }) {
            doctor.finding(found);
        }
    }
    if opened.store().is_none() {
        doctor.files(&files);
        doctor.beside(place, fix);
    }
    let is_open = doctor.findings.iter().any(|found| !found.fixed);
    outcome.exit = outcome
        .exit
        .and(doctor.exit)
        .and(Exit::findings_if(is_open));
    let report = Report {
        checked,
        findings: doctor.findings,
    };
    match global.json {
        true => outcome.json(&report),
        false => print(&report, &mut outcome),
    }
    Ok(outcome)
}

struct Doctor<'g> {
    global: &'g Global,
    findings: Vec<Finding>,
    exit: Exit,
}

impl Doctor<'_> {
    fn add(
        &mut self,
        kind: &str,
        place: impl ToString,
        message: impl Into<String>,
        next: Option<String>,
    ) {
        self.findings.push(Finding {
            kind: kind.to_owned(),
            place: place.to_string(),
            message: message.into(),
            next,
            fixed: false,
        });
    }

    /// Adds the problems of a row's document, as `validate` reports them at the present time.
    fn row(&mut self, row: &Row) -> Result<(), Failure> {
        match &row.state {
            RowState::Checkpoint { .. } | RowState::TakenOver { .. } | RowState::Corrupt { .. } => {
            }
            RowState::Unreadable { reason } => {
                self.exit = self.exit.and(Exit::Failed);
                self.add("unreadable", &row.place, reason, None);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let now = self.global.now();
        let at = Global {
            store: row.place.store.as_ref().map(PathBuf::from),
            key: row.place.key.clone(),
            slot: None,
            now: Some(now),
            ..self.global.clone()
        };
        let named = Named::new(row.place.file.as_deref(), Access::Read, &at)?;
        let mut words = match &row.place.file {
            Some(file) => shell_word(&file.display().to_string()),
            None => format!(
                "--store {} --key {}",
                shell_word(row.place.store.as_deref().unwrap_or_default()),
                shell_word(row.place.key.as_deref().unwrap_or_default())
            ),
        };
        if let Some(format) = &self.global.format {
            words.push_str(&format!(" --format {format}"));
        }
        let verdict = match validate::judge(&named, &at, &mut Outcome::new()) {
            Ok(verdict) => verdict,
            // It was removed after the scan.
            Err(failure) if failure.code == "not-found" => return Ok(()),
            Err(failure) => {
                self.exit = self.exit.and(failure.exit);
                self.add("unreadable", &row.place, failure.message, None);
                return Ok(());
            }
        };
        if let Some(error) = &verdict.error {
            self.exit = self.exit.and(Exit::Corrupt);
            let next = recovery(row, &words, error, verdict.format.as_deref(), self.global);
            let message = format!("{}: {}", error.code, error.message);
            self.add("corrupt", named.shown().display(), message, next);
            return Ok(());
        }
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for found in &verdict.violations {
            kinds
                .entry(found.code.to_string())
                .or_default()
                .push(violation(found));
        }
        for (code, all) in kinds {
            let is_of_clock = code == Code::FUTURE_TIMESTAMP.as_str();
            let kind = if is_of_clock { "clock" } else { "violation" };
            let more = match all.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let now = stamp(now);
            let option = if is_of_clock {
                format!(" --now {now}")
            } else {
                String::new()
            };
            let next = format!("ckpt validate {words}{option}");
            self.add(
                kind,
                named.shown().display(),
                format!("{}{more}", all[0]),
                Some(next),
            );
        }
        Ok(())
    }

    /// Adds effects in doubt, and attempts that make the plan refuse the task.
    fn ledger(&mut self, row: &Row) {
        if row.revision.is_none() {
            return;
        }
        let at = Global {
            store: row.place.store.as_ref().map(PathBuf::from),
            key: row.place.key.clone(),
            slot: row.place.slot.as_ref().and_then(|slot| slot.parse().ok()),
            ..self.global.clone()
        };
        // A failure to open it was reported with the row.
        let Ok(target) = Target::to_look_at(row.place.file.as_deref(), &at) else {
            return;
        };
        match target.ledger(&at).state() {
            Ok(state) => {
                if let Some((ResumeDecision::Refuse, message)) =
                    effects::standing(&state, &target, &at)
                {
                    let next = format!("ckpt claim {} --reset-attempts", target.words());
                    self.add("poisoned", &row.place, message, Some(next));
                }
                for doubt in in_doubt(&state.effects) {
                    let message = format!("{} may have taken place", doubt.id);
                    let next = format!("ckpt effects {}", target.words());
                    self.add("in-doubt", &row.place, message, Some(next));
                }
            }
            Err(error) => self.add("ledger", &row.place, error.to_string(), None),
        }
    }

    /// Adds a finding of the fleet, as `status` reports it.
    fn finding(&mut self, found: &fleet::Finding) {
        let value = serde_json::to_value(found).unwrap_or_default();
        let text = |member: &str| value[member].as_str().unwrap_or_default();
        let place = text("place");
        // A place with a slot or in a database is no file.
        let is_file = place.ends_with(".json") && folder_of(Path::new(place)).exists();
        let file = is_file.then(|| shell_word(place));
        let next = file.and_then(|file| {
            Some(match found {
                fleet::Finding::NeverBegun { .. } => format!("ckpt forget {file} --apply"),
                fleet::Finding::TakenOver { .. } => format!("ckpt archive {file} --as crashed"),
                fleet::Finding::RolledBack { later, .. } => {
                    format!("ckpt restore {file} --entry {}", later.as_ref()?)
                }
                fleet::Finding::ClaimRanOut { .. } => format!("ckpt resume {file}"),
                _ => return None,
            })
        });
        self.add(text("finding"), place, found.to_string(), next);
    }

    /// Checks permissions, times and locks of the files.
    fn files(&mut self, files: &BTreeSet<PathBuf>) {
        let mut folders = BTreeSet::new();
        for file in files {
            let folder = folder_of(file);
            if folders.insert(folder.to_path_buf()) {
                self.rights(folder, "no checkpoint can be saved in it");
                if let Some(why) = no_locks(file) {
                    let message = format!(
                        "the file system has no locks, so no checkpoint can be saved here: {why}"
                    );
                    self.add("no-locks", folder.display(), message, None);
                }
            }
            self.rights(file, "it cannot be changed");
            let latest = SystemTime::now() + TOLERANCE;
            let written = fs::metadata(file).and_then(|found| found.modified());
            if written.is_ok_and(|written| written > latest) {
                let message = "the file was written in the future: the clock of this machine, or of the one that wrote it, is wrong";
                self.add("clock", file.display(), message, None);
            }
        }
    }

    fn rights(&mut self, path: &Path, effect: &str) {
        if fs::metadata(path).is_ok_and(|found| found.permissions().readonly()) {
            let next = format!("chmod u+w {}", shell_word(&path.display().to_string()));
            self.add(
                "read-only",
                path.display(),
                format!("is write-protected: {effect}"),
                Some(next),
            );
        }
    }

    /// Checks our own files beside checkpoints.
    fn beside(&mut self, place: &Path, fix: bool) {
        let mut folders = Vec::new();
        let top = if place.is_dir() {
            place
        } else {
            folder_of(place)
        };
        collect(top, if place.is_dir() { DEPTH } else { 0 }, &mut folders);
        for folder in folders {
            self.temporary(&folder, fix);
            let own = folder.join(OWN);
            if is_folder(&own) {
                self.orphans(&folder, &own);
                self.committed(&folder);
            }
        }
    }

    fn temporary(&mut self, folder: &Path, fix: bool) {
        let own = folder.join(OWN);
        let mut places = vec![folder.to_path_buf()];
        // Anything behind a link is not ours.
        if is_folder(&own) {
            places.extend(PLAIN.iter().map(|plain| own.join(plain)));
            let states = STATES.iter().map(|states| own.join(states));
            let states = states.filter(|states| is_folder(states));
            places.extend(states.flat_map(|states| entries(&states)));
            places.retain(|place| is_folder(place) || place == folder);
            places.push(own.clone());
        }
        let old = places
            .iter()
            .flat_map(|place| entries(place))
            .filter(|file| is_abandoned(file));
        let old: Vec<PathBuf> = old.collect();
        if old.is_empty() {
            return;
        }
        let stays = |file: &&PathBuf| {
            fs::remove_file(file).is_err_and(|error| error.kind() != ErrorKind::NotFound)
        };
        let timeout = self.global.lock_timeout.unwrap_or(LOCK_TIMEOUT);
        let held = if fix { held_lock(&own, timeout) } else { None };
        let left = match fix && held.is_none() {
            true => old.iter().filter(stays).count(),
            false => old.len(),
        };
        let all = count(old.len(), "temporary file");
        let message = match held {
            Some(lock) => format!(
                "{all} may be of a save that is under way, since {} is locked; nothing was removed, try again once it has \
                 ended",
                lock.display()
            ),
            None if fix && left > 0 => {
                format!("{left} of {all} of killed writers cannot be removed; check the rights")
            }
            None => format!("{all} of killed writers"),
        };
        let next = format!(
            "ckpt doctor {} --fix",
            shell_word(&folder.display().to_string())
        );
        let fixed = left == 0;
        self.add(
            "temporary",
            folder.display(),
            message,
            (!fixed).then_some(next),
        );
        if let Some(last) = self.findings.last_mut() {
            last.fixed = fixed;
        }
    }

    /// Finds states of checkpoints that are gone and were not archived.
    fn orphans(&mut self, folder: &Path, own: &Path) {
        let kept = STATES.iter().flat_map(|states| entries(&own.join(states)));
        // A forgotten checkpoint leaves its folders empty.
        let kept = kept.filter(|kept| !entries(kept).is_empty());
        let mut names: BTreeSet<String> = kept.filter_map(|kept| name(&kept)).collect();
        for log in entries(&own.join(DROPPED_LOG))
            .iter()
            .filter_map(|log| name(log))
        {
            names.extend(log.strip_suffix(".jsonl").map(str::to_owned));
        }
        let present: Vec<String> = entries(folder)
            .iter()
            .filter_map(|file| name(file))
            .collect();
        for gone in names {
            let Some(stem) = gone.strip_suffix(".json") else {
                continue;
            };
            let file = folder.join(&gone);
            if !file.exists() && !is_archived(stem, &present, &self.global.formats) {
                let word = shell_word(&file.display().to_string());
                let message = format!(
                    "the checkpoint is gone, and earlier states of it are kept; `ckpt forget {word} --apply` removes them, and \
                     what is known of its effects, for good"
                );
                self.add(
                    "orphan",
                    file.display(),
                    message,
                    Some(format!("ckpt history {word}")),
                );
            }
        }
    }

    /// Finds files of our folder in the git index, except dropped logs, which belong there.
    fn committed(&mut self, folder: &Path) {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(folder)
            .args(["ls-files", "-z", "--", OWN]);
        // A git that runs this as a hook sets these for a repository that may be another one.
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            git.env_remove(name);
        }
        // Without git there is no index.
        let Ok(listed) = git.output() else { return };
        let listed = String::from_utf8_lossy(&listed.stdout);
        let log = format!("{OWN}/{DROPPED_LOG}/");
        let is_ours = |file: &&str| {
            !file.is_empty() && !file.starts_with(&log) && !file.ends_with(".gitignore")
        };
        let number = listed.split('\0').filter(is_ours).count();
        if number > 0 {
            let word = shell_word(&folder.display().to_string());
            let message = format!(
                "git has {} of {OWN}, which are of this machine alone; commit after it",
                count(number, "file")
            );
            let next = format!(
                "git -C {word} rm -r -q --cached -- {OWN} ':!{OWN}/{DROPPED_LOG}' ':!{OWN}/.gitignore'"
            );
            self.add("committed", folder.join(OWN).display(), message, Some(next));
        }
    }
}

/// The command that recovers a damaged checkpoint.
fn recovery(
    row: &Row,
    words: &str,
    error: &Corruption,
    format: Option<&str>,
    global: &Global,
) -> Option<String> {
    // These need a person.
    if ["merge-conflict", "too-deep", "too-large"].contains(&error.code.as_str()) {
        return None;
    }
    let format = global.formats.get(format?).ok()?;
    let file = row.place.file.as_deref();
    let kept = file.and_then(|file| Target::kept(file, Some(format), global));
    let good = file.and_then(|file| read::good_part(file, global.max_bytes).ok()?);
    let way = match (kept, good) {
        (Some(_), _) => "",
        (None, Some(_)) => " --salvage",
        (None, None) if Format::is_host(format) => return None,
        (None, None) => " --fresh",
    };
    Some(format!("ckpt recover {words}{way}"))
}

/// Why a file cannot be locked on its file system.
fn no_locks(file: &Path) -> Option<std::io::Error> {
    match File::open(file).ok()?.try_lock_shared() {
        Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Interrupted => Some(error),
        _ => None,
    }
}

/// Waits for the saves that are running in a folder. Returns the first lock that is still held after `timeout`, or that
/// cannot be taken.
///
/// A save creates its temporary file under the lock of its checkpoint, with a name that is never used again. So once each
/// lock was free for a moment, no file that was there before belongs to a running save, even if that save was suspended
/// for an hour or the clock was changed. Only a `.gitignore` is written before there is a lock; a writer whose temporary
/// file was removed creates another one.
fn held_lock(own: &Path, timeout: Duration) -> Option<PathBuf> {
    let until = Instant::now() + timeout;
    let is_held = |lock: &PathBuf| {
        let Ok(file) = File::open(lock) else {
            return lock.exists();
        };
        loop {
            match file.try_lock_shared() {
                Ok(()) => return false,
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    };
    entries(&own.join("locks")).into_iter().find(is_held)
}

/// The folder and its sub-folders, except those that tools create; links are not followed.
fn collect(folder: &Path, depth: usize, all: &mut Vec<PathBuf>) {
    all.push(folder.to_path_buf());
    if depth == 0 {
        return;
    }
    let sources = SourceFiles::default();
    for entry in entries(folder) {
        let takes = |name: String| name != OWN && sources.takes(&format!("{name}/x"));
        if is_folder(&entry) && name(&entry).is_some_and(takes) {
            collect(&entry, depth - 1, all);
        }
    }
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether this is a folder and not a link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The sorted entries of a folder; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn name(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(str::to_owned)
}

/// Whether this is one of our temporary files, left by a killed writer.
fn is_abandoned(file: &Path) -> bool {
    let random = name(file).and_then(|name| {
        let random = name
            .strip_prefix(".agent-checkpoint-")?
            .strip_suffix(".tmp")?;
        Some(random.len() == 12 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    });
    let found = fs::symlink_metadata(file)
        .ok()
        .filter(fs::Metadata::is_file);
    let age = found.and_then(|found| found.modified().ok()?.elapsed().ok());
    random == Some(true) && age.is_some_and(|age| age >= ABANDONED_AFTER)
}

fn is_archived(stem: &str, present: &[String], formats: &Formats) -> bool {
    let mut layouts = formats.iter().map(Format::layout);
    layouts.any(|layout| {
        present
            .iter()
            .any(|other| layout.is_archive_of(other, stem))
    })
}

fn print(report: &Report, outcome: &mut Outcome) {
    for found in &report.findings {
        let fixed = if found.fixed { " (fixed)" } else { "" };
        let (message, own) = (&found.message, &found.place);
        // Messages of the library name the place themselves.
        let names_it = message.starts_with(own) || message.ends_with(&format!("({own})"));
        let place = match names_it {
            true => String::new(),
            false => format!("{own}: "),
        };
        let line = format!("{}: {place}{}{fixed}", found.kind, found.message);
        outcome.line(one_line(&line));
        if let Some(next) = &found.next {
            outcome.line(format!("  {next}"));
        }
    }
    let checked = count(report.checked, "checkpoint");
    let open = report.findings.iter().filter(|found| !found.fixed).count();
    outcome.line(match open {
        0 if outcome.exit == Exit::Done => format!("{checked}; nothing is wrong"),
        0 => format!("{checked}; not all could be read"),
        open => format!("{checked}; {}", count(open, "finding")),
    });
}
