//! Members that nobody declared: what agents write beside their format.

use serde::Serialize;

use crate::json::{Document, Kind, Node};

/// The names under which agents leave words for whoever goes on.
const NOTES: [&str; 6] = [
    "next_action",
    "resume_instructions",
    "notes",
    "next_steps",
    "blocker",
    "handoff",
];

/// The most letters of one note; all of it stands in the checkpoint.
const LONGEST_NOTE: usize = 2_000;

/// The most members that are listed.
const MOST_LISTED: usize = 50;

/// A member of a checkpoint that its format does not declare, and that stays in the file as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ForeignMember {
    /// What it is called: its path, with `*` for any element of a list, such as `notes` or `completedSteps/*/by`.
    pub name: String,
    /// What it says, where its name says that it is for the next agent (`next_action`, `resume_instructions`,
    /// `notes`, `next_steps`, `blocker`, `handoff`); a long text is cut.
    pub note: Option<String>,
}

/// The members of the document that the value which was read from it has not, in the order of the text, each name
/// once. What could not be read is none of them, and neither is what has nothing in it.
pub(crate) fn members<T: Serialize>(
    document: &Document,
    value: &T,
    left_out: &[String],
) -> Vec<ForeignMember> {
    let mut found = Vec::new();
    if let Ok(declared) = Document::new(value) {
        compare(document.root(), declared.root(), "", left_out, &mut found);
    }
    found
}

fn compare(
    text: Node<'_>,
    declared: Node<'_>,
    at: &str,
    left_out: &[String],
    found: &mut Vec<ForeignMember>,
) {
    match (text.kind(), declared.kind()) {
        (Kind::Object, Kind::Object) => {
            for (name, member) in text.members() {
                let path = match at {
                    "" => name.to_string(),
                    at => format!("{at}/{name}"),
                };
                if let Some(declared) = declared.get(&name) {
                    compare(member, declared, &path, left_out, found);
                } else if says_something(member) && !left_out.contains(&member.pointer()) {
                    let is_known = found.iter().any(|known| known.name == path);
                    if !is_known && found.len() < MOST_LISTED {
                        let is_note = at.is_empty() && NOTES.contains(&name.as_ref());
                        found.push(ForeignMember {
                            note: is_note.then(|| note(member)),
                            name: path,
                        });
                    }
                }
            }
        }
        (Kind::Array, Kind::Array) => {
            let path = format!("{at}/*");
            // Elements that could not be read are missing from the other.
            let read = text
                .elements()
                .filter(|element| !left_out.contains(&element.pointer()));
            for (element, declared) in read.zip(declared.elements()) {
                compare(element, declared, &path, left_out, found);
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
        _ => node.as_str().is_none_or(|text| !text.trim().is_empty()),
    }
}

/// A value in words: a line for each text in it.
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
    use crate::TaskCheckpoint;

    #[test]
    fn what_nobody_declared_is_named_and_what_is_for_the_next_agent_is_said() {
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
}
