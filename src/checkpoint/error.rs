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

/// The error of every operation, with the key or file that it concerns.
///
/// Match on [`kind`](Error::kind). The text names the file or key, what failed, and the next step. The cause,
/// if there is one, is the [`source`](StdError::source) and is not repeated in the text.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    key: Option<Key>,
    path: Option<PathBuf>,
    report: Option<usize>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of failure of an [`Error`], with the details that a caller may need.
///
/// [`Error::code`] gives the kind as a word.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not a JSON document.
    #[error("corrupt: {0}")]
    Corrupt(Corrupt),
    /// There is no checkpoint under the key.
    #[error("there is no checkpoint here; start one first")]
    NotFound,
    /// The document is not in the state that the caller expected.
    #[error("changed in the meantime: expected {expected}, found {}; load it again and redo the change", what_is_there(found.as_ref()))]
    Conflict {
        /// What the caller expected.
        expected: Expect,
        /// The revision in the store; `None` if there is no document.
        found: Option<Revision>,
    },
    /// A text that cannot be a key.
    #[error("{} cannot be a key: {reason}", quoted_short(text))]
    InvalidKey {
        /// The text.
        text: String,
        /// Why it cannot be a key.
        reason: &'static str,
    },
    /// A later version of the format wrote the checkpoint: it can be read, not written.
    #[error(
        "written by a newer program (schema version {found}, this one writes {known}): \
         it can be read, not changed; update this program"
    )]
    NewerSchema {
        /// The version in the checkpoint.
        found: u64,
        /// The latest version this library writes.
        known: u64,
    },
    /// A later version of this library laid out the store's own folder: it can be read, not written.
    #[error(
        "a newer program laid out its folder (layout {found}, this one writes {known}): \
         it can be read, not changed; update this program"
    )]
    NewerLayout {
        /// The number of the layout.
        found: u64,
        /// The latest layout that this library writes.
        known: u64,
    },
    /// The file has more bytes than the limit. It was not read; or it was not written, because it could not be
    /// read again.
    #[error("{}", too_large(*size, *limit, *is_new))]
    TooLarge {
        /// Its size, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
        /// Whether the size is that of a write, rather than of a file that was read.
        is_new: bool,
    },
    /// Another process held the lock until the deadline.
    #[error(
        "locked by {}{}; gave up after {:.1} s, try again when it is done",
        holder.as_deref().unwrap_or("another process"),
        held_for.map_or_else(String::new, |held| format!(" for {:.1} s", held.as_secs_f64())),
        waited.as_secs_f64()
    )]
    Locked {
        /// How long this call waited.
        waited: Duration,
        /// The holder of the lock, if known.
        holder: Option<String>,
        /// The process id of the holder, if known.
        pid: Option<u32>,
        /// How long the holder has held it, if known.
        held_for: Option<Duration>,
    },
    /// Another owner has claimed the task, and the write states no fence.
    #[error(
        "claimed by {owner} until {}; write with the fence of that claim, wait until the claim expires, or take the \
         task over once its owner has certainly ended",
        stamp(*until)
    )]
    Claimed {
        /// The other owner.
        owner: String,
        /// When its claim expires.
        until: DateTime<Utc>,
    },
    /// The fence of a write does not belong to a valid claim, or no longer does.
    #[error("the write with fence {fence} is refused: {why}")]
    Fenced {
        /// The fence.
        fence: u64,
        /// Why it is refused.
        why: Fenced,
    },
    /// The checkpoint names another agent or session as the owner of the task. The former owner may not write
    /// any more.
    #[error(
        "{by} has the task now, so nothing was written; stop, and leave the task to {by}",
        by = by.as_deref().unwrap_or("another")
    )]
    TakenOver {
        /// The new owner, if the checkpoint names it.
        by: Option<String>,
    },
    /// The history has no such state.
    #[error(
        "{} is not a state in its history; choose one that `history` lists",
        quoted_short(wanted)
    )]
    NoSuchRevision {
        /// The entry that was asked for.
        wanted: String,
    },
    /// There is no state to recover from.
    #[error("{detail}")]
    NotRecoverable {
        /// What was tried, and what else is possible.
        detail: String,
    },
    /// The store does not offer this.
    #[error("this store does not support {what}")]
    NotOffered {
        /// What it does not offer.
        what: &'static str,
    },
    /// Another program, which does not take the lock, kept changing the file during the write.
    #[error("another program keeps changing it; nothing was written, try again when it is done")]
    ChangedMeanwhile,
    /// A write would replace or remove values that could not be read.
    #[error(
        "this would overwrite values that could not be read, at {}; \
         correct them first or allow the loss",
        pointers.join(", ")
    )]
    WouldLose {
        /// The JSON pointers of these values.
        pointers: Vec<String>,
    },
    /// No part of the document, or of a record that the store keeps beside it, can be read.
    #[error("cannot be read: {detail}")]
    Unreadable {
        /// Why.
        detail: String,
    },
    /// A file has more than one checkpoint, or fits more than one format.
    #[error("more than one {what}: choose one of {}", candidates.join(", "))]
    Ambiguous {
        /// What there is more than one of.
        what: &'static str,
        /// The possible choices.
        candidates: Vec<String>,
    },
    /// The format of the file is not registered here.
    #[error("{}", unknown_format(name.as_deref(), found, known))]
    UnknownFormat {
        /// The name that was asked for; `None` if the file matches no format and so is no checkpoint.
        name: Option<String>,
        /// What the file contains, such as a JSON list; empty if a format was asked for by name.
        found: String,
        /// The names of the registered formats.
        known: Vec<String>,
    },
    /// The store was opened for reading only.
    #[error("the store was opened for reading only; open it for writing")]
    ReadOnly,
    /// The format has no such operation.
    #[error("this format has no operation `{operation}`; it has {}", if supported.is_empty() { "none".to_owned() } else { supported.join(", ") })]
    Unsupported {
        /// The operation.
        operation: String,
        /// The operations it has.
        supported: Vec<String>,
    },
    /// The protocol has no such transition.
    #[error(
        "there is no transition from {from} to {}; from {from} it goes {}; force the change to make it anyway",
        shortened(to),
        match allowed.as_slice() {
            [] => "nowhere".to_owned(),
            allowed => format!("to {}", allowed.join(", ")),
        },
        from = shortened(from)
    )]
    Transition {
        /// The present state.
        from: String,
        /// The requested state.
        to: String,
        /// The states that may follow.
        allowed: Vec<String>,
    },
    /// The operation does not fit the state of the checkpoint.
    #[error("{detail}")]
    Refused {
        /// Why, and the next step.
        detail: String,
    },
    /// The new document is in place, but may not survive a loss of power.
    #[error("saved, but it may not survive a loss of power")]
    NotDurable,
    /// The file system returned an error, or the path is not a regular file that can be read and replaced. The
    /// [code](Error::code) says which: `disk-full`, `write-protected`, `not-a-file`, `dangling-link`,
    /// `leads-outside`, `busy`, `no-locks`, or `io` for everything else.
    #[error("the operating system refused; see the cause")]
    Io,
    /// Any other failure. A caller can only report its text.
    #[error("{message}")]
    Other {
        /// The failure as a word, such as `migration`.
        code: &'static str,
        /// What failed and what to do next.
        message: String,
    },
}

