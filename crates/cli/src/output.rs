//! All printing happens here.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_checkpoint::{Redaction, visible};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// Whether secrets are printed: `--show-secrets`.
static SHOWS_SECRETS: AtomicBool = AtomicBool::new(false);

/// Prints secrets from now on.
pub(crate) fn show_secrets() {
    SHOWS_SECRETS.store(true, Ordering::Relaxed);
}

/// Whether only errors are printed: `--quiet`.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints only errors from now on.
pub(crate) fn keep_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether only errors are printed.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// The redaction of printed texts, unless secrets are shown.
pub(crate) fn redaction() -> Option<Redaction> {
    let shows = SHOWS_SECRETS.load(Ordering::Relaxed);
    (!shows).then(Redaction::secrets)
}

/// A text with its secrets removed, unless secrets are shown; `None` if it has none.
fn without_secrets(text: &str) -> Option<String> {
    redaction()?.redact("", text)
}

/// A time for people and for programs.
pub(crate) fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The beginning of an error line.
pub(crate) const ERROR: &str = "ckpt: ";

/// The output of a verb.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The text for standard output, with its line ends.
    pub(crate) out: String,
    /// The texts for standard error, each without its last line end.
    pub(crate) notes: Vec<String>,
    /// The exit code.
    pub(crate) exit: Exit,
    /// The exit code of a command that was run; it replaces `exit`.
    pub(crate) code: Option<u8>,
    /// Whether the requested work is done, so that the command must not be repeated just to see its result.
    pub(crate) is_done: bool,
    /// The first failure as JSON, used if standard output would be empty.
    pub(crate) error: Option<serde_json::Value>,
}

impl Outcome {
    /// An empty output with exit code 0.
    pub(crate) fn new() -> Outcome {
        Outcome::default()
    }

    /// Adds a line to standard output, without secrets, control characters or hidden characters.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.styled(&harmless(line.as_ref()));
    }

    /// Adds a line with our own colours. Its texts are already [`harmless`].
    pub(crate) fn styled(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Adds a value as JSON to standard output, without the secrets in its texts.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        self.add_json(value, redaction().as_ref());
    }

    /// Adds a value as JSON to standard output with its texts unchanged, for data that another program processes.
    pub(crate) fn json_as_it_is(&mut self, value: &impl Serialize) {
        self.add_json(value, None);
    }

    fn add_json(&mut self, value: &impl Serialize, redaction: Option<&Redaction>) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => {
                self.out.push_str(&harmless_json(&text, redaction));
                self.out.push('\n');
            }
            Err(error) => self.fail(&Failure::new(format!(
                "the result cannot be written as JSON: {error}; run it without --json"
            ))),
        }
    }

    /// Adds a note: `note: …`.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.say("note", text.as_ref());
    }

    /// Adds a warning: `warning: …`.
    pub(crate) fn warn(&mut self, text: impl AsRef<str>) {
        self.say("warning", text.as_ref());
    }

    /// Adds a text after this word and a colon; further lines are indented.
    pub(crate) fn say(&mut self, word: &str, text: &str) {
        // A secret may span several lines.
        let text = harmless(text);
        let lines: Vec<&str> = text.lines().collect();
        self.notes.push(format!("{word}: {}", lines.join("\n  ")));
    }

    /// Adds a failure as one line, and its exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        self.notes
            .push(format!("{ERROR}{}", one_line(&failure.message)));
        self.exit = self.exit.and(failure.exit);
        self.error.get_or_insert_with(|| failure.json());
    }

    /// For output that a shell evaluates: without an exit line the shell would continue as after a success.
    pub(crate) fn for_a_shell(mut self, is_exported: bool) -> Outcome {
        if is_exported {
            self.styled(&format!("(exit {})", self.exit.code()));
        }
        self
    }

    /// Prints the failure on standard output if that is empty, because `--json` must print a value.
    pub(crate) fn with_error_as_json(mut self) -> Outcome {
        let is_empty = matches!(self.out.as_str(), "" | "[]\n");
        if let Some(error) = self.error.take().filter(|_| is_empty) {
            self.out.clear();
            self.json(&error);
        }
        self
    }

    /// Removes everything except errors.
    pub(crate) fn keep_errors(&mut self) {
        self.out.clear();
        self.notes.retain(|note| note.starts_with(ERROR));
    }

    /// Marks the output as having findings, for the exit code.
    pub(crate) fn found(&mut self) {
        self.exit = self.exit.and(Exit::Findings);
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Outcome {
        let mut outcome = Outcome::new();
        outcome.fail(&failure);
        outcome
    }
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

/// A text as one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    harmless(&words.join(" "))
}

