//! Everything that is printed is printed here.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// What a verb has to say.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What goes to standard output, with its line ends.
    pub(crate) out: String,
    /// What goes to standard error, without the last line end of each.
    pub(crate) notes: Vec<String>,
    /// The exit code.
    pub(crate) exit: Exit,
    /// Whether what was asked for is done, so that it must not be run again to see what came of it.
    pub(crate) is_done: bool,
}

impl Outcome {
    /// Nothing to say, nothing found.
    pub(crate) fn new() -> Outcome {
        Outcome::default()
    }

    /// Adds a line to standard output.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.out.push_str(line.as_ref());
        self.out.push('\n');
    }

    /// Adds a value as JSON to standard output.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(text),
            Err(error) => self.fail(&Failure::new(format!(
                "the result cannot be written as JSON: {error}; try without --json"
            ))),
        }
    }

    /// Adds something to know: `note: …`.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.say("note", text.as_ref());
    }

    /// Adds something to heed: `warning: …`.
    pub(crate) fn warn(&mut self, text: impl AsRef<str>) {
        self.say("warning", text.as_ref());
    }

    /// Adds something under a word of its own; further lines are indented.
    pub(crate) fn say(&mut self, word: &str, text: &str) {
        let mut note = String::new();
        for (index, line) in text.lines().enumerate() {
            if index > 0 {
                note.push_str("\n  ");
            }
            note.push_str(&harmless(line));
        }
        self.notes.push(format!("{word}: {note}"));
    }

    /// Adds a failure as one line, and its exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        self.notes
            .push(format!("ckpt: {}", one_line(&failure.message)));
        self.exit = self.exit.and(failure.exit);
    }

    /// Adds findings: the exit code says so.
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

/// A text as one line, without anything that a terminal obeys.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    harmless(&words.join(" "))
}

/// A line in which control characters show instead of working.
pub(crate) fn harmless(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for char in line.chars() {
        if char.is_control() && char != '\t' {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Whether standard output takes colour: a terminal, and nobody said no.
pub(crate) fn takes_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stdout().is_terminal()
}

/// Prints lines at once, for what goes on; `false` when nobody reads any more.
pub(crate) fn print_now(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written.and_then(|()| stdout.flush()).is_ok()
}

/// Prints notes at once, for what goes on.
pub(crate) fn notes_now(outcome: &mut Outcome) {
    let mut stderr = io::stderr().lock();
    for note in outcome.notes.drain(..) {
        // Whoever does not read what is to be known still gets the results.
        let _ = writeln!(stderr, "{note}");
    }
}

/// Prints, and gives the exit code. Whoever stops reading early is told nothing more.
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
                    "the change was made all the same and only this report of it is lost; do not run it again, \
                     look at what is there (`ckpt show`; of a claim `ckpt claim` without --agent)"
                }
                false => "nothing was changed; see where it leads and run it again",
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
    ExitCode::from(exit.code())
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
    fn further_lines_are_indented() {
        let mut outcome = Outcome::new();
        outcome.warn("files:\n- a\n- b");
        assert_eq!(outcome.notes, ["warning: files:\n  - a\n  - b"]);
    }
}
