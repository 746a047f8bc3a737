//! Changes of a document, of which all generated deviations consist.

use std::fmt;
use std::sync::Arc;

use proptest::sample::Index;
use serde_json::Value;

use crate::checkpoint::Timestamp;
use crate::json::{Document, Kind, Node};

/// One change, applied at one of the values that it fits.
#[derive(Clone)]
pub(super) struct Edit {
    pub(super) what: &'static str,
    fits: fn(Node<'_>) -> bool,
    change: Arc<Change>,
}

/// Returns the document after the change of a value; none if the result would be no document.
type Change = dyn Fn(&Document, Node<'_>, Index) -> Option<Document> + Send + Sync;

impl Edit {
    pub(super) fn new(
        what: &'static str,
        fits: fn(Node<'_>) -> bool,
        change: impl Fn(&Document, Node<'_>, Index) -> Option<Document> + Send + Sync + 'static,
    ) -> Edit {
        let change = Arc::new(change);
        Edit { what, fits, change }
    }

    /// Replaces the value by JSON that depends on it.
    pub(super) fn of(
        what: &'static str,
        fits: fn(Node<'_>) -> bool,
        json: impl Fn(Node<'_>) -> String + Send + Sync + 'static,
    ) -> Edit {
        Edit::new(what, fits, move |document, value, _| {
            replaced(document, value, &json(value))
        })
    }

    /// Replaces the value by this JSON.
    pub(super) fn put(what: &'static str, fits: fn(Node<'_>) -> bool, json: String) -> Edit {
        Edit::of(what, fits, move |_| json.clone())
    }

    /// Adds a member to an object, replacing one of the same name.
    pub(super) fn add(what: &'static str, name: String, json: String) -> Edit {
        Edit::new(what, is_object, move |document, object, at| {
            with_member(document, object, &name, &json, at)
        })
    }

    /// Removes the member or element.
    pub(super) fn remove(what: &'static str) -> Edit {
        Edit::new(what, is_inside, |document, value, _| {
            let mut document = document.clone();
            document.remove(&value.pointer()).ok()?;
            Some(document)
        })
    }

    /// The same change, allowed at any value but the root.
    pub(super) fn anywhere(self) -> Edit {
        Edit {
            fits: is_inside,
            ..self
        }
    }

    /// Applies the change at one of the values that it fits; none if it fits no value.
    pub(super) fn apply(&self, document: &Document, at: Index) -> Option<Document> {
        let mut places = values(document.root());
        places.retain(|value| (self.fits)(*value));
        if places.is_empty() {
            return None;
        }
        (self.change)(document, *at.get(&places), at)
    }
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Edit").field(&self.what).finish()
    }
}

/// The value and all values inside it, each before its content.
pub(super) fn values(value: Node<'_>) -> Vec<Node<'_>> {
    let mut all = vec![value];
    let members = value.members().map(|(_, member)| member);
    all.extend(members.chain(value.elements()).flat_map(values));
    all
}

/// The pointers to the values that fit.
pub(super) fn pointers(document: &Document, fits: fn(Node<'_>) -> bool) -> Vec<String> {
    let all = values(document.root()).into_iter();
    all.filter(|value| fits(*value))
        .map(|value| value.pointer())
        .collect()
}

/// Replaces a value of the document by other JSON; none if the result is no document.
pub(super) fn replaced(document: &Document, value: Node<'_>, json: &str) -> Option<Document> {
    let mut text = document.text().to_owned();
    text.replace_range(value.range(), json);
    Document::from_text(text).ok()
}

/// Adds a member to an object of the document: it replaces one of the same name, else it is added at any position.
pub(super) fn with_member(
    document: &Document,
    object: Node<'_>,
    name: &str,
    json: &str,
    at: Index,
) -> Option<Document> {
    if let Some(there) = object.get(name) {
        return replaced(document, there, json);
    }
    let mut members: Vec<String> = object
        .members()
        .map(|(name, member)| format!("{}:{}", quoted(&name), member.raw()))
        .collect();
    let position = at.index(members.len() + 1);
    members.insert(position, format!("{}:{json}", quoted(name)));
    replaced(document, object, &format!("{{{}}}", members.join(",")))
}

/// The text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Whether the value is not the root, which must stay an object.
pub(super) fn is_inside(value: Node<'_>) -> bool {
    !value.pointer().is_empty()
}

pub(super) fn is_object(value: Node<'_>) -> bool {
    value.kind() == Kind::Object
}

pub(super) fn is_number(value: Node<'_>) -> bool {
    value.kind() == Kind::Number
}

/// Whether the value is a string that is a time.
pub(super) fn is_time(value: Node<'_>) -> bool {
    value
        .as_str()
        .is_some_and(|text| Timestamp::parse(text).time().is_some())
}

/// Whether the value is a string that is no time.
pub(super) fn is_text(value: Node<'_>) -> bool {
    value.kind() == Kind::String && !is_time(value)
}
