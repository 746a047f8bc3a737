//! The one error type of the library.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::claim::{Fenced, stamp};
use super::{Expect, Key, Operation, Revision};
use crate::fsio::FileError;
use crate::json::{Corrupt, EditError, RewriteError, Unreadable, quoted_short, shortened};

/// The result of an operation of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the key or file it went wrong at.
///
/// Match on [`kind`](Error::kind). The text names the file or key, what failed, and what to do
/// next; the cause, where there is one, is the [`source`](StdError::source) and is not repeated.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    key: Option<Key>,
    path: Option<PathBuf>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of failure an [`Error`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are no document.
    Corrupt(Corrupt),
    /// No checkpoint is under the key.
    NotFound,
    /// The document is not in the state that the caller expected.
    Conflict {
        /// What the caller expected.
        expected: Expect,
        /// What is there.
        found: Option<Revision>,
    },
    /// A text that cannot be a key.
    InvalidKey {
        /// The text.
        text: String,
        /// Why it cannot.
        reason: &'static str,
    },
    /// A text that is no revision.
    InvalidRevision {
        /// The text.
        text: String,
    },
    /// A later version of the format wrote the checkpoint: it can be read, not written.
    NewerSchema {
        /// The version in the checkpoint.
        found: u64,
        /// The latest version this library writes.
        known: u64,
    },
    /// More bytes than the limit, so it was not read.
    TooLarge {
        /// Bytes there are.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The document would have more bytes than could be read again; nothing was written.
    WouldBeTooLarge {
        /// Bytes it would have.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Another holds the lock, and did so until the deadline.
    Locked {
        /// How long it was waited for.
        waited: Duration,
        /// Who holds it, where that is known.
        holder: Option<String>,
        /// The holder's process, where that is known.
        pid: Option<u32>,
        /// For how long it has held it, where that is known.
        held_for: Option<Duration>,
    },
    /// Another has claimed the task, and the write shows no fence.
    Claimed {
        /// Who.
        owner: String,
        /// Until when the claim stands.
        until: DateTime<Utc>,
    },
    /// The fence that a write shows is not, or no longer, that of a claim that stands.
    Fenced {
        /// The fence.
        fence: u64,
        /// Why it does not open.
        why: Fenced,
    },
    /// Another agent or session has the task, according to its checkpoint: its former agent must stop writing.
    TakenOver {
        /// Who has it now, where the checkpoint says so.
        by: Option<String>,
    },
    /// There is no such state in the history.
    NoSuchRevision {
        /// What was asked for.
        wanted: String,
    },
    /// There is nothing to go on with.
    NotRecoverable {
        /// What was tried, and what else can be.
        detail: String,
    },
    /// The store does not have this.
    NotOffered {
        /// What it does not have.
        what: &'static str,
    },
    /// Another checkpoint's name differs only in upper and lower case: on many systems they would be one
    /// file.
    Twin {
        /// The other's file.
        other: String,
    },
    /// A symbolic link leads out of the store.
    LeadsOutside,
    /// The file cannot be replaced: it is a mount point.
    Busy,
    /// The file system has no locks.
    NoLocks,
    /// Another program, which does not take the lock, kept changing the file meanwhile.
    ChangedMeanwhile,
    /// A write would replace or remove values that could not be read.
    WouldLose {
        /// Where they are.
        pointers: Vec<String>,
    },
    /// A value does not come back from its text as it was, so nothing was written.
    NotFaithful {
        /// What differs.
        detail: String,
    },
    /// Not even part of the document can be read as this format.
    Unreadable {
        /// Why.
        detail: String,
    },
    /// An older checkpoint could not be read as the latest version of its format.
    Migration {
        /// Its version.
        from: u64,
        /// The version whose migration failed.
        to: u64,
    },
    /// A place in the document cannot be changed as asked.
    Edit {
        /// Why.
        detail: String,
    },
    /// A file has more than one checkpoint, or fits more than one format.
    Ambiguous {
        /// What was looked for.
        what: &'static str,
        /// What there is to choose from.
        candidates: Vec<String>,
    },
    /// A file of a format that is not known here.
    UnknownFormat {
        /// The name that was asked for; `None` when the file fits no format, and so is no checkpoint.
        name: Option<String>,
        /// What the file is, such as a JSON list; empty where a name was asked for.
        found: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The host file has no such place for a checkpoint.
    NoSuchSlot {
        /// The slot asked for.
        slot: String,
        /// The slots there are.
        slots: Vec<String>,
    },
    /// The store was opened for reading only.
    ReadOnly,
    /// A template that cannot be read or rendered.
    Template {
        /// Why.
        detail: String,
    },
    /// The format has no such operation.
    Unsupported {
        /// The operation.
        operation: String,
        /// The operations it has.
        supported: Vec<String>,
    },
    /// The protocol has no such transition.
    Transition {
        /// The state there is.
        from: String,
        /// The state asked for.
        to: String,
        /// The states that can follow.
        allowed: Vec<String>,
    },
    /// The operation does not go with the checkpoint's state.
    Refused {
        /// Why, and what to do.
        detail: String,
    },
    /// A folder, pipe, socket or device stands where a file is expected.
    NotAFile,
    /// No folder is where one is expected.
    NotAFolder,
    /// A symbolic link leads to nothing, or round in a circle.
    DanglingLink,
    /// The file is write-protected.
    WriteProtected,
    /// The disk has no room left; what was there is unchanged.
    DiskFull,
    /// The new document is in place, but may not survive a loss of power.
    NotDurable,
    /// The operating system refused.
    Io,
}

impl Error {
    /// An error of this kind, without place or cause.
    #[must_use]
    pub fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Inner {
            kind,
            key: None,
            path: None,
            source: None,
        }))
    }

    /// An error that says why an operation does not go with the checkpoint's state; for the
    /// closures that change a checkpoint.
    pub fn refused(detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Refused {
            detail: detail.into(),
        })
    }

    /// An error that says that a format lacks an operation.
    #[must_use]
    pub fn unsupported(operation: &Operation, supported: &[&str]) -> Error {
        Error::new(ErrorKind::Unsupported {
            operation: operation.name().to_owned(),
            supported: supported.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    /// An error that says that a protocol lacks a transition.
    pub fn transition<S: ToString>(
        from: impl Into<String>,
        to: impl Into<String>,
        allowed: impl IntoIterator<Item = S>,
    ) -> Error {
        Error::new(ErrorKind::Transition {
            from: from.into(),
            to: to.into(),
            allowed: allowed.into_iter().map(|state| state.to_string()).collect(),
        })
    }

    /// The same error, with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// The same error, at a key; a key that it has already is kept.
    #[must_use]
    pub fn with_key(mut self, key: &Key) -> Error {
        self.0.key.get_or_insert_with(|| key.clone());
        self
    }

    /// The same error, at a file; a file that it has already is kept.
    #[must_use]
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Error {
        self.0
            .path
            .get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    fn file_error(&self) -> Option<&FileError> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether the caller's time on the task is over, because another has it: there is nothing to do but
    /// to stop.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        match self.kind() {
            ErrorKind::TakenOver { .. } | ErrorKind::Claimed { .. } => true,
            ErrorKind::Fenced { why, .. } => !matches!(why, Fenced::Expired { .. }),
            _ => false,
        }
    }

    /// The key it is about, where there is one.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.0.key.as_ref()
    }

    /// The file it is about, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The ground floor names the file and the next step itself.
        if let Some(file) = self.file_error() {
            return file.fmt(f);
        }
        match (&self.0.path, &self.0.key) {
            (Some(path), Some(key)) if !path.to_string_lossy().contains(key.as_str()) => {
                write!(f, "{} ({key}): ", path.display())?;
            }
            (Some(path), _) => write!(f, "{}: ", path.display())?,
            (None, Some(key)) => write!(f, "{key}: ")?,
            (None, None) => {}
        }
        match &self.0.kind {
            ErrorKind::Corrupt(corrupt) => write!(f, "corrupt: {corrupt}"),
            ErrorKind::NotFound => f.write_str("there is no checkpoint here; start one first"),
            ErrorKind::Conflict { expected, found } => {
                write!(f, "changed meanwhile: expected {expected}, found ")?;
                match found {
                    Some(revision) => write!(f, "revision {revision}")?,
                    None => f.write_str("no document")?,
                }
                f.write_str("; load it again and decide anew")
            }
            ErrorKind::InvalidKey { text, reason } => {
                write!(f, "{} cannot be a key: {reason}", quoted_short(text))
            }
            ErrorKind::InvalidRevision { text } => {
                write!(
                    f,
                    "{} is no revision; take one from a load or a save",
                    quoted_short(text)
                )
            }
            ErrorKind::NewerSchema { found, known } => write!(
                f,
                "written by a newer program (schema version {found}, this one writes {known}): \
                 it can be read, not changed; update this program"
            ),
            ErrorKind::Migration { from, to } => write!(
                f,
                "its schema version {from} could not be brought to version {to}; it is as it was, \
                 mend it by hand or with the program that wrote it"
            ),
            ErrorKind::TooLarge { size, limit } => write!(
                f,
                "{size} bytes, and the limit is {limit}; raise the limit or make it smaller"
            ),
            ErrorKind::WouldBeTooLarge { size, limit } => write!(
                f,
                "it would have {size} bytes, and more than {limit} could not be read again; \
                 nothing was written, make it smaller or raise the limit"
            ),
            ErrorKind::Locked {
                waited,
                holder,
                held_for,
                ..
            } => {
                let holder = holder.as_deref().unwrap_or("another process");
                write!(f, "locked by {holder}")?;
                if let Some(held_for) = held_for {
                    write!(f, " for {:.1} s", held_for.as_secs_f64())?;
                }
                let waited = waited.as_secs_f64();
                write!(
                    f,
                    "; gave up after {waited:.1} s, try again when it is done"
                )
            }
            ErrorKind::Claimed { owner, until } => write!(
                f,
                "claimed by {owner} until {}; write with the fence of that claim, wait until it runs \
                 out, or take over once its owner has ended for sure",
                stamp(*until)
            ),
            ErrorKind::Fenced { fence, why } => {
                write!(f, "the write with fence {fence} is refused: {why}")
            }
            ErrorKind::TakenOver { by } => {
                let by = by.as_deref().unwrap_or("another");
                write!(
                    f,
                    "{by} has the task now; stop, and leave it to {by}; nothing was written"
                )
            }
            ErrorKind::NoSuchRevision { wanted } => write!(
                f,
                "{} is no state of its history; take one that `history` lists",
                quoted_short(wanted)
            ),
            ErrorKind::NotRecoverable { detail } => f.write_str(detail),
            ErrorKind::NotOffered { what } => write!(f, "this store has no {what}"),
            ErrorKind::Twin { other } => write!(
                f,
                "{other} is there, and differs only in upper and lower case: on many systems the two would be \
                 one file; choose another key"
            ),
            ErrorKind::LeadsOutside => {
                f.write_str("is a symbolic link that leads out of the store")
            }
            ErrorKind::Busy => f.write_str("cannot be replaced: it is a mount point"),
            ErrorKind::NoLocks => f.write_str("the file system has no locks"),
            ErrorKind::ChangedMeanwhile => f.write_str(
                "another program keeps changing it; nothing was written, try again when it is done",
            ),
            ErrorKind::WouldLose { pointers } => write!(
                f,
                "this would overwrite values that could not be read, at {}; \
                 mend them first or allow the loss",
                pointers.join(", ")
            ),
            ErrorKind::NotFaithful { detail } => write!(
                f,
                "the value does not come back as it was: {detail}; nothing was written"
            ),
            ErrorKind::Unreadable { detail } => {
                write!(f, "cannot be read as this format: {detail}")
            }
            ErrorKind::Edit { detail } => f.write_str(detail),
            ErrorKind::Ambiguous { what, candidates } => {
                write!(
                    f,
                    "more than one {what}: choose one of {}",
                    candidates.join(", ")
                )
            }
            ErrorKind::UnknownFormat { name, found, known } => match name {
                Some(name) => write!(
                    f,
                    "{} is no known format; name one of {}",
                    quoted_short(name),
                    known.join(", ")
                ),
                None => write!(
                    f,
                    "no checkpoint: {found}; if it is one all the same, name its format, one of {}",
                    known.join(", ")
                ),
            },
            ErrorKind::NoSuchSlot { slot, slots } if slots.is_empty() => {
                write!(
                    f,
                    "no place for the checkpoint {} in this host file",
                    quoted_short(slot)
                )
            }
            ErrorKind::NoSuchSlot { slot, slots } => write!(
                f,
                "no place for the checkpoint {} in this host file; it has {}",
                quoted_short(slot),
                slots.join(", ")
            ),
            ErrorKind::ReadOnly => f.write_str("opened for reading only"),
            ErrorKind::Template { detail } => write!(f, "the template {detail}"),
            ErrorKind::Unsupported {
                operation,
                supported,
            } => write!(
                f,
                "this format has no operation `{operation}`; it has {}",
                supported.join(", ")
            ),
            ErrorKind::Transition { from, to, allowed } => {
                write!(
                    f,
                    "there is no transition from {0} to {1}; from {0} it goes ",
                    shortened(from),
                    shortened(to)
                )?;
                match allowed.as_slice() {
                    [] => f.write_str("nowhere")?,
                    allowed => write!(f, "to {}", allowed.join(", "))?,
                }
                f.write_str("; forced, it is made all the same")
            }
            ErrorKind::Refused { detail } => f.write_str(detail),
            ErrorKind::NotAFile => f.write_str("is no regular file"),
            ErrorKind::NotAFolder => f.write_str("is no folder; name one that is there"),
            ErrorKind::DanglingLink => f.write_str("is a symbolic link to nothing"),
            ErrorKind::WriteProtected => f.write_str("is write-protected"),
            ErrorKind::DiskFull => f.write_str("the disk is full"),
            ErrorKind::NotDurable => f.write_str("saved, but it may not survive a loss of power"),
            ErrorKind::Io => f.write_str("the operating system refused; see the cause"),
        }
    }
}

