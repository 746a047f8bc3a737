//! A value of a document.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::document::Document;
use super::tree::{Index, Kind, Marks, ROOT};

/// A value of a [`Document`], at its place in the text.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document,
    index: Index,
}

impl Document {
    /// The root object.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node::new(self, ROOT)
    }

    /// Returns the value at a JSON pointer (RFC 6901) from the root of this document: `""` is the root itself.
    ///
    /// Of several members with the same name the last one counts. A text that is no pointer finds nothing.
    #[must_use]
    pub fn get(&self, pointer: &str) -> Option<Node<'_>> {
        let index = self.tree.find(pointer)?;
        Some(Node::new(self, index))
    }
}

impl<'d> Node<'d> {
    pub(super) fn new(document: &'d Document, index: Index) -> Node<'d> {
        Node { document, index }
    }

    /// The type of the value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.document.tree.kind(self.index)
    }

    /// The exact text of the value.
    #[must_use]
    pub fn raw(&self) -> &'d str {
        self.document.tree.raw(self.index)
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The value, if it is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The value, if it is a number written as an integer that fits in `u64`.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.number()?.parse().ok()
    }

    /// The value, if it is a number written as an integer that fits in `i64`.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.number()?.parse().ok()
    }

    /// The nearest `f64`, if the value is a number within its range.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.parse().ok().filter(|n: &f64| n.is_finite())
    }

    fn number(&self) -> Option<&'d str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    /// The value, if it is a string. None for a string with half of a surrogate pair, which is no valid Unicode.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'d, str>> {
        let span = self.document.tree.span(self.index);
        let readable = span.kind == Kind::String && !span.marks.has(Marks::LONE);
        readable.then(|| self.document.tree.string(self.index))
    }

    /// The members of an object that count, in the order of the text; empty for other values.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'d, str>, Node<'d>)> + use<'d> {
        let document = self.document;
        let inside = self.children_if(Kind::Object);
        inside
            .filter(|&child| !document.tree.span(child).is_shadowed())
            .map(move |child| (document.tree.name(child), Node::new(document, child)))
    }

    /// Whether an object has duplicate names; only the last of each counts.
    pub(crate) fn repeats_a_name(&self) -> bool {
        let tree = &self.document.tree;
        self.children_if(Kind::Object)
            .any(|child| tree.span(child).is_shadowed())
    }

    /// The elements of an array; empty for other values.
    pub fn elements(&self) -> impl Iterator<Item = Node<'d>> + use<'d> {
        let document = self.document;
        self.children_if(Kind::Array)
            .map(move |child| Node::new(document, child))
    }

    fn children_if(&self, kind: Kind) -> impl Iterator<Item = Index> + use<'d> {
        let right = self.kind() == kind;
        let tree = &self.document.tree;
        let children = right.then(|| tree.children(self.index));
        children.into_iter().flatten()
    }

    /// Returns the member of an object with this name; the last one if the name is given more than once.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Node<'d>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let index = self.document.tree.member(self.index, name)?;
        Some(Node::new(self.document, index))
    }

    /// Whether both are the same JSON value; see [`Document::same_value`].
    #[must_use]
    pub fn same_value(&self, other: &Node<'_>) -> bool {
        let (tree, theirs) = (&self.document.tree, &other.document.tree);
        tree.same(self.index, theirs, other.index)
    }

    /// The pointer to the value, from the root of the file.
    #[must_use]
    pub fn pointer(&self) -> String {
        self.document.pointer_to(self.index)
    }

    /// The byte range of the value in the text of the document.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        let span = self.document.tree.span(self.index);
        span.start as usize..span.end as usize
    }

    /// The line of the document's text where the value starts, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        let before = &self.document.tree.text[..self.range().start];
        before.bytes().filter(|&byte| byte == b'\n').count() + 1
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.raw()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_they_say() {
        let text = "{\"a\": [1, -2, 2.5, true, null, \"x\\ny\"],\n\"b/c\": {}}";
        let document = Document::from_text(text).unwrap();
        let a: Vec<_> = document.root().get("a").unwrap().elements().collect();
        assert_eq!(a[0].as_u64(), Some(1));
        assert_eq!(a[1].as_u64(), None);
        assert_eq!(a[1].as_i64(), Some(-2));
        assert_eq!(a[2].as_f64(), Some(2.5));
        assert_eq!(a[2].as_i64(), None);
        assert_eq!(a[3].as_bool(), Some(true));
        assert!(a[4].is_null());
        assert_eq!(a[5].as_str().as_deref(), Some("x\ny"));
        assert_eq!(a[5].pointer(), "/a/5");
        assert_eq!(a[5].as_bool(), None);
        let b = document.get("/b~1c").unwrap();
        assert_eq!(
            (b.pointer().as_str(), b.line(), b.kind()),
            ("/b~1c", 2, Kind::Object)
        );
        assert_eq!(&text[b.range()], "{}");
        let names: Vec<_> = document.root().members().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b/c"]);
        assert!(document.get("/a/00").is_none());
        assert!(document.get("a").is_none());
    }
}
