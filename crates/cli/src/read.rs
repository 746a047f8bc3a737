//! Reading a file as it is, before anything is known of its format.

use std::path::Path;
use std::time::Duration;

use agent_checkpoint::json::{self, Document};
use agent_checkpoint::{Error, ErrorKind, fsio};

use crate::failure::Failure;

/// How long after a corrupt reading a file is read again: some programs cut a file and fill it again
/// in place.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// The document of a file, or `None` when there is no file.
pub(crate) fn document(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    match read_once(path, max_bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
            std::thread::sleep(SECOND_LOOK);
            read_once(path, max_bytes)
        }
        result => result,
    }
}

fn read_once(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    let Some(contents) = fsio::read_limited(path, max_bytes)? else {
        return Ok(None);
    };
    let document =
        Document::parse(&contents.bytes).map_err(|corrupt| Error::from(corrupt).with_path(path))?;
    Ok(Some(document))
}

/// The good part of a file that is no document; `None` when nothing is left of it.
pub(crate) fn good_part(path: &Path, max_bytes: u64) -> Result<Option<Document>, Error> {
    let contents = fsio::read_limited(path, max_bytes)?;
    let salvaged = contents.and_then(|contents| json::salvage(&contents.bytes));
    Ok(salvaged.map(|salvaged| salvaged.document))
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