impl ErrorKind {
    fn code(&self) -> &'static str {
        match self {
            ErrorKind::Corrupt(corrupt) => corrupt.code.as_str(),
            ErrorKind::NotFound => "not-found",
            ErrorKind::Conflict { .. } => "conflict",
            ErrorKind::InvalidKey { .. } => "invalid-key",
            ErrorKind::NewerSchema { .. } => "newer-schema",
            ErrorKind::NewerLayout { .. } => "newer-layout",
            ErrorKind::TooLarge { is_new: false, .. } => "too-large",
            ErrorKind::TooLarge { .. } => "would-be-too-large",
            ErrorKind::Locked { .. } => "locked",
            ErrorKind::Claimed { .. } => "claimed",
            ErrorKind::Fenced { .. } => "fenced",
            ErrorKind::TakenOver { .. } => "taken-over",
            ErrorKind::NoSuchRevision { .. } => "no-such-revision",
            ErrorKind::NotRecoverable { .. } => "not-recoverable",
            ErrorKind::NotOffered { .. } => "not-offered",
            ErrorKind::ChangedMeanwhile => "changed-meanwhile",
            ErrorKind::WouldLose { .. } => "would-lose",
            ErrorKind::Unreadable { .. } => "unreadable",
            ErrorKind::Ambiguous { .. } => "ambiguous",
            ErrorKind::UnknownFormat { name: None, .. } => "no-checkpoint",
            ErrorKind::UnknownFormat { .. } => "unknown-format",
            ErrorKind::ReadOnly => "read-only",
            ErrorKind::Unsupported { .. } => "unsupported",
            ErrorKind::Transition { .. } => "transition",
            ErrorKind::Refused { .. } => "refused",
            ErrorKind::NotDurable => "not-durable",
            ErrorKind::Io => "io",
            ErrorKind::Other { code, .. } => code,
        }
    }
}

fn what_is_there(found: Option<&Revision>) -> String {
    found.map_or_else(
        || "no document".to_owned(),
        |revision| format!("revision {revision}"),
    )
}

fn too_large(size: u64, limit: u64, is_new: bool) -> String {
    match is_new {
        false => {
            format!("{size} bytes, and the limit is {limit}; raise the limit or make it smaller")
        }
        true => format!(
            "it would have {size} bytes, and more than {limit} could not be read again; \
             nothing was written, make it smaller or raise the limit"
        ),
    }
}

