//! A value as the JSON text that its type writes.

use serde::Serialize;

use super::edit_error::{EditError, EditProblem};
use super::maps::{Flaw, maps};
use super::text::quote;
use super::tree::{Index, Kind, Tree};

/// The text of a value, and which of its objects are maps.
pub(super) struct Typed {
    pub(super) tree: Tree,
    /// The objects that are maps, in the order of the text.
    maps: Vec<Index>,
}

impl Typed {
    /// Serializes `value`; `pointer` is its place, for errors.
    pub(super) fn of<T: Serialize + ?Sized>(value: &T, pointer: &str) -> Result<Typed, EditError> {
        let text = serde_json::to_string(value).map_err(|source| {
            EditError(EditProblem::Serialize {
                pointer: pointer.to_owned(),
                source,
            })
        })?;
        let objects = match maps(value) {
            Ok(objects) => objects,
            Err(Flaw::NotFinite) => {
                return Err(EditError(EditProblem::NotFinite {
                    pointer: pointer.to_owned(),
                }));
            }
            // serde_json could write it, so it is only unknown which objects are maps.
            Err(Flaw::Other) => Vec::new(),
        };
        let tree =
            Tree::of_any_value(text).map_err(|corrupt| EditError::refused(pointer, corrupt))?;
        let maps = maps_of(&tree, &objects);
        Ok(Typed { tree, maps })
    }

    /// An object with this value as its only member `name`.
    pub(super) fn as_member(&self, name: &str, pointer: &str) -> Result<Tree, EditError> {
        let text = format!("{{{}:{}}}", quote(name), self.tree.text);
        Tree::of_any_value(text).map_err(|corrupt| EditError::refused(pointer, corrupt))
    }

    pub(super) fn is_map(&self, object: Index) -> bool {
        self.maps.binary_search(&object).is_ok()
    }
}

/// The objects of the text that were serialized as maps; empty if the numbers of objects differ, since it is then
/// unknown.
fn maps_of(tree: &Tree, objects: &[bool]) -> Vec<Index> {
    let indexes = 0..tree.spans.len() as Index;
    let in_text: Vec<Index> = indexes.filter(|&i| tree.kind(i) == Kind::Object).collect();
    if in_text.len() != objects.len() {
        return Vec::new();
    }
    let both = in_text.into_iter().zip(objects);
    both.filter(|(_, is_map)| **is_map)
        .map(|(index, _)| index)
        .collect()
}

/// The text of a value of a file as serde_json would write it: without white space and shadowed members.
pub(super) fn compact(tree: &Tree, index: Index) -> String {
    let span = tree.span(index);
    let mut out = String::with_capacity((span.end - span.start) as usize);
    write_compact(tree, index, &mut out);
    out
}

fn write_compact(tree: &Tree, index: Index, out: &mut String) {
    match tree.kind(index) {
        Kind::Null | Kind::Bool | Kind::Number => out.push_str(tree.raw(index)),
        Kind::String => out.push_str(&canonical_string(
            tree.raw(index),
            || tree.string(index).into_owned(),
            tree.span(index).marks.has(super::tree::Marks::ESCAPED),
            tree.span(index).marks.has(super::tree::Marks::LONE),
        )),
        Kind::Array => {
            out.push('[');
            for (position, child) in tree.children(index).enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_compact(tree, child, out);
            }
            out.push(']');
        }
        Kind::Object => {
            out.push('{');
            for (position, child) in tree.effective(index).enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&canonical_string(
                    tree.raw_name(child),
                    || tree.name(child).into_owned(),
                    tree.span(child).marks.has(super::tree::Marks::NAME_ESCAPED),
                    tree.span(child).marks.has(super::tree::Marks::NAME_LONE),
                ));
                out.push(':');
                write_compact(tree, child, out);
            }
            out.push('}');
        }
    }
}

/// A string as serde_json would write it; one with half of a surrogate pair is kept as it is.
fn canonical_string(
    raw: &str,
    plain: impl FnOnce() -> String,
    escaped: bool,
    lone: bool,
) -> std::borrow::Cow<'_, str> {
    if escaped && !lone {
        quote(&plain()).into()
    } else {
        raw.into()
    }
}
