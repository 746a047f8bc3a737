//! `ckpt copy`: all checkpoints of one store into another.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::formats::{Format, Layout};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, CopyOptions, EntryId, FileStore, Query, copy,
};
use agent_checkpoint::{ErrorKind, FixedClock};
use serde::Serialize;

use super::busy::Busy;
use crate::address::file_options;
use crate::args::Global;
use crate::backend::{self, Access, is_address, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::report::count;

/// How many documents are looked at to tell the format of a folder.
const LOOKED_AT: usize = 20;

#[derive(Serialize)]
struct Report {
    from: String,
    to: String,
    copied: usize,
    present: usize,
    refused: Vec<Refused>,
    unreadable: Vec<Unreadable>,
    foreign: Vec<String>,
}

#[derive(Serialize)]
struct Refused {
    key: Option<String>,
    code: String,
    message: String,
}

#[derive(Serialize)]
struct Unreadable {
    key: String,
    entry: EntryId,
}

pub(super) fn run(
    from: &Path,
    to: &Path,
    options: CopyOptions,
    global: &Global,
) -> Result<Outcome, Failure> {
    if global.store.is_some() || global.key.is_some() || global.slot.is_some() {
        return Err(Failure::usage(
            "copy takes two stores, FROM and TO; leave --store, --key and --slot out, or use --prefix",
        ));
    }
    if place(from) == place(to) {
        let from = shown(from).display().to_string();
        return Err(Failure::usage(format!(
            "{from}: FROM and TO are the same store, so there is nothing to copy; name another one as TO"
        )));
    }
    let source = source(from, global)?;
    let target = target(to, format(&*source, global)?, global)?;
    let options = match global.now {
        Some(now) => options.with_clock(FixedClock(now)),
        None => options,
    };
    let mut busy = Busy::new();
    let copied = copy(&*source, &*target, &options, &mut |progress| {
        busy.tell(progress.done);
    });
    busy.finish();
    let copied = copied?;
    let mut outcome = Outcome::new();
    let name = |name: &OsString| name.to_string_lossy().into_owned();
    let mut report = Report {
        from: shown(from).display().to_string(),
        to: shown(to).display().to_string(),
        copied: copied.copied,
        present: copied.present,
        refused: Vec::new(),
        unreadable: Vec::new(),
        foreign: copied.foreign.iter().map(name).collect(),
    };
    for error in copied.refused {
        let key = error.key().map(ToString::to_string);
        let is_other = matches!(error.kind(), ErrorKind::Conflict { .. });
        let mut failure = Failure::from(error);
        if is_other {
            failure.message = format!(
                "{}: there is another checkpoint, or another state of this one, under this key in {}, and it was left as it is; copy into another store, or \
                 remove it first with `ckpt forget --store {} --key {} --apply`",
                key.as_deref().unwrap_or_default(),
                report.to,
                report.to,
                key.as_deref().unwrap_or_default(),
            );
        }
        outcome.fail(&failure);
        report.refused.push(Refused {
            key,
            code: failure.code,
            message: failure.message,
        });
    }
    for (key, entry) in copied.unreadable {
        outcome.warn(format!(
            "{key}: the earlier state {entry} cannot be read, and stays in {} only",
            report.from
        ));
        let key = key.to_string();
        report.unreadable.push(Unreadable { key, entry });
    }
    let is_empty = report.copied + report.present + report.refused.len() == 0;
    if is_empty {
        outcome.warn(format!(
            "{}: there are no checkpoints to copy; sub-folders are stores of their own, and --prefix leaves out what begins otherwise",
            report.from
        ));
    }
    for name in &report.foreign {
        outcome.warn(format!("{name}: is no checkpoint that has a key; it stays"));
    }
    let is_left = is_empty || !report.unreadable.is_empty() || !report.foreign.is_empty();
    outcome.exit = outcome.exit.and(Exit::findings_if(is_left));
    if global.json {
        outcome.json(&report);
        return Ok(outcome);
    }
    let refused = match report.refused.len() {
        0 => String::new(),
        many => format!(", {many} not copied"),
    };
    outcome.line(format!(
        "copied {}; {} there already{refused}",
        count(report.copied, "checkpoint"),
        report.present
    ));
    Ok(outcome)
}

/// Where a store is, however its path is written.
fn place(store: &Path) -> PathBuf {
    let text = store.to_string_lossy();
    let path = Path::new(text.strip_prefix("sqlite:").unwrap_or(&text));
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The store that is read.
fn source(path: &Path, global: &Global) -> Result<Arc<dyn CheckpointStore>, Failure> {
    if is_address(path) {
        return backend::open(path, Access::Read, global);
    }
    let options = file_options(Access::Read, global);
    if !path.exists() {
        return Err(Failure::not_found(format!(
            "{}: there is no such store; check the path",
            path.display()
        )));
    }
    if path.is_dir() {
        let store = FileStore::with_options(path, options);
        let format = format(&store, global)?;
        return Ok(Arc::new(store.with_layout(layout(format))));
    }
    let single = FileStore::single(path, options.clone())?;
    Ok(match format(&single, global)? {
        Some(format) if format.is_host() => {
            Arc::new(BuilderStateStore::with_options(path, options))
        }
        format => Arc::new(single.with_layout(layout(format))),
    })
}

/// The store that is written to; a folder is made.
fn target(
    path: &Path,
    format: Option<Format>,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    if is_address(path) {
        return backend::open(path, Access::Make, global);
    }
    let looks_like_file = path.extension().is_some_and(|ending| ending == "json");
    if !path.is_dir() && (path.exists() || looks_like_file) {
        return Err(Failure::usage(format!(
            "{}: is a file, and a copy needs a store for many; name a folder, or a database such as sqlite:PATH",
            path.display()
        )));
    }
    let store = FileStore::with_options(path, file_options(Access::Make, global));
    Ok(Arc::new(store.with_layout(layout(format))))
}

fn layout(format: Option<Format>) -> Layout {
    format.map_or_else(Layout::default, |format| format.layout())
}

/// The format by whose names the files of a store are called: that is named, or that of the first document of which it
/// can be told.
fn format(store: &dyn CheckpointStore, global: &Global) -> Result<Option<Format>, Failure> {
    let formats = &global.formats;
    if let Some(name) = &global.format {
        return Ok(Some(*formats.get(name)?));
    }
    let page = store.list(&Query::all().with_limit(LOOKED_AT))?;
    let format = page.keys().find_map(|key| {
        let stored = store.load(key).ok()??;
        let file = store.beside().document_file(key);
        let file = file.unwrap_or_else(|| Path::new(key.as_str()).to_path_buf());
        let found = formats.detect(&file, Some(&stored.document)).ok()?;
        Some(found.format)
    });
    Ok(format)
}
