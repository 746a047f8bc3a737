//! Reads a file before its format is known.

use std::path::Path;

use agent_checkpoint::formats::Format;
use agent_checkpoint::json::{self, Document};
use agent_checkpoint::store::{read_document, read_file};
use agent_checkpoint::{Error, ErrorKind};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::stdin;

/// The document of a file, or `None` if there is no file.
///
/// A text that is no document counts as corrupt if its format is named, if anything indicates its format, or if it
/// looks like a damaged object. Otherwise it is no checkpoint.
pub(crate) fn checkpoint(path: &Path, global: &Global) -> Result<Option<Document>, Error> {
    read_document(path, global.max_bytes).map_err(|error| {
        match format_of_damaged(path, &error, global) {
            Err(no_checkpoint) if global.format.is_none() => no_checkpoint,
            _ => error,
        }
    })
}

/// The readable part of a file that is no document; `None` if there is none.
pub(crate) fn good_part(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    let bytes = read_file(path, max_bytes)?;
    let salvaged = bytes.and_then(|bytes| json::salvage(&bytes));
    Ok(salvaged.map(|salvaged| salvaged.document))
}

/// The format of a file that is no document (which `error` describes): from its readable part, else from its history,
/// else from its place. Fails if it is no checkpoint.
pub(crate) fn format_of_damaged(
    path: &Path,
    error: &Error,
    global: &Global,
) -> Result<Option<Format>, Error> {
    let ErrorKind::Corrupt(cause) = error.kind() else {
        return Ok(None);
    };
    let bytes = read_file(path, global.max_bytes)?.unwrap_or_default();
    match global.formats.detect_damaged(path, &bytes, cause) {
        Ok(Some(found)) => Ok(Some(found.format)),
        other => match global.formats.detect_kept(path, global.max_bytes) {
            Some(found) => Ok(Some(found.format)),
            None => other.map(|_| None),
        },
    }
}

/// The document on standard input.
pub(crate) fn input(global: &Global) -> Result<Document, Failure> {
    let text = stdin::read(global.max_bytes)?;
    Document::parse(&text).map_err(|corrupt| Failure {
        code: corrupt.code.as_str(),
        ..Failure::exiting(
            Exit::Corrupt,
            format!("standard input is corrupt: {corrupt}; check what writes it"),
        )
    })
}

/// The text of a file that is no checkpoint, such as a template.
pub(crate) fn text(path: &Path, max_bytes: u64) -> Result<String, Failure> {
    let bytes = match stdin::is_named(path) {
        true => stdin::read(max_bytes)?,
        false => read_file(path, max_bytes)?.ok_or_else(|| no_such_file(path))?,
    };
    if bytes.len() as u64 > max_bytes {
        let message = format!("has more than {max_bytes} bytes; shorten it or raise --max-bytes");
        return Err(Failure::new(message).at(Some(path), None));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::new("is not UTF-8 text; save it as UTF-8").at(Some(path), None))
}

/// The message about a file that does not exist.
pub(crate) fn no_such_file(path: &Path) -> Failure {
    let place = path.display();
    let message = format!("{place}: there is no such file; check the path");
    Failure::not_found(message).at(Some(path), None)
}