/// The text and its causes, for a `main` that returns the error; with `{:#?}` the parts of the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{self}")?;
            let mut source = self.source();
            while let Some(cause) = source {
                write!(f, "\n  caused by: {cause}")?;
                source = cause.source();
            }
            return Ok(());
        }
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("key", &self.0.key)
            .field("path", &self.0.path)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self.file_error() {
            // Its text is this error's text, so the chain goes on below it.
            Some(file) => file.source(),
            None => Some(self.0.source.as_deref()?),
        }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        let (kind, path) = match &error {
            FileError::DiskFull { path, .. } => (ErrorKind::DiskFull, path),
            FileError::NotDurable { path, .. } => (ErrorKind::NotDurable, path),
            FileError::NotAFile { path } => (ErrorKind::NotAFile, path),
            FileError::NotAFolder { path } => (ErrorKind::NotAFolder, path),
            FileError::DanglingLink { path, .. } | FileError::LinkLoop { path } => {
                (ErrorKind::DanglingLink, path)
            }
            FileError::TooLarge { path, size, limit } => (
                ErrorKind::TooLarge {
                    size: *size,
                    limit: *limit,
                },
                path,
            ),
            FileError::Busy { path, .. } => (ErrorKind::Busy, path),
            FileError::NoLocks { path, .. } => (ErrorKind::NoLocks, path),
            FileError::LeadsOutside { path, .. } => (ErrorKind::LeadsOutside, path),
            FileError::WriteProtected { path } => (ErrorKind::WriteProtected, path),
            FileError::Locked {
                lock,
                waited,
                holder,
                held_for,
            } => (
                ErrorKind::Locked {
                    waited: *waited,
                    holder: holder.clone(),
                    pid: crate::fsio::pid_of(holder.as_deref()),
                    held_for: *held_for,
                },
                lock,
            ),
            FileError::Changed { path } => (ErrorKind::ChangedMeanwhile, path),
            FileError::Io { path, .. } => (ErrorKind::Io, path),
        };
        Error::new(kind).with_path(path.clone()).with_source(error)
    }
}

