//! One change, as data and as a line of text.

use std::fmt;

use serde::{Serialize, Serializer};

/// One change, as data and as text. Its text is one line, without the line end.
///
/// In JSON it is one object: the member `change` has the kind, and the others are the [details](Change::get).
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    kind: ChangeKind,
    details: Vec<(&'static str, Option<String>)>,
    /// The status in the words of the format, before and after.
    written: Option<(String, String)>,
    /// A step that was in progress and is now finished; it left the plan as well.
    left_plan: Option<String>,
}

/// The kind of a change, with the details that a change of this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The name of the task: `from`, `to`.
    Task,
    /// The description of the task: `from`, `to`.
    Description,
    /// The status of the task in terms common to all formats: `from`, `to`. In JSON, `written` has the words of the
    /// format for both, if they differ.
    Status,
    /// The phase or stage: `from`, `to`.
    Phase,
    /// The agent: `from`, `to`.
    Agent,
    /// An `agent` that is now one of the previous agents.
    AgentLeft,
    /// An `agent` that is no longer one of the previous agents.
    AgentForgotten,
    /// The time of the last change: `from`, `to`.
    Stamp,
    /// A `step` that was added to the plan.
    StepAdded,
    /// A `step` that was begun: when (`at`), and its `note`.
    StepBegun,
    /// The note on a `step` in progress: `from`, `to`.
    StepNoted,
    /// A `step` that was finished: when it was `begun`, if it was in progress before, and when it was finished (`at`).
    StepFinished,
    /// A `step` that was finished or in progress, and is planned again.
    StepReturned,
    /// A finished `step` that is in progress again.
    StepReopened,
    /// A `step` that is in no list any more: it `was` `planned`, `in_progress` or `finished`. Many agents report a
    /// finished step in other words than they planned it.
    StepDropped,
    /// A `decision`, its `rationale`, and when it was made (`at`).
    DecisionMade,
    /// A `decision` that is gone.
    DecisionWithdrawn,
    /// A `blocker` that keeps the task from going on.
    BlockerRaised,
    /// A `blocker` that is gone.
    BlockerCleared,
    /// A `file` that is listed as created for the first time.
    FileCreated,
    /// A `file` that is listed as modified for the first time.
    FileModified,
    /// A `file` that is named for the first time.
    FileNamed,
    /// A `file` that is no longer named.
    FileForgotten,
    /// The reference to the criteria of success: `from`, `to`.
    Contract,
    /// The result of a verification `activity`: `from`, `to`.
    Verification,
    /// An `instruction` to the next agent.
    InstructionGiven,
    /// An `instruction` to the next agent that is gone.
    InstructionWithdrawn,
    /// A value that no other kind reports: its `pointer` in the later document, or in the earlier one if it was
    /// removed, and its JSON text `before` and `after`.
    Value,
}

impl ChangeKind {
    /// The beginning of a line of this kind.
    fn words(self) -> &'static str {
        match self {
            ChangeKind::Task => "task",
            ChangeKind::Description => "description",
            ChangeKind::Status => "status",
            ChangeKind::Phase => "phase",
            ChangeKind::Agent => "agent",
            ChangeKind::AgentLeft => "previous agent added",
            ChangeKind::AgentForgotten => "previous agent removed",
            ChangeKind::Stamp => "last changed",
            ChangeKind::StepAdded => "added to the plan",
            ChangeKind::StepBegun => "begun",
            ChangeKind::StepNoted => "note on",
            ChangeKind::StepFinished => "finished",
            ChangeKind::StepReturned => "back in the plan",
            ChangeKind::StepReopened => "in progress again",
            ChangeKind::StepDropped => "no longer",
            ChangeKind::DecisionMade => "decided",
            ChangeKind::DecisionWithdrawn => "decision withdrawn",
            ChangeKind::BlockerRaised => "blocker",
            ChangeKind::BlockerCleared => "blocker cleared",
            ChangeKind::FileCreated => "file created",
            ChangeKind::FileModified => "file modified",
            ChangeKind::FileNamed => "file named",
            ChangeKind::FileForgotten => "file no longer named",
            ChangeKind::Contract => "criteria of success",
            ChangeKind::Verification => "verification",
            ChangeKind::InstructionGiven => "instruction",
            ChangeKind::InstructionWithdrawn => "instruction withdrawn",
            ChangeKind::Value => "",
        }
    }

    /// Whether its details belong to the earlier state, and whether to the later one.
    fn states(self) -> (bool, bool) {
        match self {
            ChangeKind::AgentForgotten
            | ChangeKind::StepDropped
            | ChangeKind::DecisionWithdrawn
            | ChangeKind::BlockerCleared
            | ChangeKind::FileForgotten
            | ChangeKind::InstructionWithdrawn => (true, false),
            ChangeKind::StepBegun
            | ChangeKind::StepFinished
            | ChangeKind::StepReturned
            | ChangeKind::StepReopened
            | ChangeKind::Verification => (true, true),
            // The step of a note did not change, and the details of a value include a pointer.
            ChangeKind::StepNoted | ChangeKind::Value => (false, false),
            _ => (false, true),
        }
    }
}

