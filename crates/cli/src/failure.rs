//! An error on its way to the one line that the user gets.

use std::error::Error as StdError;

use agent_checkpoint::checkpoint::Fenced;
use agent_checkpoint::{Error, ErrorKind};

use crate::exit::Exit;

/// What a user who has a corrupt file can do.
const AFTER_CORRUPTION: &str = "nothing was changed; `ckpt history` lists earlier states and `ckpt recover` goes on with the newest good one, \
     with `--salvage` with the good part of this one, or with `--fresh` with none";

/// Why a verb could not do its work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code that goes with it.
    pub(crate) exit: Exit,
    /// What failed, where, and what to do next.
    pub(crate) message: String,
}

impl Failure {
    /// A failure of usage or of the system.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Failed,
            message: message.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = Exit::of(&error);
        let mut message = chain(&error);
        if matches!(error.kind(), ErrorKind::Corrupt(_)) {
            message = format!("{message}; {AFTER_CORRUPTION}");
        }
        message.push_str(option(error.kind(), &message));
        Failure { exit, message }
    }
}

/// The options of the command line for what an error of the library advises.
fn option(kind: &ErrorKind, message: &str) -> &'static str {
    match kind {
        ErrorKind::Transition { .. } => " (--force)",
        ErrorKind::WouldLose { .. } => " (--allow-loss)",
        ErrorKind::TooLarge { .. } | ErrorKind::WouldBeTooLarge { .. } => " (--max-bytes N)",
        ErrorKind::InvalidKey { .. } => "; name the task with --key, or its file",
        ErrorKind::NoSuchSlot { .. } => "; name another with --slot",
        ErrorKind::UnknownFormat { name: None, .. } => " with --format",
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