impl From<Corrupt> for Error {
    fn from(corrupt: Corrupt) -> Error {
        Error::new(ErrorKind::Corrupt(corrupt))
    }
}

impl From<Unreadable> for Error {
    fn from(unreadable: Unreadable) -> Error {
        Error::new(ErrorKind::Unreadable {
            detail: unreadable.to_string(),
        })
    }
}

impl From<EditError> for Error {
    fn from(edit: EditError) -> Error {
        let mut detail = edit.to_string();
        if let Some(cause) = edit.source() {
            detail.push_str(": ");
            detail.push_str(&cause.to_string());
        }
        Error::new(ErrorKind::Edit { detail })
    }
}

impl From<RewriteError> for Error {
    fn from(error: RewriteError) -> Error {
        match error {
            RewriteError::Loss { pointers } => Error::new(ErrorKind::WouldLose { pointers }),
            RewriteError::Edit(edit) => edit.into(),
            other => Error::new(ErrorKind::NotFaithful {
                detail: other.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program prints whose `main` returns the error.
    #[test]
    fn debug_is_the_text_with_its_causes() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = Error::new(ErrorKind::Io)
            .with_path("a.json")
            .with_source(denied);
        assert_eq!(
            format!("{error:?}"),
            "a.json: the operating system refused; see the cause\n  caused by: permission denied"
        );
        assert!(format!("{error:#?}").starts_with("Error {\n    kind: Io,"));
    }
}