impl Change {
    pub(super) fn new(kind: ChangeKind) -> Change {
        Change {
            kind,
            details: Vec::new(),
            written: None,
            left_plan: None,
        }
    }

    pub(super) fn with(mut self, name: &'static str, text: Option<&str>) -> Change {
        self.details.push((name, text.map(str::to_owned)));
        self
    }

    pub(super) fn leaving_plan(mut self, step: &str) -> Change {
        self.left_plan = Some(step.to_owned());
        self
    }

    pub(super) fn with_from_to(self, from: Option<&str>, to: Option<&str>) -> Change {
        self.with("from", from).with("to", to)
    }

    pub(super) fn value(pointer: &str, before: Option<&str>, after: Option<&str>) -> Change {
        Change::new(ChangeKind::Value)
            .with("pointer", Some(pointer))
            .with("before", before)
            .with("after", after)
    }

    pub(super) fn set_written(&mut self, before: String, after: String) {
        let is_other = self.get("from") != Some(&before) || self.get("to") != Some(&after);
        self.written = is_other.then_some((before, after));
    }

    /// The kind of the change.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// Returns a detail by its name, such as the `step` of a [`ChangeKind::StepFinished`].
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::difference::{ChangeKind, Difference};
    /// use agent_checkpoint::json::Document;
    ///
    /// let before = Document::from_text(r#"{"a": 1}"#)?;
    /// let after = Document::from_text(r#"{"a": 2}"#)?;
    /// let change = &Difference::between(&before, &after).changes[0];
    /// assert_eq!(change.kind(), ChangeKind::Value);
    /// assert_eq!(change.get("pointer"), Some("/a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut details = self.details.iter();
        details.find(|(known, _)| *known == name)?.1.as_deref()
    }

    /// Whether something of the earlier state is gone and nothing replaced it.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::difference::Difference;
    /// use agent_checkpoint::json::Document;
    ///
    /// let before = Document::from_text(r#"{"a": 1, "b": 2}"#)?;
    /// let after = Document::from_text(r#"{"b": 3}"#)?;
    /// let changes = Difference::between(&before, &after).changes;
    /// let losses: Vec<_> = changes.iter().filter(|change| change.is_loss()).collect();
    /// assert_eq!(losses.len(), 1);
    /// assert_eq!(losses[0].get("pointer"), Some("/a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_loss(&self) -> bool {
        match self.details.as_slice() {
            [.., ("to" | "after", now)] => now.is_none(),
            _ => self.kind.states() == (true, false),
        }
    }

    /// The texts that the change reports: a text of the earlier state, and the one that replaced it in the later state.
    pub(super) fn texts(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
        let (details, pair) = match self.details.as_slice() {
            [details @ .., ("from", from), ("to", to)] => {
                (details, Some((from.as_deref(), to.as_deref())))
            }
            details => (details, None),
        };
        let (is_before, is_after) = self.kind.states();
        let texts = details.iter().filter(|(name, _)| *name != "was");
        let texts = texts.filter_map(|(_, text)| text.as_deref());
        let before = texts.clone().filter(move |_| is_before);
        let after = texts.filter(move |_| is_after);
        let before = before.map(|text| (Some(text), None));
        let left_plan = self.left_plan.as_deref().map(|step| (Some(step), None));
        pair.into_iter()
            .chain(left_plan)
            .chain(before)
            .chain(after.map(|text| (None, Some(text))))
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("change", &self.kind)?;
        for (name, text) in &self.details {
            map.serialize_entry(name, text)?;
        }
        if let Some(written) = &self.written {
            map.serialize_entry("written", written)?;
        }
        map.end()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.kind.words();
        match self.details.as_slice() {
            [("from", from), ("to", to)] => {
                write!(f, "{words}: {} → {}", or_none(from), or_none(to))?;
            }
            [(_, Some(subject)), ("from", from), ("to", to)] => {
                let subject = line(subject.chars());
                write!(f, "{words} {subject}: {} → {}", or_none(from), or_none(to))?;
            }
            [("pointer", Some(pointer)), (_, before), (_, after)] => {
                write!(f, "{}: ", line(pointer.chars()))?;
                match (before, after) {
                    (Some(before), Some(after)) => {
                        write!(f, "{} → {}", json_line(before), json_line(after))?;
                    }
                    (None, Some(after)) => write!(f, "added {}", json_line(after))?,
                    (Some(before), None) => write!(f, "removed {}", json_line(before))?,
                    (None, None) => f.write_str("nothing")?,
                }
            }
            [(_, Some(step)), ("was", Some(was))] => {
                let was = match was.as_str() {
                    "in_progress" => "in progress",
                    "finished" => "listed as finished",
                    was => was,
                };
                write!(f, "{words} {was}: {}", line(step.chars()))?;
            }
            [(_, Some(subject)), rest @ ..] => {
                write!(f, "{words}: {}", line(subject.chars()))?;
                let facts = rest.iter().filter_map(|(name, text)| {
                    let words = match *name {
                        "note" => "so far:",
                        "rationale" => "because",
                        name => name,
                    };
                    Some(format!("{words} {}", line(text.as_ref()?.chars())))
                });
                in_brackets(f, &facts.collect::<Vec<_>>())?;
            }
            _ => f.write_str(words)?,
        }
        match &self.written {
            Some((before, after)) => {
                let (before, after) = (line(before.chars()), line(after.chars()));
                write!(f, " (written {before} → {after})")
            }
            None => Ok(()),
        }
    }
}

