//! Undeclared members: values that agents write beyond their format.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::is_blank;
use crate::json::{Document, Kind, Node, pointer};

/// The names under which agents leave notes for the next agent.
const NOTES: [&str; 6] = [
    "next_action",
    "resume_instructions",
    "notes",
    "next_steps",
    "blocker",
    "handoff",
];

/// The most letters of one note; the checkpoint has the whole text.
const LONGEST_NOTE: usize = 2_000;

/// The most members that are listed.
const MOST_LISTED: usize = 50;

/// A member of a checkpoint that its format does not declare. It stays unchanged in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ForeignMember {
    /// The path of the member, with `*` for any element of a list, such as `notes` or `completedSteps/*/by`.
    pub name: String,
    /// Its text, if its name marks it as a note for the next agent (`next_action`, `resume_instructions`, `notes`,
    /// `next_steps`, `blocker`, `handoff`); a long text is cut.
    pub note: Option<String>,
}

/// The members of the document that the value read from it lacks, in the order of the text, each name once. Unreadable
/// values and empty ones are not listed.
pub(crate) fn members<T: Serialize>(
    document: &Document,
    value: &T,
    left_out: &[String],
) -> Vec<ForeignMember> {
    let mut found = Vec::new();
    let text = serde_json::to_string(value).ok();
    if let Some(declared) = text.and_then(|text| Document::from_text(text).ok()) {
        let left_out = left_out.iter().map(String::as_str).collect();
        let at = At::Root(document.at());
        compare(document.root(), declared.root(), &at, &left_out, &mut found);
    }
    found
}

/// The place of a value. Few values have to be named, so the text is built only for those.
#[derive(Clone, Copy)]
enum At<'a> {
    /// The pointer of the root in its file.
    Root(&'a str),
    Member(&'a At<'a>, &'a str),
    Element(&'a At<'a>, usize),
}

impl At<'_> {
    /// The name, with `*` for any element.
    fn name(&self) -> String {
        match self {
            At::Root(_) => String::new(),
            At::Member(above, name) => match above.name().as_str() {
                "" => (*name).to_owned(),
                above => format!("{above}/{name}"),
            },
            At::Element(above, _) => format!("{}/*", above.name()),
        }
    }

    /// Whether the place is one of these pointers.
    fn is_in(&self, pointers: &HashSet<&str>) -> bool {
        !pointers.is_empty() && pointers.contains(self.pointer().as_str())
    }

    fn pointer(&self) -> String {
        match self {
            At::Root(at) => (*at).to_owned(),
            At::Member(above, name) => pointer::join(&above.pointer(), name),
            At::Element(above, number) => pointer::join(&above.pointer(), &number.to_string()),
        }
    }
}

/// Visits each value once, with its place: computing the place from the root each time would take quadratic time.
fn compare(
    text: Node<'_>,
    declared: Node<'_>,
    at: &At<'_>,
    left_out: &HashSet<&str>,
    found: &mut Vec<ForeignMember>,
) {
    match (text.kind(), declared.kind()) {
        (Kind::Object, Kind::Object) => {
            let declared: HashMap<_, _> = declared.members().collect();
            for (name, member) in text.members() {
                let inside = At::Member(at, &name);
                if let Some(declared) = declared.get(&name) {
                    compare(member, *declared, &inside, left_out, found);
                } else if says_something(member) && !inside.is_in(left_out) {
                    let whole = inside.name();
                    let is_known = found.iter().any(|known| known.name == whole);
                    if !is_known && found.len() < MOST_LISTED {
                        let is_note = at.name().is_empty() && NOTES.contains(&name.as_ref());
                        found.push(ForeignMember {
                            note: is_note.then(|| note(member)),
                            name: whole,
                        });
                    }
                }
            }
        }
        (Kind::Array, Kind::Array) => {
            // Elements that could not be read are missing in `declared`.
            let mut declared = declared.elements();
            for (number, element) in text.elements().enumerate() {
                let inside = At::Element(at, number);
                if inside.is_in(left_out) {
                    continue;
                }
                let Some(declared) = declared.next() else {
                    break;
                };
                compare(element, declared, &inside, left_out, found);
            }
        }
        _ => {}
    }
}

fn says_something(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => false,
        Kind::Array => node.elements().next().is_some(),
        Kind::Object => node.members().next().is_some(),
        _ => node.as_str().is_none_or(|text| !is_blank(&text)),
    }
}

/// A value as text, with a line for each text in it.
fn note(node: Node<'_>) -> String {
    let mut text = String::new();
    write(node, &mut text);
    let text = text.trim();
    match text.char_indices().nth(LONGEST_NOTE) {
        Some((end, _)) => format!("{}… (cut)", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn write(node: Node<'_>, into: &mut String) {
    if into.len() > LONGEST_NOTE * 4 {
        return;
    }
    match node.kind() {
        Kind::Object => {
            for (name, member) in node.members() {
                into.push_str(&name);
                into.push_str(": ");
                write(member, into);
            }
        }
        Kind::Array => node.elements().for_each(|element| write(element, into)),
        _ => {
            match node.as_str() {
                Some(text) => into.push_str(&text),
                None => into.push_str(node.raw()),
            }
            into.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::task::TaskCheckpoint;

    #[test]
    fn what_is_not_declared_is_named_and_what_is_for_the_next_agent_is_said() {
        let document = Document::from_text(
            r#"{"phase":"implementation","completedSteps":[7,{"step":"a","by":"x"},{"step":"b","by":"y"}],
                "notes":["one",{"two":3}],"next_action":"Call Ann","mine":{"a":1},"nothing":null,"empty":[],
                "metadata":{"createdBy":"a","team":"red"}}"#,
        )
        .unwrap();
        let reading = document.read::<TaskCheckpoint>().unwrap();
        let found = members(&document, &reading.value, reading.left_out());
        let names: Vec<&str> = found.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "completedSteps/*/by",
                "notes",
                "next_action",
                "mine",
                "metadata/team"
            ]
        );
        let notes: Vec<_> = found
            .iter()
            .filter_map(|member| member.note.as_deref())
            .collect();
        assert_eq!(notes, ["one\ntwo: 3", "Call Ann"]);
    }

    #[test]
    fn a_long_plan_is_passed_in_linear_time() {
        let steps: Vec<String> = (0..40_000).map(|step| format!("step {step}")).collect();
        let plan = serde_json::json!({"phase": "implementation", "pendingSteps": steps});
        let document = Document::new(&plan).unwrap();
        let reading = document.read::<TaskCheckpoint>().unwrap();
        let began = std::time::Instant::now();
        assert!(members(&document, &reading.value, reading.left_out()).is_empty());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}
