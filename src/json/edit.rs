//! Edits of a document. Each changes the value it names and leaves every other byte unchanged.

use serde::Serialize;

use super::document::Document;
use super::edit_error::{EditError, EditProblem};
use super::layout::{Style, lay};
use super::pointer;
use super::relay::{Change, Item, Relay};
use super::tree::{Index, Kind, ROOT, Tree};
use super::typed::Typed;

/// The target of an edit.
enum Place {
    Root,
    /// An existing value.
    Value {
        container: Index,
        index: Index,
    },
    /// A missing member of an existing object.
    Absent {
        object: Index,
        name: String,
    },
    /// A missing element of an existing array.
    Beyond {
        array: Index,
        token: String,
    },
}

impl Document {
    /// Creates a document: two spaces of indent, members in the order that `value` serializes them, a final newline.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the value cannot be written as JSON, is no object, or nests too deep.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Document, EditError> {
        let tree = Document::compact(value)?.tree;
        let mut text = String::with_capacity(tree.text.len() * 2);
        lay(&mut text, &tree, ROOT, &Style::fresh(), None, "");
        text.push('\n');
        let tree = Tree::from_text(text).map_err(|corrupt| EditError::refused("", corrupt))?;
        Ok(Document::whole(tree))
    }

    /// Creates a document without white space, for values that are never written.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Document::new).
    pub(crate) fn compact<T: Serialize + ?Sized>(value: &T) -> Result<Document, EditError> {
        let tree = Typed::of(value, "")?.tree;
        match tree.kind(ROOT) {
            Kind::Object => Ok(Document::whole(tree)),
            _ => Err(EditError(EditProblem::RootNotObject)),
        }
    }

    /// Sets the value at `pointer`, which may be a new member of an existing object; `-` as the last token appends to
    /// an array. Returns whether the document changed: it does not if an equal value, in any layout, is already there.
    ///
    /// # Errors
    ///
    /// [`EditError`] when nothing can hold the value, or the value cannot be written as JSON.
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        pointer: &str,
        value: &T,
    ) -> Result<bool, EditError> {
        match self.place(pointer)? {
            Place::Root => {
                let new = Typed::of(value, self.at())?;
                if new.tree.kind(ROOT) != Kind::Object {
                    return Err(EditError(EditProblem::RootNotObject));
                }
                self.replace(ROOT, &[], &new, pointer)
            }
            Place::Value { container, index } => {
                let new = Typed::of(value, &self.full(pointer))?;
                let siblings: Vec<Index> = self.tree.children(container).collect();
                self.replace(index, &siblings, &new, pointer)
            }
            Place::Absent { object, name } => self.add_member(object, &name, value, pointer),
            Place::Beyond { array, token } if token == "-" => {
                self.add_element(array, None, value, pointer)
            }
            Place::Beyond { array, .. } => Err(self.bad_index(array, pointer)),
        }
    }

    /// Inserts a new value: into an array before the index that ends `pointer` (at the end for `-` and for the length
    /// of the array), or into an object under a new name.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the member already exists, the index is beyond the end, nothing can hold the value, or the
    /// value cannot be written as JSON.
    pub fn insert<T: Serialize + ?Sized>(
        &mut self,
        pointer: &str,
        value: &T,
    ) -> Result<bool, EditError> {
        match self.place(pointer)? {
            Place::Value { container, index } if self.tree.kind(container) == Kind::Array => {
                self.add_element(container, Some(index), value, pointer)
            }
            Place::Root | Place::Value { .. } => Err(EditError(EditProblem::AlreadyThere {
                pointer: self.full(pointer),
            })),
            Place::Absent { object, name } => self.add_member(object, &name, value, pointer),
            Place::Beyond { array, token } => {
                let length = self.tree.children(array).count();
                if token == "-" || pointer::index(&token) == Some(length) {
                    self.add_element(array, None, value, pointer)
                } else {
                    Err(self.bad_index(array, pointer))
                }
            }
        }
    }

    /// Appends a new element to the array at `pointer`.
    ///
    /// # Errors
    ///
    /// [`EditError`] when there is no array, or the value cannot be written as JSON.
    pub fn append<T: Serialize + ?Sized>(
        &mut self,
        pointer: &str,
        value: &T,
    ) -> Result<bool, EditError> {
        let array = match self.place(pointer)? {
            Place::Root => ROOT,
            Place::Value { index, .. } => index,
            Place::Absent { object, .. } => return Err(self.not_found(pointer, object)),
            Place::Beyond { array, .. } => return Err(self.bad_index(array, pointer)),
        };
        let kind = self.tree.kind(array);
        if kind != Kind::Array {
            return Err(EditError(EditProblem::NotAnArray {
                pointer: self.full(pointer),
                kind: kind.describe(),
            }));
        }
        self.add_element(array, None, value, pointer)
    }

    /// Removes the value at `pointer`, with all members of that name. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`EditError`] for the root, and when the text is not a JSON pointer.
    pub fn remove(&mut self, pointer: &str) -> Result<bool, EditError> {
        let (container, index) = match self.place(pointer) {
            Ok(Place::Value { container, index }) => (container, index),
            Ok(Place::Root) => return Err(EditError(EditProblem::RootNotObject)),
            Ok(_) | Err(EditError(EditProblem::NotFound { .. })) => return Ok(false),
            Err(error) => return Err(error),
        };
        let tree = &self.tree;
        let kept = tree
            .children(container)
            .filter(|&child| child != index && !tree.is_namesake(child, index));
        let items = kept.map(|child| Item::Kept(child, None)).collect();
        let change = Change::Inside(items);
        // There are no new values, so any tree serves as their source.
        let text = self.relaid(&self.tree, container, &change, &[]);
        self.commit(text, pointer)?;
        Ok(true)
    }

    /// Renames the member at `pointer`, and all members of its name; their values, places and layout stay. Returns
    /// whether the document changed: it does not if there is no such member, or if it already has that name.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the object already has a member of the new name, when `pointer` is not that of a member, and
    /// when it is not a JSON pointer.
    pub fn rename(&mut self, pointer: &str, name: &str) -> Result<bool, EditError> {
        let (container, index) = match self.place(pointer) {
            Ok(Place::Value { container, index }) => (container, index),
            Ok(Place::Root) => return Err(EditError(EditProblem::RootNotObject)),
            Ok(_) | Err(EditError(EditProblem::NotFound { .. })) => return Ok(false),
            Err(error) => return Err(error),
        };
        if self.tree.kind(container) != Kind::Object {
            return Err(self.bad_index(container, pointer));
        }
        if self.tree.name(index) == name {
            return Ok(false);
        }
        if self.tree.member(container, name).is_some() {
            let parent = pointer::parent(pointer).map_or("", |(parent, _)| parent);
            return Err(EditError(EditProblem::AlreadyThere {
                pointer: self.full(&pointer::join(parent, name)),
            }));
        }
        let quoted = Typed::of(name, self.at())?.tree.text;
        let mut text = self.tree.text.clone();
        let namesakes: Vec<Index> = (self.tree.children(container))
            .filter(|&child| child == index || self.tree.is_namesake(child, index))
            .collect();
        // In reverse order, so that earlier offsets stay valid.
        for child in namesakes.into_iter().rev() {
            let span = self.tree.span(child);
            text.replace_range(span.name as usize..span.name_end as usize, &quoted);
        }
        self.commit(text, pointer)?;
        Ok(true)
    }

    fn replace(
        &mut self,
        index: Index,
        siblings: &[Index],
        new: &Typed,
        pointer: &str,
    ) -> Result<bool, EditError> {
        let Some(change) = self.change_to(index, new)? else {
            return Ok(false);
        };
        let text = self.relaid(&new.tree, index, &change, siblings);
        self.commit(text, pointer)?;
        Ok(true)
    }

    fn add_member<T: Serialize + ?Sized>(
        &mut self,
        object: Index,
        name: &str,
        value: &T,
        pointer: &str,
    ) -> Result<bool, EditError> {
        let full = self.full(pointer);
        let value = Typed::of(value, &full)?;
        let new = value.as_member(name, &full)?;
        let kept = self.tree.children(object);
        let mut items: Vec<Item> = kept.map(|child| Item::Kept(child, None)).collect();
        items.push(Item::New(ROOT + 1));
        self.add(object, &new, items, pointer)
    }

    fn add_element<T: Serialize + ?Sized>(
        &mut self,
        array: Index,
        before: Option<Index>,
        value: &T,
        pointer: &str,
    ) -> Result<bool, EditError> {
        let new = Typed::of(value, &self.full(pointer))?.tree;
        let mut items = Vec::new();
        for child in self.tree.children(array) {
            if before == Some(child) {
                items.push(Item::New(ROOT));
            }
            items.push(Item::Kept(child, None));
        }
        if before.is_none() {
            items.push(Item::New(ROOT));
        }
        self.add(array, &new, items, pointer)
    }

    fn add(
        &mut self,
        container: Index,
        new: &Tree,
        items: Vec<Item>,
        pointer: &str,
    ) -> Result<bool, EditError> {
        let siblings = self.siblings(container);
        let text = self.relaid(new, container, &Change::Inside(items), &siblings);
        self.commit(text, pointer)?;
        Ok(true)
    }

    /// The children of the container of a value, itself included; none for the root.
    pub(super) fn siblings(&self, index: Index) -> Vec<Index> {
        let mut at = ROOT;
        while at != index {
            let inside = self.tree.children(at);
            match inside
                .clone()
                .find(|&child| self.tree.contains(child, index))
            {
                Some(child) if child == index => return inside.collect(),
                Some(child) => at = child,
                None => break,
            }
        }
        Vec::new()
    }

    /// The text after a change.
    pub(super) fn relaid(
        &self,
        new: &Tree,
        index: Index,
        change: &Change,
        siblings: &[Index],
    ) -> String {
        let relay = Relay {
            tree: &self.tree,
            new,
            style: &self.style(),
            first_indent: self.first_indent(),
        };
        relay.text(index, change, siblings)
    }

    /// Makes this text the text of the document.
    pub(super) fn commit(&mut self, text: String, pointer: &str) -> Result<(), EditError> {
        self.tree = Tree::from_text(text)
            .map_err(|corrupt| EditError::refused(&self.full(pointer), corrupt))?;
        Ok(())
    }

    fn place(&self, pointer: &str) -> Result<Place, EditError> {
        if !pointer::is_valid(pointer) {
            return Err(EditError(EditProblem::BadPointer {
                pointer: pointer.to_owned(),
            }));
        }
        let Some((parent, last)) = pointer::parent(pointer) else {
            return Ok(Place::Root);
        };
        let mut container = ROOT;
        for token in pointer::split(parent) {
            match self.tree.step(container, &token) {
                Some(child) => container = child,
                None => return Err(self.not_found(pointer, container)),
            }
        }
        if let Some(index) = self.tree.step(container, &last) {
            return Ok(Place::Value { container, index });
        }
        match self.tree.kind(container) {
            Kind::Object => Ok(Place::Absent {
                object: container,
                name: last.into_owned(),
            }),
            Kind::Array => Ok(Place::Beyond {
                array: container,
                token: last.into_owned(),
            }),
            _ => Err(self.not_found(pointer, container)),
        }
    }

    /// Converts a pointer of this document to a pointer of the file.
    pub(super) fn full(&self, pointer: &str) -> String {
        format!("{}{pointer}", self.at())
    }

    fn not_found(&self, pointer: &str, deepest: Index) -> EditError {
        EditError(EditProblem::NotFound {
            pointer: self.full(pointer),
            deepest: self.pointer_to(deepest),
            kind: self.tree.kind(deepest).describe(),
        })
    }

    fn bad_index(&self, array: Index, pointer: &str) -> EditError {
        EditError(EditProblem::BadIndex {
            pointer: self.full(pointer),
            length: self.tree.children(array).count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, edit: impl FnOnce(&mut Document) -> Result<bool, EditError>) -> String {
        let mut document = Document::from_text(text).unwrap();
        let changed = edit(&mut document).unwrap();
        assert_eq!(changed, document.text() != text);
        document.into_text()
    }

    fn set<T: Serialize + ?Sized>(text: &str, pointer: &str, value: &T) -> String {
        edited(text, |document| document.set(pointer, value))
    }

    #[test]
    fn setting_replaces_the_value_alone() {
        let text = "{ \"a\" : 1.0 ,\n\t\"b\":[1,2 ,3]}\n";
        assert_eq!(
            set(text, "/a", "x"),
            "{ \"a\" : \"x\" ,\n\t\"b\":[1,2 ,3]}\n"
        );
        assert_eq!(
            set(text, "/b/1", &9),
            "{ \"a\" : 1.0 ,\n\t\"b\":[1,9 ,3]}\n"
        );
        assert_eq!(set(text, "/b", &[1, 2, 3]), text);
        assert_eq!(set(r#"{"a":"\u0041"}"#, "/a", "A"), r#"{"a":"\u0041"}"#);
    }

    #[test]
    fn renaming_keeps_all_but_the_name() {
        let text = "{\"a\" : 1.0,\n \"\\u0061\": [ ], \"b\": {\"a\":2}}";
        assert_eq!(
            edited(text, |document| document.rename("/a", "x\"")),
            "{\"x\\\"\" : 1.0,\n \"x\\\"\": [ ], \"b\": {\"a\":2}}"
        );
        assert_eq!(
            edited(text, |document| document.rename("/b/a", "c")),
            "{\"a\" : 1.0,\n \"\\u0061\": [ ], \"b\": {\"c\":2}}"
        );
        for (pointer, name) in [("/a", "a"), ("/none", "x"), ("/none/a", "x")] {
            assert_eq!(
                edited(text, |document| document.rename(pointer, name)),
                text
            );
        }
        let mut document = Document::from_text(text).unwrap();
        for (pointer, name) in [("/a", "b"), ("/a/0", "x"), ("", "x"), ("a", "x")] {
            assert!(
                document.rename(pointer, name).is_err() || pointer == "/a/0",
                "{pointer}"
            );
        }
        assert_eq!(document.text(), text);
    }

    #[test]
    fn setting_a_list_keeps_its_equal_elements() {
        assert_eq!(
            set(
                r#"{"l": ["\u0061",  {"b" : 1}]}"#,
                "/l",
                &serde_json::json!(["x", "a", {"b": 1}])
            ),
            r#"{"l": ["x",  "\u0061",  {"b" : 1}]}"#
        );
    }

    #[test]
    fn new_members_follow_the_last() {
        assert_eq!(
            set("{\n  \"a\": 1\n}\n", "/b", &true),
            "{\n  \"a\": 1,\n  \"b\": true\n}\n"
        );
        assert_eq!(
            set("{\r\n\t\"a\":1\r\n}", "/b", &[1]),
            "{\r\n\t\"a\":1,\r\n\t\"b\":[\r\n\t\t1\r\n\t]\r\n}"
        );
        assert_eq!(set("{\"a\":1}", "/b", &[1, 2]), "{\"a\":1,\"b\":[1,2]}");
        assert_eq!(
            set("{\"a\": 1}", "/b", &[1, 2]),
            "{\"a\": 1, \"b\": [1, 2]}"
        );
        assert_eq!(set("{}", "/a~1b", &1), "{\n  \"a/b\": 1\n}");
        assert_eq!(
            set("{\n  \"a\": {}\n}", "/a/b", &1),
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}"
        );
    }

    #[test]
    fn new_containers_look_like_their_siblings() {
        let text = "{\n  \"steps\": [\n    { \"n\": 1, \"of\": [1] }\n  ]\n}\n";
        #[derive(Serialize)]
        struct Step {
            n: u8,
            of: [u8; 2],
        }
        assert_eq!(
            set(text, "/steps/-", &Step { n: 2, of: [1, 2] }),
            "{\n  \"steps\": [\n    { \"n\": 1, \"of\": [1] },\n    { \"n\": 2, \"of\": [1, 2] }\n  ]\n}\n"
        );
        let text = "{\n  \"a\": [1, 2],\n  \"b\": []\n}";
        assert_eq!(
            set(text, "/b/-", &5),
            "{\n  \"a\": [1, 2],\n  \"b\": [5]\n}"
        );
        assert_eq!(
            set(text, "/c", &[5, 6]),
            "{\n  \"a\": [1, 2],\n  \"b\": [],\n  \"c\": [5, 6]\n}"
        );
    }

    #[test]
    fn elements_go_where_they_are_put() {
        let text = "{\"l\": [1, 2]}";
        let insert = |pointer: &str| edited(text, |document| document.insert(pointer, &0));
        assert_eq!(insert("/l/0"), "{\"l\": [0, 1, 2]}");
        assert_eq!(insert("/l/1"), "{\"l\": [1, 0, 2]}");
        assert_eq!(insert("/l/2"), "{\"l\": [1, 2, 0]}");
        assert_eq!(insert("/l/-"), "{\"l\": [1, 2, 0]}");
        assert_eq!(insert("/m"), "{\"l\": [1, 2], \"m\": 0}");
        assert_eq!(
            edited(text, |document| document.append("/l", &3)),
            "{\"l\": [1, 2, 3]}"
        );
        assert_eq!(
            edited("{\n \"l\": [\n  1\n ]\n}", |d| d.append("/l", &3)),
            "{\n \"l\": [\n  1,\n  3\n ]\n}"
        );
    }

    #[test]
    fn removing_takes_one_separator() {
        let remove = |text: &str, pointer: &str| edited(text, |document| document.remove(pointer));
        let text = "{\n  \"a\": 1,\n  \"b\": [1, 2, 3],\n  \"a\": 2,\n  \"c\": {}\n}\n";
        assert_eq!(
            remove(text, "/a"),
            "{\n  \"b\": [1, 2, 3],\n  \"c\": {}\n}\n"
        );
        assert_eq!(
            remove(text, "/c"),
            "{\n  \"a\": 1,\n  \"b\": [1, 2, 3],\n  \"a\": 2\n}\n"
        );
        assert_eq!(remove("{\"a\":[1, 2, 3]}", "/a/0"), "{\"a\":[2, 3]}");
        assert_eq!(remove("{\"a\":[1, 2, 3]}", "/a/2"), "{\"a\":[1, 2]}");
        assert_eq!(remove("{ \"a\": 1 }", "/a"), "{}");
        assert_eq!(
            remove("{\"a\":[1,2,  3 ,4, 5]}", "/a/3"),
            "{\"a\":[1,2,  3, 5]}"
        );
        for absent in ["/x", "/b/3", "/b/-", "/a/x", "/x/y"] {
            assert_eq!(remove(text, absent), text, "{absent}");
        }
    }

    #[test]
    fn duplicates_are_edited_where_they_count() {
        assert_eq!(set("{\"a\":1,\"a\":2}", "/a", &3), "{\"a\":1,\"a\":3}");
        assert_eq!(set("{\"a\":1,\"a\":2}", "/a", &2), "{\"a\":1,\"a\":2}");
    }

    #[test]
    fn impossible_edits_leave_the_document() {
        let text = "{\"a\": \"x\", \"l\": [1]}";
        let mut document = Document::from_text(text).unwrap();
        let deep = (0..127).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        assert!(matches!(
            document.set("a", &1),
            Err(EditError(EditProblem::BadPointer { .. }))
        ));
        assert!(matches!(
            document.set("/l/1", &1),
            Err(EditError(EditProblem::BadIndex { length: 1, .. }))
        ));
        assert!(matches!(
            document.set("/l/01", &1),
            Err(EditError(EditProblem::BadIndex { .. }))
        ));
        assert!(matches!(
            document.insert("/l/2", &1),
            Err(EditError(EditProblem::BadIndex { .. }))
        ));
        assert!(matches!(
            document.insert("/a", &1),
            Err(EditError(EditProblem::AlreadyThere { .. }))
        ));
        assert!(matches!(
            document.append("/a", &1),
            Err(EditError(EditProblem::NotAnArray { .. }))
        ));
        assert!(matches!(
            document.set("", &1),
            Err(EditError(EditProblem::RootNotObject))
        ));
        assert!(matches!(
            document.remove(""),
            Err(EditError(EditProblem::RootNotObject))
        ));
        assert!(matches!(
            document.set("/l/0", &deep),
            Err(EditError(EditProblem::TooDeep { .. }))
        ));
        let error = document.set("/a/b/c", &1).unwrap_err();
        assert!(
            matches!(&error, EditError(EditProblem::NotFound { deepest, .. }) if deepest == "/a"),
            "{error}"
        );
        let error = document.set("/n/b", &1).unwrap_err();
        assert!(
            matches!(&error, EditError(EditProblem::NotFound { deepest, .. }) if deepest.is_empty())
        );
        assert_eq!(document.text(), text);
    }

    #[test]
    fn a_new_document_has_the_declared_order() {
        #[derive(Serialize)]
        struct New {
            z: u8,
            a: Vec<u8>,
            e: Vec<u8>,
        }
        let document = Document::new(&New {
            z: 1,
            a: vec![1],
            e: vec![],
        })
        .unwrap();
        assert_eq!(
            document.text(),
            "{\n  \"z\": 1,\n  \"a\": [\n    1\n  ],\n  \"e\": []\n}\n"
        );
        assert!(matches!(
            Document::new(&1),
            Err(EditError(EditProblem::RootNotObject))
        ));
    }
}
