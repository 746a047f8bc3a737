//! Errors as the one line that the user gets.

use std::error::Error as StdError;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use agent_checkpoint::formats::Format;
use agent_checkpoint::json::{Corrupt, CorruptCode};
use agent_checkpoint::{Error, ErrorKind, Fenced, quoted};
use serde::Serialize;

use crate::address::Target;
use crate::args::Global;
use crate::backend::is_address;
use crate::exit::Exit;
use crate::output::one_line;
use crate::{read, stdin};

/// The options of the command line, for advice about the checkpoint that they name.
static GLOBAL: OnceLock<Global> = OnceLock::new();

/// Sets the options that advice refers to from now on.
pub(crate) fn advise_for(global: &Global) {
    GLOBAL.get_or_init(|| global.clone());
}

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

/// A failure as `--json` prints it.
#[derive(Serialize)]
struct Report<'f> {
    code: &'f str,
    message: String,
    file: Option<String>,
    key: Option<&'f str>,
    /// The advice, which is the last part of the message.
    next: Option<String>,
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

    /// The failure as one JSON object.
    pub(crate) fn json(&self) -> serde_json::Value {
        let message = one_line(&self.message);
        // "nothing was written" describes what happened, not the next step.
        let advice = message.strip_suffix("; nothing was written");
        let next = last_part(advice.unwrap_or(&message)).map(str::to_owned);
        serde_json::json!({ "error": Report {
            code: self.code,
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
            code: error.code(),
            file: error.path().map(Path::to_path_buf),
            key: error.key().map(ToString::to_string),
            report: error.report(),
            source: Some(Arc::new(error)),
        }
    }
}

/// The text after the last `; ` of a message, outside of quotes.
fn last_part(message: &str) -> Option<&str> {
    let (mut quote, mut is_escaped, mut next) = (None, false, None);
    for (at, char) in message.char_indices() {
        match (quote, char) {
            _ if is_escaped => {}
            (None, '"' | '`') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            (None, ';') => next = message[at + 1..].strip_prefix(' ').or(next),
            _ => {}
        }
        is_escaped = quote == Some('"') && char == '\\' && !is_escaped;
    }
    next
}

/// Advice for the user of a corrupt file.
fn advice(error: &Error, corrupt: &Corrupt) -> String {
    let is_conflict = corrupt.code == CorruptCode::MergeConflict;
    let is_nothing = matches!(corrupt.code, CorruptCode::Empty | CorruptCode::NulBytes);
    if !is_conflict && error.path().is_some_and(stdin::is_input) {
        return match is_nothing {
            true => "check what writes it".to_owned(),
            false => "save it to a file, and `ckpt recover --salvage` goes on with its good part"
                .to_owned(),
        };
    }
    let place = GLOBAL.get().zip(error.path());
    let found = place.and_then(
        |(global, path)| match global.store.as_deref().map(is_address) {
            Some(true) => Some(Target::to_look_at(None, global).ok()?.format),
            _ => read::format_of_damaged(path, error, global).ok()?,
        },
    );
    let named = place.and_then(|(global, _)| global.formats.get(global.format.as_ref()?).ok());
    let format = named.or(found.as_ref());
    let kept = place.and_then(|(global, path)| Target::kept(path, format, global));
    if is_conflict {
        let or = kept.map_or_else(String::new, |entry| {
            format!(", or go on with its newest earlier state, {entry}, with `ckpt recover`")
        });
        return format!("nothing was changed; edit the file, then run this again{or}");
    }
    let option = if found.is_some() { "" } else { " --format F" };
    let is_host = format.is_some_and(Format::is_host);
    // A host file holds more than checkpoints, so it does not begin anew.
    let ways = [
        (!is_nothing, "--salvage", "the good part of this one"),
        (!is_host, "--fresh", "none"),
    ];
    let ways = ways.into_iter().filter(|(works, ..)| *works);
    match kept {
        Some(entry) => {
            let ways = ways.map(|(_, way, with)| format!(", with `{way}` with {with}"));
            format!(
                "nothing was changed; `ckpt recover` goes on with its newest earlier state, {entry}{}; `ckpt history` \
                 lists the states",
                ways.collect::<String>()
            )
        }
        None => {
            let ways: Vec<String> = ways
                .enumerate()
                .map(|(at, (_, way, with))| {
                    let goes_on = if at == 0 { " goes on" } else { "" };
                    format!("`ckpt recover {way}{option}`{goes_on} with {with}")
                })
                .collect();
            let ways = match ways.is_empty() {
                true => "bring it back from elsewhere, such as git".to_owned(),
                false => ways.join(", "),
            };
            format!("nothing was changed, and no earlier state of it is kept; {ways}")
        }
    }
}

/// The command-line option for the advice of a library error.
fn option(kind: &ErrorKind, message: &str) -> &'static str {
    match kind {
        ErrorKind::Transition { .. } => " (--force)",
        ErrorKind::WouldLose { .. } => " (--allow-loss)",
        ErrorKind::TooLarge { .. } => " (--max-bytes N)",
        ErrorKind::InvalidKey { .. } => "; name the task with --key, or its file",
        ErrorKind::Other {
            code: "no-such-slot",
            ..
        } => "; name another with --slot",
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
    fn what_is_to_be_done_is_no_part_of_a_quote() {
        let next = |message: &str| last_part(message).map(str::to_owned);
        assert_eq!(next("a; b; c"), Some("c".to_owned()));
        assert_eq!(next(r#"a; no step "x\"; y"; z"#), Some("z".to_owned()));
        assert_eq!(
            next(r#"a; it has only "x; y""#),
            Some(r#"it has only "x; y""#.to_owned())
        );
        assert_eq!(next(r#"no step is called "x; y""#), None);
    }

    #[test]
    fn a_key_is_named_where_it_is_quoted() {
        let failure = Failure::new("a state is missing").at(Some(Path::new("c")), Some("a"));
        assert_eq!(failure.message, "c (a): a state is missing");
        let failure = Failure::new(r#"the key "T" is taken"#).at(Some(Path::new("z")), Some("T"));
        assert_eq!(failure.message, r#"the key "T" is taken"#);
    }
}
