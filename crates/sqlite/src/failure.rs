//! Failures below the store, turned into errors of the library.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use agent_checkpoint::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Why a step of the store failed: SQLite refused, or a rule of the store did.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    Rule(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sqlite(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Failure {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Failure::Sqlite(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Rule(error)
    }
}

/// The result of a step of the store.
pub(crate) type Step<T> = Result<T, Failure>;

impl Failure {
    /// Whether another connection had a lock for longer than this one waits.
    pub(crate) fn is_busy(&self) -> bool {
        let Failure::Sqlite(error) = self else {
            return false;
        };
        use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
        let code = error.sqlite_error_code();
        matches!(
            code,
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed)
        )
    }

    /// Turns the failure into an error of the library that names this database. `waited` is how long the call has
    /// waited.
    pub(crate) fn into_error(self, path: &Path, waited: Duration) -> Error {
        if self.is_busy() {
            return locked(waited).with_path(path);
        }
        let error = match self {
            Failure::Rule(error) => return error,
            Failure::Sqlite(error) => error,
        };
        let error_here = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => other(
                "disk-full",
                "the disk is full; nothing was written, free some space and try again",
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => write_protected(),
            Some(ErrorCode::CannotOpen) => return cannot_open(path, error),
            Some(ErrorCode::NotADatabase) => other(
                "not-a-database",
                "is not a SQLite database; nothing was written, name another file",
            ),
            Some(ErrorCode::DatabaseCorrupt) => other(
                "damaged-database",
                "the database is damaged; nothing was written, bring it back from a copy, or try `.recover` of the program \
                 sqlite3 on a copy of it and of its `-wal`",
            ),
            _ => Error::new(ErrorKind::Io),
        };
        error_here.with_path(path).with_source(error)
    }
}

pub(crate) fn locked(waited: Duration) -> Error {
    Error::new(ErrorKind::Locked {
        waited,
        holder: None,
        pid: None,
        held_for: None,
    })
}

/// An error with a code that only this store uses.
pub(crate) fn other(code: &'static str, message: impl Into<String>) -> Error {
    let message = message.into();
    Error::new(ErrorKind::Other { code, message })
}

pub(crate) fn write_protected() -> Error {
    other(
        "write-protected",
        "this user may not write it; grant the right to write the file, its `-wal` and `-shm`, and its folder",
    )
}

/// Why the file of a database could not be made.
pub(crate) fn cannot_make(path: &Path, error: io::Error) -> Error {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let shown = folder.display();
    let error_here = match error.kind() {
        _ if !folder.is_dir() => other(
            "not-a-folder",
            format!("its folder {shown} does not exist; make it first"),
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => other(
            "write-protected",
            format!(
                "cannot be made, because this user may not write to {shown}; name another place"
            ),
        ),
        _ => Error::new(ErrorKind::Io),
    };
    error_here.with_path(path).with_source(error)
}

/// Finds out why SQLite cannot open a file, which it does not say: this tries whether the system can open as many files
/// as SQLite needs.
fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Not the database itself: SQLite's locks on it end when any part of the process closes it.
    let opened: io::Result<Vec<_>> = (0..4).map(|_| File::open(folder)).collect();
    match opened {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            let error_here = Error::new(ErrorKind::Io);
            error_here.with_path(path).with_source(error)
        }
        _ => write_protected().with_path(path).with_source(error),
    }
}
