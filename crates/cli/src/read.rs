//! Reading a file as it is, before anything is known of its format.

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::json::{self, Document};
use agent_checkpoint::store::HistoryEntry;
use agent_checkpoint::{
    CheckpointStore, Error, ErrorKind, FileOptions, FileStore, Format, Formats, fsio,
};

use crate::args::Global;
use crate::failure::Failure;

/// How long after a corrupt reading a file is read again: some programs cut a file and fill it again
/// in place.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// A file that was last written longer ago than this is not just being written.
const AT_REST: Duration = Duration::from_millis(250);

/// How often a file is read again that looks corrupt and is just being written.
const LOOKS: usize = 25;

/// The document of a file, or `None` when there is no file.
///
/// What is no document is corrupt where its format is named, where anything tells its format, and where it looks like a
/// damaged object; else it is no checkpoint.
pub(crate) fn checkpoint(path: &Path, global: &Global) -> Result<Option<Document>, Error> {
    document(path, global.max_bytes).map_err(|error| {
        match format_of_damaged(path, &error, global.max_bytes) {
            Err(no_checkpoint) if global.format.is_none() => no_checkpoint,
            _ => error,
        }
    })
}

/// The document of a file, of whatever it is. Corrupt is, as for a store, what two looks at a file at rest find so.
pub(crate) fn document(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    let mut last = None;
    for look in 1..=LOOKS {
        let Some(contents) = fsio::read_limited(path, max_bytes)? else {
            return Ok(None);
        };
        let is_at_rest = || {
            let age = contents.modified.and_then(|at| at.elapsed().ok());
            age.is_none_or(|age| age >= AT_REST)
        };
        match Document::parse(&contents.bytes) {
            Ok(document) => return Ok(Some(document)),
            Err(corrupt)
                if last.as_ref() == Some(&contents.stamp) && (look == LOOKS || is_at_rest()) =>
            {
                return Err(Error::from(corrupt).with_path(path));
            }
            Err(_) => last = Some(contents.stamp),
        }
        std::thread::sleep(SECOND_LOOK);
    }
    Err(Error::new(ErrorKind::ChangedMeanwhile).with_path(path))
}

/// The good part of a file that is no document; `None` when nothing is left of it.
pub(crate) fn good_part(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    let contents = fsio::read_limited(path, max_bytes)?;
    let salvaged = contents.and_then(|contents| json::salvage(&contents.bytes));
    Ok(salvaged.map(|salvaged| salvaged.document))
}

/// The format of a file that is no document, as this error says: by what is left of it, else of what the history keeps
/// for it, else of its place. An error says that it is no checkpoint.
pub(crate) fn format_of_damaged(
    path: &Path,
    error: &Error,
    max_bytes: u64,
) -> Result<Option<Format>, Error> {
    let ErrorKind::Corrupt(cause) = error.kind() else {
        return Ok(None);
    };
    let formats = Formats::default();
    let contents = fsio::read_limited(path, max_bytes)?;
    let bytes = contents.map_or_else(Vec::new, |contents| contents.bytes);
    match formats.detect_damaged(path, &bytes, cause) {
        Ok(Some(found)) => Ok(Some(found.format)),
        other => match kept_format(path, max_bytes) {
            Some(format) => Ok(Some(format)),
            None => other.map(|_| None),
        },
    }
}

/// The format of the newest state that the history keeps of a file, of whatever task.
fn kept_format(path: &Path, max_bytes: u64) -> Option<Format> {
    let options = FileOptions::read_only().with_max_bytes(max_bytes);
    let store = FileStore::single(path, options).ok()?;
    let key = store.key()?.clone();
    let is_good = |entry: &HistoryEntry| !entry.is_current() && entry.revision.is_ok();
    let mut entries = store.history(&key).ok()?.into_iter();
    let found = entries.find(is_good)?.id;
    let stored = store.load_revision(&key, &found).ok()?;
    let detected = Formats::default()
        .detect(path, Some(&stored.document))
        .ok()?;
    Some(detected.format)
}

/// The text of a file that is no checkpoint, such as a template.
pub(crate) fn text(path: &Path, max_bytes: u64) -> Result<String, Failure> {
    let contents = fsio::read_limited(path, max_bytes)
        .map_err(Error::from)?
        .ok_or_else(|| no_such_file(path))?;
    String::from_utf8(contents.bytes).map_err(|_| {
        Failure::new(format!(
            "{}: is no UTF-8 text; save it as UTF-8",
            path.display()
        ))
    })
}

/// What a user is told who names a file that is not there.
pub(crate) fn no_such_file(path: &Path) -> Failure {
    Failure::new(format!(
        "{}: there is no such file; check the path",
        path.display()
    ))
}