/// A text without secrets, control characters or hidden characters; its line ends stay.
pub(crate) fn harmless(text: &str) -> String {
    visible(&without_secrets(text).unwrap_or_else(|| text.to_owned()))
}

/// A JSON text with hidden characters as `\u` escapes and without secrets in its strings. Member names stay.
pub(crate) fn harmless_json(json: &str, redaction: Option<&Redaction>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(open) = rest.find('"') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let mut is_escaped = false;
        let close = from.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            closes
        });
        let (string, after) = from.split_at(close.map_or(from.len(), |close| close + 2));
        let is_name = after.trim_start().starts_with(':');
        let redacted = redaction.filter(|_| !is_name).and_then(|redaction| {
            let text: String = serde_json::from_str(string).ok()?;
            serde_json::to_string(&redaction.redact("", &text)?).ok()
        });
        push_escaped(redacted.as_deref().unwrap_or(string), &mut out);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Appends a JSON string with hidden characters as `\u` escapes.
fn push_escaped(string: &str, out: &mut String) {
    if visible(string) == string {
        out.push_str(string);
        return;
    }
    for letter in string.chars() {
        if visible(letter.encode_utf8(&mut [0; 4])).len() == letter.len_utf8() {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}

/// Whether standard output is coloured: it is a terminal, and colour is not switched off.
pub(crate) fn takes_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stdout().is_terminal()
}

/// Prints lines immediately, for a verb that keeps running. Returns `false` once the reader is gone.
pub(crate) fn print_now(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!(
            "cannot write to standard output: {error}"
        ))),
    }
}

/// Whether the reader of standard output is gone, without writing to it.
pub(crate) fn is_unread() -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdout = io::stdout();
        let mut waited = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut waited, Some(&at_once)).is_ok()
            && waited[0]
                .revents()
                .intersects(PollFlags::ERR | PollFlags::HUP)
    }
    #[cfg(not(unix))]
    false
}

/// Prints notes immediately, for a verb that keeps running.
pub(crate) fn notes_now(outcome: &mut Outcome) {
    let mut stderr = io::stderr().lock();
    for note in outcome.notes.drain(..) {
        // If standard error is closed, the results are still printed.
        let _ = writeln!(stderr, "{note}");
    }
}

/// Prints the output and returns the exit code. If the reader stops early, the rest is not printed.
pub(crate) fn print(outcome: &Outcome) -> ExitCode {
    let mut notes = outcome.notes.clone();
    let mut exit = outcome.exit;
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(outcome.out.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let next = match outcome.is_done {
                true => {
                    "the change was made, and only this report of it is lost; do not run it again, check the result \
                     (`ckpt show`; for a claim `CKPT_AGENT= ckpt claim`)"
                }
                false => "nothing was changed; check where the output goes and run it again",
            };
            notes.push(format!(
                "ckpt: cannot write to standard output: {error}; {next}"
            ));
            exit = Exit::Failed;
        }
        _ => {}
    }
    let mut stderr = io::stderr().lock();
    for note in notes {
        if writeln!(stderr, "{note}").is_err() {
            break;
        }
    }
    ExitCode::from(outcome.code.unwrap_or(exit.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_no_terminal_obeys() {
        let mut outcome = Outcome::new();
        outcome.fail(&Failure::new("a\n  b\u{1b}[31m"));
        assert_eq!(outcome.notes, ["ckpt: a b\\u{1b}[31m"]);
        assert_eq!(outcome.exit, Exit::Failed);
    }

    #[test]
    fn json_hides_nothing_and_has_no_secrets() {
        let value = serde_json::json!({"a\u{202e}": "b\u{200b}\u{e0041} \"q\\ password=hunter2", "n": 1.50});
        let text = value.to_string();
        let shown = harmless_json(&text, Some(&Redaction::secrets()));
        assert_eq!(
            shown,
            r#"{"a\u202e":"b\u200b\udb40\udc41 \"q\\ password=[redacted: password]","n":1.5}"#
        );
        let as_it_is = harmless_json(&text, None);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&as_it_is).unwrap(),
            value
        );
    }

    #[test]
    fn a_secret_over_several_lines_is_none_of_a_warning() {
        let mut outcome = Outcome::new();
        let (begin, end) = ("-----BEGIN PRIV", "-----END PRIV");
        outcome.warn(format!("{begin}ATE KEY-----\nMIIE\n{end}ATE KEY-----\nb"));
        assert_eq!(outcome.notes, ["warning: [redacted: private-key]\n  b"]);
    }

    #[test]
    fn further_lines_are_indented() {
        let mut outcome = Outcome::new();
        outcome.warn("files:\n- a\n- b");
        assert_eq!(outcome.notes, ["warning: files:\n  - a\n  - b"]);
    }

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
}
