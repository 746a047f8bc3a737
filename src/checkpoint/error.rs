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
    report: Option<usize>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of failure an [`Error`] is, with what a caller may want to know of it.
///
/// [`Error::code`] gives the kind in a word.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are no document.
    #[error("corrupt: {0}")]
    Corrupt(Corrupt),
    /// No checkpoint is under the key.
    #[error("there is no checkpoint here; start one first")]
    NotFound,
    /// The document is not in the state that the caller expected.
    #[error("changed meanwhile: expected {expected}, found {}; load it again and decide anew", what_is_there(found.as_ref()))]
    Conflict {
        /// What the caller expected.
        expected: Expect,
        /// What is there.
        found: Option<Revision>,
    },
    /// A text that cannot be a key.
    #[error("{} cannot be a key: {reason}", quoted_short(text))]
    InvalidKey {
        /// The text.
        text: String,
        /// Why it cannot.
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
    /// More bytes than the limit, so it was not read, or not written since it could not be read again.
    #[error("{}", too_large(*size, *limit, *is_new))]
    TooLarge {
        /// Bytes there are.
        size: u64,
        /// Bytes allowed.
        limit: u64,
        /// Whether they would have been written.
        is_new: bool,
    },
    /// Another holds the lock, and did so until the deadline.
    #[error(
        "locked by {}{}; gave up after {:.1} s, try again when it is done",
        holder.as_deref().unwrap_or("another process"),
        held_for.map_or_else(String::new, |held| format!(" for {:.1} s", held.as_secs_f64())),
        waited.as_secs_f64()
    )]
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
    #[error(
        "claimed by {owner} until {}; write with the fence of that claim, wait until it runs \
         out, or take over once its owner has ended for sure",
        stamp(*until)
    )]
    Claimed {
        /// Who.
        owner: String,
        /// Until when the claim stands.
        until: DateTime<Utc>,
    },
    /// The fence that a write shows is not, or no longer, that of a claim that stands.
    #[error("the write with fence {fence} is refused: {why}")]
    Fenced {
        /// The fence.
        fence: u64,
        /// Why it does not open.
        why: Fenced,
    },
    /// Another agent or session has the task, by its checkpoint: the one that had it before writes no more.
    #[error(
        "{by} has the task now; stop, and leave it to {by}; nothing was written",
        by = by.as_deref().unwrap_or("another")
    )]
    TakenOver {
        /// Who has it now, where the checkpoint says so.
        by: Option<String>,
    },
    /// There is no such state in the history.
    #[error(
        "{} is no state of its history; take one that `history` lists",
        quoted_short(wanted)
    )]
    NoSuchRevision {
        /// What was asked for.
        wanted: String,
    },
    /// There is nothing to go on with.
    #[error("{detail}")]
    NotRecoverable {
        /// What was tried, and what else can be.
        detail: String,
    },
    /// The store does not have this.
    #[error("this store has no {what}")]
    NotOffered {
        /// What it does not have.
        what: &'static str,
    },
    /// Another program, which does not take the lock, kept changing the file meanwhile.
    #[error("another program keeps changing it; nothing was written, try again when it is done")]
    ChangedMeanwhile,
    /// A write would replace or remove values that could not be read.
    #[error(
        "this would overwrite values that could not be read, at {}; \
         mend them first or allow the loss",
        pointers.join(", ")
    )]
    WouldLose {
        /// Where they are.
        pointers: Vec<String>,
    },
    /// Not even part of the document can be read as this format.
    #[error("cannot be read as this format: {detail}")]
    Unreadable {
        /// Why.
        detail: String,
    },
    /// A file has more than one checkpoint, or fits more than one format.
    #[error("more than one {what}: choose one of {}", candidates.join(", "))]
    Ambiguous {
        /// What was looked for.
        what: &'static str,
        /// What there is to choose from.
        candidates: Vec<String>,
    },
    /// A file of a format that is not known here.
    #[error("{}", unknown_format(name.as_deref(), found, known))]
    UnknownFormat {
        /// The name that was asked for; `None` when the file fits no format, and so is no checkpoint.
        name: Option<String>,
        /// What the file is, such as a JSON list; empty where a name was asked for.
        found: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The store was opened for reading only.
    #[error("opened for reading only")]
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
        "there is no transition from {from} to {}; from {from} it goes {}; forced, it is made all the same",
        shortened(to),
        match allowed.as_slice() {
            [] => "nowhere".to_owned(),
            allowed => format!("to {}", allowed.join(", ")),
        },
        from = shortened(from)
    )]
    Transition {
        /// The state there is.
        from: String,
        /// The state asked for.
        to: String,
        /// The states that can follow.
        allowed: Vec<String>,
    },
    /// The operation does not go with the checkpoint's state.
    #[error("{detail}")]
    Refused {
        /// Why, and what to do.
        detail: String,
    },
    /// The new document is in place, but may not survive a loss of power.
    #[error("saved, but it may not survive a loss of power")]
    NotDurable,
    /// The file system refused, or what it has is no regular file that can be read and replaced. The
    /// [code](Error::code) says which: `disk-full`, `write-protected`, `not-a-file`, `dangling-link`, `leads-outside`,
    /// `busy`, `no-locks`, or `io` for all else.
    #[error("the operating system refused; see the cause")]
    Io,
    /// Any other failure, of which a caller needs no more than the text.
    #[error("{message}")]
    Other {
        /// The failure in a word, such as `migration`.
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
            "{} is no known format; name one of {known}",
            quoted_short(name)
        ),
        None => format!(
            "no checkpoint: {found}; if it is one all the same, name its format, one of {known}"
        ),
    }
}

impl Error {
    /// An error of this kind, without place or cause.
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

    /// An error about what was given to a call, which a caller can only report.
    pub fn wrong_input(message: impl Into<String>) -> Error {
        Error::other("failed", message)
    }

    /// An error of a template.
    #[cfg(feature = "template")]
    pub(crate) fn template(detail: impl fmt::Display) -> Error {
        Error::other("template", format!("the template {detail}"))
    }

    /// An error about a folder that is none.
    #[must_use]
    pub fn not_a_folder() -> Error {
        Error::other("not-a-folder", "is no folder; name one that is there")
    }

    /// An error about a place in a document that cannot be changed as asked.
    pub fn edit(detail: impl Into<String>) -> Error {
        Error::other("edit", detail)
    }

    /// An error that no caller handles, with its code.
    pub(crate) fn other(code: &'static str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Other {
            code,
            message: message.into(),
        })
    }

    /// An error that says that a value does not come back from its text as it was.
    pub(crate) fn not_faithful(detail: impl fmt::Display) -> Error {
        let message =
            format!("the value does not come back as it was: {detail}; nothing was written");
        Error::other("not-faithful", message)
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

    /// The same error, at a key that has another name in the store below.
    pub(crate) fn of_key(mut self, key: &Key) -> Error {
        if let ErrorKind::InvalidKey { text, .. } = &mut self.0.kind {
            *text = key.to_string();
        }
        self.0.key = Some(key.clone());
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

    /// The same error, of this one of several reports.
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

    /// The failure in a word that stays from version to version, such as `conflict` or `disk-full`; of a corrupt document
    /// what is wrong with it, such as `truncated`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.file_error()
            .map_or_else(|| self.0.kind.code(), FileError::code)
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

    /// Which of several [reports](crate::Checkpoints::report) it is about, counted from 0, where it is about one.
    #[must_use]
    pub fn report(&self) -> Option<usize> {
        self.0.report
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
        self.0.kind.fmt(f)
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
