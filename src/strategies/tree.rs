//! A JSON value that keeps the order of its members and the spelling of its numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::sample::Index;
use serde::Serialize;

use super::style::Style;
use crate::checkpoint::Timestamp;
use crate::json::{Document, Kind, Node};

/// A JSON value as a text has it: `1.0` is not `1`, and no number is too large.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    /// A number, as it is spelled.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    /// Members in their order.
    Object(Vec<(String, Tree)>),
}

/// Where a value stands: the position among its siblings, level by level.
pub(super) type Place = Vec<usize>;

impl Tree {
    /// The value as it would be written; `null` where it cannot be.
    ///
    /// Every caller has a value that was written and read before.
    pub(super) fn of<T: Serialize + ?Sized>(value: &T) -> Tree {
        // A document is an object; the value may be anything.
        let document = Document::new(&BTreeMap::from([("value", value)])).ok();
        let node = document.as_ref().and_then(|all| all.get("/value"));
        node.map_or(Tree::Null, Tree::from)
    }

    pub(super) fn text(text: impl Into<String>) -> Tree {
        Tree::Text(text.into())
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Tree::Object(_))
    }

    /// Whether it is a text that is a time.
    pub(super) fn is_time(&self) -> bool {
        matches!(self, Tree::Text(text) if Timestamp::parse(text.as_str()).time().is_some())
    }

    /// The places of all values, each before those inside it; the first is the value itself.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        self.gather(&mut Vec::new(), &mut places);
        places
    }

    /// The places of the values that fit.
    pub(super) fn places_of(&self, fits: impl Fn(&Tree) -> bool) -> Vec<Place> {
        let mut places = self.places();
        places.retain(|place| self.at(place).is_some_and(&fits));
        places
    }

    fn gather(&self, here: &mut Place, into: &mut Vec<Place>) {
        into.push(here.clone());
        let inside: Vec<&Tree> = match self {
            Tree::List(elements) => elements.iter().collect(),
            Tree::Object(members) => members.iter().map(|(_, member)| member).collect(),
            _ => Vec::new(),
        };
        for (position, value) in inside.into_iter().enumerate() {
            here.push(position);
            value.gather(here, into);
            here.pop();
        }
    }

    /// How many levels there are.
    pub(super) fn depth(&self) -> usize {
        self.places()
            .iter()
            .map(|place| place.len() + 1)
            .max()
            .unwrap_or_default()
    }

    pub(super) fn at(&self, place: &[usize]) -> Option<&Tree> {
        let mut here = self;
        for &position in place {
            here = match here {
                Tree::List(elements) => elements.get(position)?,
                Tree::Object(members) => &members.get(position)?.1,
                _ => return None,
            };
        }
        Some(here)
    }

    pub(super) fn at_mut(&mut self, place: &[usize]) -> Option<&mut Tree> {
        let mut here = self;
        for &position in place {
            here = match here {
                Tree::List(elements) => elements.get_mut(position)?,
                Tree::Object(members) => &mut members.get_mut(position)?.1,
                _ => return None,
            };
        }
        Some(here)
    }

    /// Puts a value where another is.
    pub(super) fn put(&mut self, place: &[usize], value: Tree) {
        if let Some(here) = self.at_mut(place) {
            *here = value;
        }
    }

    /// Takes out the value at the place; the root stays.
    pub(super) fn remove(&mut self, place: &[usize]) {
        let Some((&position, parent)) = place.split_last() else {
            return;
        };
        match self.at_mut(parent) {
            Some(Tree::List(elements)) if position < elements.len() => {
                elements.remove(position);
            }
            Some(Tree::Object(members)) if position < members.len() => {
                members.remove(position);
            }
            _ => {}
        }
    }

    /// Puts a member into an object, in place of one of the same name, else at the position.
    pub(super) fn insert(&mut self, name: String, value: Tree, at: Index) {
        let Tree::Object(members) = self else {
            return;
        };
        match members.iter_mut().find(|(there, _)| *there == name) {
            Some((_, there)) => *there = value,
            None => members.insert(at.index(members.len() + 1), (name, value)),
        }
    }

    /// The value as text.
    pub(super) fn write(&self, style: &Style) -> String {
        let mut text = String::new();
        if style.mark {
            text.push('\u{feff}');
        }
        self.write_into(style, 0, &mut text);
        if style.last_line_end {
            text.push('\n');
        }
        if style.crlf {
            text = text.replace('\n', "\r\n");
        }
        text
    }

    fn write_into(&self, style: &Style, depth: usize, text: &mut String) {
        match self {
            Tree::Null => text.push_str("null"),
            Tree::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Tree::Number(number) => text.push_str(number),
            Tree::Text(value) => write_text(value, style, text),
            Tree::List(elements) => {
                text.push('[');
                for (position, element) in elements.iter().enumerate() {
                    separate(position, style, depth + 1, text);
                    element.write_into(style, depth + 1, text);
                }
                if !elements.is_empty() {
                    new_line(style, depth, text);
                }
                text.push(']');
            }
            Tree::Object(members) => {
                text.push('{');
                for (position, (name, member)) in members.iter().enumerate() {
                    separate(position, style, depth + 1, text);
                    write_text(name, style, text);
                    text.push_str(if style.indent.is_some() { ": " } else { ":" });
                    member.write_into(style, depth + 1, text);
                }
                if !members.is_empty() {
                    new_line(style, depth, text);
                }
                text.push('}');
            }
        }
    }
}

fn separate(position: usize, style: &Style, depth: usize, text: &mut String) {
    if position > 0 {
        text.push(',');
    }
    new_line(style, depth, text);
}

fn new_line(style: &Style, depth: usize, text: &mut String) {
    if let Some(indent) = style.indent {
        text.push('\n');
        (0..depth).for_each(|_| text.push_str(indent));
    }
}

/// Line ends stand only between values: in a JSON string they are escaped.
fn write_text(value: &str, style: &Style, text: &mut String) {
    let quoted = serde_json::Value::from(value).to_string();
    if !style.ascii {
        text.push_str(&quoted);
        return;
    }
    for letter in quoted.chars() {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
}

impl From<Node<'_>> for Tree {
    fn from(node: Node<'_>) -> Tree {
        match node.kind() {
            Kind::Null => Tree::Null,
            Kind::Bool => Tree::Bool(node.as_bool().unwrap_or_default()),
            Kind::Number => Tree::Number(node.raw().to_owned()),
            Kind::String => Tree::Text(node.as_str().unwrap_or_default().into_owned()),
            Kind::Array => Tree::List(node.elements().map(Tree::from).collect()),
            Kind::Object => {
                let members = node.members();
                Tree::Object(
                    members
                        .map(|(name, member)| (name.into_owned(), Tree::from(member)))
                        .collect(),
                )
            }
        }
    }
}