fn in_brackets(f: &mut fmt::Formatter<'_>, facts: &[String]) -> fmt::Result {
    if facts.is_empty() {
        return Ok(());
    }
    write!(f, " ({})", facts.join(", "))
}

fn or_none(text: &Option<String>) -> String {
    line(text.as_deref().unwrap_or("none").chars())
}

/// The most characters of a text in a line.
const MOST: usize = 120;

/// A text on one line: hidden characters and those that control a terminal are escaped, and a long text is cut.
fn line(mut text: impl Iterator<Item = char>) -> String {
    let mut line = String::new();
    for letter in text.by_ref().take(MOST) {
        if crate::shown::is_hidden(letter) {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    if text.next().is_some() {
        line.push('…');
    }
    line
}

/// A JSON text on one line, without white space between its tokens.
fn json_line(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let tight = json.chars().filter(move |&letter| {
        if in_string {
            in_string = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            return true;
        }
        in_string = letter == '"';
        !matches!(letter, ' ' | '\t' | '\r' | '\n')
    });
    line(tight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_line() {
        let text = "a\u{1b}[2J\nb\u{202e}é";
        assert_eq!(line(text.chars()), "a\\u{1b}[2J\\nb\\u{202e}é");
        assert_eq!(json_line("\"\u{9b}\""), "\"\\u{9b}\"");
    }

    #[test]
    fn a_long_text_is_shortened() {
        let shown = line("ab".repeat(1000).chars());
        assert_eq!(shown.chars().count(), MOST + 1);
        assert!(shown.ends_with("b…"));
        assert_eq!(line("a".repeat(MOST).chars()), "a".repeat(MOST));
    }

    #[test]
    fn json_keeps_the_spaces_of_its_strings() {
        let text = "{\n  \"a b\": [ 1,\t\"\\\" \\\\\" , \" \" ]\r\n}";
        assert_eq!(json_line(text), "{\"a b\":[1,\"\\\" \\\\\",\" \"]}");
    }
}
