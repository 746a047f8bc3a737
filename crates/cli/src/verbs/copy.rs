//! `ckpt copy`: all checkpoints of one store into another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::formats::{Format, Layout};
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, CopyOptions, EntryId, FileStore, Query, Stored, copy,
};
use agent_checkpoint::{Error, ErrorKind, FixedClock, Key};
use serde::Serialize;

use super::busy::Busy;
use crate::address::file_options;
use crate::backend::{self, Access, is_address, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::named::{real, shell_word};
use crate::output::{Outcome, stamp};
use crate::read;
use crate::report::count;

/// How many documents are read to find the format of a folder.
const LOOKED_AT: usize = 20;

#[derive(Serialize)]
struct Report {
    from: String,
    to: String,
    copied: usize,
    present: usize,
    refused: Vec<Refused>,
    unreadable: Vec<Unreadable>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Refused {
    key: Option<String>,
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Unreadable {
    key: String,
    entry: EntryId,
}

/// A file that is no checkpoint.
#[derive(Serialize)]
struct Skipped {
    file: String,
    reason: String,
}

pub(super) fn run(
    from: &Path,
    to: &Path,
    options: CopyOptions,
    global: &Global,
) -> Result<Outcome, Failure> {
    if global.store.is_some() || global.key.is_some() || global.slot.is_some() {
        return Err(Failure::usage(
            "copy takes two stores, FROM and TO; omit --store, --key and --slot, or use --prefix",
        ));
    }
    if real(from) == real(to) {
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
    let options = options.with_check(check(source.clone(), from, global));
    let mut busy = Busy::new();
    let copied = copy(&*source, &*target, &options, &mut |progress| {
        busy.tell(progress.done);
    });
    busy.finish();
    let copied = copied?;
    let mut outcome = Outcome::new();
    let mut report = Report {
        from: shown(from).display().to_string(),
        to: shown(to).display().to_string(),
        copied: copied.copied,
        present: copied.present,
        refused: Vec::new(),
        unreadable: Vec::new(),
        skipped: Vec::new(),
    };
    for error in copied.refused {
        let failure = refused(error, (&*source, from), (&*target, to));
        outcome.fail(&failure);
        report.refused.push(Refused {
            key: failure.key,
            code: failure.code,
            message: failure.message,
        });
    }
    for (key, entry) in copied.unreadable {
        outcome.warn(format!(
            "{}: the earlier state {entry} cannot be read, and stays in {} only",
            place(&*source, from, &key),
            report.from
        ));
        let key = key.to_string();
        report.unreadable.push(Unreadable { key, entry });
    }
    for name in copied.foreign {
        report.skipped.push(Skipped {
            file: from.join(name).display().to_string(),
            reason: "its name is not a possible key".to_owned(),
        });
    }
    for error in copied.skipped {
        let key = error.key().map(|key| place(&*source, from, key));
        report.skipped.push(Skipped {
            file: key.unwrap_or_default(),
            reason: match error.kind() {
                ErrorKind::UnknownFormat { found, .. } => found.clone(),
                kind => kind.to_string(),
            },
        });
    }
    for Skipped { file, reason } in &report.skipped {
        outcome.warn(format!(
            "{file}: was not copied, not a checkpoint: {reason}"
        ));
    }
    let is_empty = report.copied + report.present + report.refused.len() == 0;
    if is_empty {
        outcome.warn(format!(
            "{}: there are no checkpoints to copy; sub-folders are separate stores, and --prefix skips keys that \
             begin otherwise",
            report.from
        ));
    }
    let is_left = is_empty || !report.unreadable.is_empty() || !report.skipped.is_empty();
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

/// The file of a key, if it has its own.
fn file(store: &dyn CheckpointStore, path: &Path, key: &Key) -> Option<PathBuf> {
    let is_alone = !is_address(path) && !store.capabilities().embedded;
    is_alone
        .then(|| store.beside().document_file(key))
        .flatten()
}

/// The file of a key in a store, or the store and the key.
fn place(store: &dyn CheckpointStore, path: &Path, key: &Key) -> String {
    match file(store, path, key) {
        Some(file) => file.display().to_string(),
        None => format!("{} ({key})", shown(path).display()),
    }
}

/// The words with which a command line names a key of a store.
fn words(store: &dyn CheckpointStore, path: &Path, key: &Key) -> String {
    let path = shell_word(&shown(path).display().to_string());
    let key = shell_word(key.as_str());
    match store.capabilities().embedded {
        true => format!("--store {path} --slot {key}"),
        false => format!("--store {path} --key {key}"),
    }
}

/// Why a checkpoint was not copied, and what to do.
fn refused(
    error: Error,
    (source, from): (&dyn CheckpointStore, &Path),
    (target, to): (&dyn CheckpointStore, &Path),
) -> Failure {
    let Some(key) = error.key().cloned() else {
        return error.into();
    };
    let (from_here, to_there) = (place(source, from, &key), place(target, to, &key));
    let message = match error.kind() {
        ErrorKind::Conflict { .. } => Some(format!(
            "{from_here}: {to_there} has another checkpoint, or another state of this one, and was not changed; copy \
             into another store, or remove it first with `ckpt forget {} --apply`",
            words(target, to, &key)
        )),
        ErrorKind::Claimed { owner, until } => Some(format!(
            "{from_here}: claimed by {owner} until {}, and not copied; copy it once its owner is done, or copy its \
             present state with --include-claimed: its owner continues here",
            stamp(*until)
        )),
        ErrorKind::Corrupt(corrupt) => Some(format!(
            "{from_here}: corrupt: {corrupt}; recover it with `ckpt recover {}`, and copy it again",
            words(source, from, &key)
        )),
        kind if error.path().is_none() => Some(format!("{from_here}: {kind}")),
        _ => None,
    };
    let mut failure = Failure::from(error);
    if let Some(message) = message {
        failure.message = message;
    }
    failure.key = Some(key.to_string());
    failure
}

/// Decides whether a document is a checkpoint of a known format, as `status` does. If a format is named, every document
/// counts.
fn check(
    source: Arc<dyn CheckpointStore>,
    from: &Path,
    global: &Global,
) -> impl Fn(&Key, Result<&Stored, &Error>) -> Result<(), Error> + Send + Sync + 'static {
    let (from, global) = (from.to_path_buf(), global.clone());
    move |key, found| {
        if global.format.is_some() || source.capabilities().embedded {
            return Ok(());
        }
        let file = file(&*source, &from, key);
        let result = match (found, &file) {
            (Ok(stored), _) => {
                let by_name = file.unwrap_or_else(|| PathBuf::from(key.as_str()));
                global
                    .formats
                    .detect(&by_name, Some(&stored.document))
                    .and_then(|found| match found.format.is_host() {
                        true => Err(Error::wrong_input(format!(
                            "it is a host file, whose checkpoints are copied by `ckpt copy {} TO`",
                            shell_word(&by_name.display().to_string())
                        ))),
                        false => Ok(()),
                    })
            }
            (Err(error), Some(file)) => read::format_of_damaged(file, error, &global).map(drop),
            (Err(_), None) => Ok(()),
        };
        match result {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnknownFormat { .. } | ErrorKind::Other { .. }
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// The store to read from.
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

/// The store to write to; a folder is created.
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

/// The format that names the files of a store: the first one detected in its documents, else the named one. A document
/// of another format than the named one is refused.
fn format(store: &dyn CheckpointStore, global: &Global) -> Result<Option<Format>, Failure> {
    let formats = &global.formats;
    let named = global.format.as_ref().map(|name| formats.get(name));
    let named = named.transpose()?;
    let page = store.list(&Query::all().with_limit(LOOKED_AT))?;
    let found = page.keys().find_map(|key| {
        let stored = store.load(key).ok()??;
        let file = store.beside().document_file(key);
        let file = file.unwrap_or_else(|| Path::new(key.as_str()).to_path_buf());
        let found = formats.detect(&file, Some(&stored.document)).ok()?;
        Some((found.format, file))
    });
    match (named, found) {
        // In a host file each slot is judged separately.
        (Some(named), Some((found, file)))
            if named.name() != found.name() && !store.capabilities().embedded =>
        {
            Err(Failure::usage(format!(
                "{}: has the format {}, and a copy converts nothing; omit --format, and use `ckpt convert --to {}` \
                 for each checkpoint",
                file.display(),
                found.name(),
                named.name()
            )))
        }
        (Some(named), _) => Ok(Some(*named)),
        (None, found) => Ok(found.map(|(format, _)| format)),
    }
}
