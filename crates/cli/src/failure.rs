//! An error on its way to the one line that the user gets.

use std::error::Error as StdError;

use std::path::{Path, PathBuf};

use agent_checkpoint::checkpoint::Fenced;
use agent_checkpoint::json::Corrupt;
use agent_checkpoint::{Error, ErrorKind};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::one_line;
use crate::read;

/// Why a verb could not do its work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code that goes with it.
    pub(crate) exit: Exit,
    /// What failed, where, and what to do next.
    pub(crate) message: String,
    /// What kind of failure it is, in a word.
    pub(crate) code: String,
    /// The file and the key it is about, where the message names them.
    pub(crate) file: Option<PathBuf>,
    pub(crate) key: Option<String>,
}

/// A failure as `--json` prints it.
#[derive(Serialize)]
struct Report<'f> {
    code: &'f str,
    message: String,
    file: Option<String>,
    key: Option<&'f str>,
    /// What to do, the last part of the message.
    next: Option<String>,
}

impl Failure {
    /// A failure of usage or of the system.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Failed,
            message: message.into(),
            code: "failed".to_owned(),
            file: None,
            key: None,
        }
    }

    /// A failure of a command line that says nothing that can be done.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure {
            code: "usage".to_owned(),
            ..Failure::new(message)
        }
    }

    /// A failure with this exit code.
    pub(crate) fn exiting(exit: Exit, message: impl Into<String>) -> Failure {
        let code = match exit {
            Exit::Corrupt => "corrupt",
            Exit::Refused => "refused",
            Exit::Conflict => "conflict",
            Exit::Done | Exit::Findings | Exit::Failed => "failed",
        };
        Failure {
            exit,
            code: code.to_owned(),
            ..Failure::new(message)
        }
    }

    /// The same, with the file and the key that the command line names; the message begins with them, unless it names
    /// another place.
    pub(crate) fn at(mut self, file: Option<&Path>, key: Option<&str>) -> Failure {
        if let Some(place) = file.map(|file| file.display().to_string()) {
            let names_place = self.file.is_some()
                || self.message.contains(&place)
                || key.is_some_and(|key| self.message.contains(key))
                || self
                    .message
                    .split(' ')
                    .next()
                    .is_some_and(|word| word.ends_with(':'));
            if !names_place {
                let key = key.map_or_else(String::new, |key| format!(" ({key})"));
                self.message = format!("{place}{key}: {}", self.message);
            }
        }
        self.file = self.file.or_else(|| file.map(Path::to_path_buf));
        self.key = self.key.or_else(|| key.map(str::to_owned));
        self
    }

    /// The failure as one JSON object.
    pub(crate) fn json(&self) -> serde_json::Value {
        let message = one_line(&self.message);
        let next = message.rsplit_once("; ").map(|(_, next)| next.to_owned());
        serde_json::json!({ "error": Report {
            code: &self.code,
            file: self.file.as_ref().map(|file| file.display().to_string()),
            key: self.key.as_deref(),
            next,
            message,
        } })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let mut message = chain(&error);
        if let ErrorKind::Corrupt(corrupt) = error.kind() {
            let advice = advice(&error, corrupt);
            message = format!("{message}; {advice}");
        }
        message.push_str(option(error.kind(), &message));
        Failure {
            exit: Exit::of(&error),
            message,
            code: code(error.kind()),
            file: error.path().map(Path::to_path_buf),
            key: error.key().map(ToString::to_string),
        }
    }
}

/// The kind of an error in a word: of a corrupt file the code that `validate` gives it.
fn code(kind: &ErrorKind) -> String {
    if let ErrorKind::Corrupt(corrupt) = kind {
        return corrupt.code.to_string();
    }
    if let ErrorKind::UnknownFormat { name: None, .. } = kind {
        return "no-checkpoint".to_owned();
    }
    // The name of the variant: `NotFound` is `not-found`.
    let name = format!("{kind:?}");
    let mut code = String::new();
    for char in name.chars().take_while(char::is_ascii_alphabetic) {
        if char.is_ascii_uppercase() && !code.is_empty() {
            code.push('-');
        }
        code.push(char.to_ascii_lowercase());
    }
    code
}

/// What a user who has a corrupt file can do.
fn advice(error: &Error, corrupt: &Corrupt) -> String {
    if corrupt.message.starts_with(CONFLICT) {
        return "nothing was changed; edit the file, then run this again".to_owned();
    }
    let kept = error.path().and_then(|path| read::kept(path, u64::MAX));
    match kept {
        Some(entry) => format!(
            "nothing was changed; `ckpt recover` goes on with its newest earlier state, {entry}, with `--salvage` with the \
             good part of this one, with `--fresh` with none; `ckpt history` lists the states"
        ),
        None => {
            let found = error
                .path()
                .map(|path| read::format_of_damaged(path, error, u64::MAX));
            let is_told = matches!(found, Some(Ok(Some(_))));
            let format = if is_told { "" } else { " --format F" };
            format!(
                "nothing was changed, and no earlier state of it is kept; `ckpt recover --salvage{format}` goes on with \
                 the good part of this one, `ckpt recover --fresh{format}` with none"
            )
        }
    }
}

/// How the library speaks of a merge that nobody resolved.
const CONFLICT: &str = "git conflict markers";

/// The options of the command line for what an error of the library advises.
fn option(kind: &ErrorKind, message: &str) -> &'static str {
    match kind {
        ErrorKind::Transition { .. } => " (--force)",
        ErrorKind::WouldLose { .. } => " (--allow-loss)",
        ErrorKind::TooLarge { .. } | ErrorKind::WouldBeTooLarge { .. } => " (--max-bytes N)",
        ErrorKind::InvalidKey { .. } => "; name the task with --key, or its file",
        ErrorKind::NoSuchSlot { .. } => "; name another with --slot",
        ErrorKind::UnknownFormat { name: None, .. } => " (--format F)",
        ErrorKind::Ambiguous { what, .. } if what.starts_with("format") => " with --format",
        ErrorKind::Ambiguous { what, .. } if what.starts_with("checkpoint") => " with --slot",
        ErrorKind::Claimed { .. } => {
            "; the fence is shown with --fence N, and `ckpt claim --agent A --take-over` takes the task from an \
             owner that is known to be dead"
        }
        ErrorKind::Fenced { why, .. } => match why {
            Fenced::Expired { .. } => " (`ckpt claim --renew --fence N`)",
            Fenced::Released { .. } | Fenced::Unknown => " (`ckpt claim --agent A`)",
            _ => "",
        },
        ErrorKind::NotRecoverable { .. } if message.contains("there is nothing ") => {
            "; check the place and --key, or begin with `ckpt start`"
        }
        ErrorKind::Unreadable { .. } if message.ends_with("taking it over") => {
            " (`ckpt claim --agent A --take-over`)"
        }
        _ => "",
    }
}

/// An error with its causes, each said once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
