//! Errors as the one line that the user gets.

use std::error::Error as StdError;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_checkpoint::{Error, quoted};

use crate::exit::Exit;

/// Why a verb failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The exit code that goes with it.
    pub(crate) exit: Exit,
    /// What failed, where, and what to do next.
    pub(crate) message: String,
    /// The kind of failure in one word.
    pub(crate) code: &'static str,
    /// The file and the key that the failure is about, if the message names them.
    pub(crate) file: Option<PathBuf>,
    pub(crate) key: Option<String>,
    /// The index of the failed report, if there were several.
    pub(crate) report: Option<usize>,
    /// The library error behind the failure, if any, without the options that the message adds.
    pub(crate) source: Option<Arc<Error>>,
}

impl Failure {
    /// A failure of usage or of the system.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Failed,
            message: message.into(),
            code: "failed",
            file: None,
            key: None,
            report: None,
            source: None,
        }
    }

    /// A failure of a command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure {
            code: "usage",
            ..Failure::new(message)
        }
    }

    /// A failure because something does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure {
            code: "not-found",
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
            code,
            ..Failure::new(message)
        }
    }

    /// Adds the file and the key that the command line names. The message begins with them, unless it names another
    /// place.
    pub(crate) fn at(mut self, file: Option<&Path>, key: Option<&str>) -> Failure {
        if let Some(place) = file.map(|file| file.display().to_string()) {
            let names_place = self.file.is_some()
                || self.message.contains(&place)
                || self.key.is_some()
                || key.is_some_and(|key| self.message.contains(&quoted(key)))
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
}

/// An error with its causes, without repetitions.
pub(crate) fn chain(error: &dyn StdError) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_where_it_is_quoted() {
        let failure = Failure::new("a state is missing").at(Some(Path::new("c")), Some("a"));
        assert_eq!(failure.message, "c (a): a state is missing");
        let failure = Failure::new(r#"the key "T" is taken"#).at(Some(Path::new("z")), Some("T"));
        assert_eq!(failure.message, r#"the key "T" is taken"#);
    }
}