fn unknown_format(name: Option<&str>, found: &str, known: &[String]) -> String {
    let known = known.join(", ");
    match name {
        Some(name) => format!(
            "{} is not a known format; name one of {known}",
            quoted_short(name)
        ),
        None => format!(
            "not recognized as a checkpoint: {found}; if it is one, name its format, one of {known}"
        ),
    }
}

impl Error {
    /// An error of this kind, without key, path or cause.
    #[must_use]
    pub fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Inner {
            kind,
            key: None,
            path: None,
            report: None,
            source: None,
        }))
    }

    /// An error that says why an operation does not fit the state of the checkpoint. It is meant for closures
    /// that change a checkpoint.
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

    /// An error about the input of a call, which a caller can only report.
    pub fn wrong_input(message: impl Into<String>) -> Error {
        Error::other("failed", message)
    }

    /// An error of a template.
    #[cfg(feature = "template")]
    pub(crate) fn template(detail: impl fmt::Display) -> Error {
        Error::other("template", format!("the template {detail}"))
    }

    /// An error about a path that is not a folder.
    #[must_use]
    pub fn not_a_folder() -> Error {
        Error::other("not-a-folder", "is not a folder; name one that exists")
    }

    /// An error about a place in a document that cannot be changed as asked.
    pub fn edit(detail: impl Into<String>) -> Error {
        Error::other("edit", detail)
    }

    /// An error with a code, of a kind that callers do not handle.
    pub(crate) fn other(code: &'static str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Other {
            code,
            message: message.into(),
        })
    }

    /// An error that says that a value differs after it was written and read back.
    pub(crate) fn not_faithful(detail: impl fmt::Display) -> Error {
        let message = format!(
            "the document would not read back as the value to save: {detail}; nothing was written"
        );
        Error::other("not-faithful", message)
    }

    /// The same error, with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// The same error with a key, unless it has one already.
    #[must_use]
    pub fn with_key(mut self, key: &Key) -> Error {
        self.0.key.get_or_insert_with(|| key.clone());
        self
    }

    /// The same error with this key in place of the one that the store below uses.
    pub(crate) fn of_key(mut self, key: &Key) -> Error {
        if let ErrorKind::InvalidKey { text, .. } = &mut self.0.kind {
            *text = key.to_string();
        }
        self.0.key = Some(key.clone());
        self
    }

    /// The same error with a path, unless it has one already.
    #[must_use]
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Error {
        self.0
            .path
            .get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// The same error with the position of the report that caused it.
    pub(crate) fn with_report(mut self, index: usize) -> Error {
        self.0.report = Some(index);
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

    /// The failure as a word that stays the same in later versions, such as `conflict` or `disk-full`. For a
    /// corrupt document it names the damage, such as `truncated`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.file_error()
            .map_or_else(|| self.0.kind.code(), FileError::code)
    }

    /// Whether the caller must stop because another owner has the task, or the claim was released.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        match self.kind() {
            ErrorKind::TakenOver { .. } | ErrorKind::Claimed { .. } => true,
            ErrorKind::Fenced { why, .. } => !matches!(why, Fenced::Expired { .. }),
            _ => false,
        }
    }

    /// The key that the error concerns, if any.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.0.key.as_ref()
    }

    /// The position of the [report](crate::Checkpoints::report) that caused the error, from 0, if one did.
    #[must_use]
    pub fn report(&self) -> Option<usize> {
        self.0.report
    }

    /// The file that the error concerns, if any.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file error names the file and the next step itself.
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
        self.0.kind.fmt(f)
    }
}

/// The text and its causes, for a `main` that returns the error; with `{:#?}` the fields of the error.
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
            // This error has the same text as the file error, so the chain continues with the cause of the file
            // error.
            Some(file) => file.source(),
            None => Some(self.0.source.as_deref()?),
        }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        let kind = match &error {
            FileError::NotDurable { .. } => ErrorKind::NotDurable,
            FileError::NotAFolder { .. } => Error::not_a_folder().0.kind,
            FileError::Changed { .. } => ErrorKind::ChangedMeanwhile,
            FileError::TooLarge { size, limit, .. } => ErrorKind::TooLarge {
                size: *size,
                limit: *limit,
                is_new: false,
            },
            FileError::Locked {
                waited,
                holder,
                held_for,
                ..
            } => ErrorKind::Locked {
                waited: *waited,
                holder: holder.clone(),
                pid: crate::fsio::pid_of(holder.as_deref()),
                held_for: *held_for,
            },
            _ => ErrorKind::Io,
        };
        Error::new(kind).with_path(error.path()).with_source(error)
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
        Error::edit(detail)
    }
}

impl From<RewriteError> for Error {
    fn from(error: RewriteError) -> Error {
        match error {
            RewriteError::Loss { pointers } => Error::new(ErrorKind::WouldLose { pointers }),
            RewriteError::Edit(edit) => edit.into(),
            other => Error::not_faithful(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a program whose `main` returns the error.
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
