//! The text of a document and the place of each value in it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text::unescape;

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// Whether values of this kind can contain values.
    pub(super) fn is_container(self) -> bool {
        matches!(self, Kind::Array | Kind::Object)
    }

    /// The kind with its article, for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// The index of a value in the list of spans; the root is 0.
pub(super) type Index = u32;

/// The root of every tree.
pub(super) const ROOT: Index = 0;

/// Stands for no index or no offset.
pub(super) const NONE: u32 = u32::MAX;

/// The place of one value and of the name before it. Offsets are in bytes of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The start of the name, at its quote; [`NONE`] if the value is no member.
    pub(super) name: u32,
    pub(super) name_end: u32,
    /// The index of the first value after this one and its content.
    pub(super) next: Index,
    pub(super) kind: Kind,
    pub(super) marks: Marks,
}

/// Properties of a span that are rarely set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks(u8);

impl Marks {
    /// The string has escapes.
    pub(super) const ESCAPED: u8 = 1;
    /// The string has half of a surrogate pair.
    pub(super) const LONE: u8 = 2;
    /// The name has escapes.
    pub(super) const NAME_ESCAPED: u8 = 4;
    /// The name has half of a surrogate pair.
    pub(super) const NAME_LONE: u8 = 8;
    /// A later member has the same name.
    pub(super) const SHADOWED: u8 = 16;

    pub(super) fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }

    pub(super) fn set(&mut self, mark: u8) {
        self.0 |= mark;
    }
}

impl Span {
    /// The start of the member with its name, or of the element.
    pub(super) fn piece_start(&self) -> usize {
        if self.name == NONE {
            self.start as usize
        } else {
            self.name as usize
        }
    }

    #[inline]
    pub(super) fn is_shadowed(&self) -> bool {
        self.marks.has(Marks::SHADOWED)
    }
}

/// A text with the spans of its values in the order of the text, parents before children.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) text: String,
    pub(super) spans: Vec<Span>,
    /// Whether some object has a duplicate name.
    pub(super) has_duplicates: bool,
}

impl Tree {
    #[inline]
    pub(super) fn span(&self, index: Index) -> &Span {
        &self.spans[index as usize]
    }

    pub(super) fn kind(&self, index: Index) -> Kind {
        self.span(index).kind
    }

    pub(super) fn raw(&self, index: Index) -> &str {
        let span = self.span(index);
        &self.text[span.start as usize..span.end as usize]
    }

    /// The name of a member with its quotes; empty if the value is no member.
    #[inline]
    pub(super) fn raw_name(&self, index: Index) -> &str {
        let span = self.span(index);
        if span.name == NONE {
            return "";
        }
        &self.text[span.name as usize..span.name_end as usize]
    }

    /// The name of a member; empty if the value is no member.
    pub(super) fn name(&self, index: Index) -> Cow<'_, str> {
        let inner = inner(self.raw_name(index));
        if self.span(index).marks.has(Marks::NAME_ESCAPED) {
            unescape(inner)
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// The content of a string.
    pub(super) fn string(&self, index: Index) -> Cow<'_, str> {
        let inner = inner(self.raw(index));
        if self.span(index).marks.has(Marks::ESCAPED) {
            unescape(inner)
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// The direct children, shadowed members included.
    #[inline]
    pub(super) fn children(&self, index: Index) -> Children<'_> {
        Children {
            spans: &self.spans,
            at: index + 1,
            end: self.span(index).next,
        }
    }

    /// The direct children that count.
    pub(super) fn effective(&self, index: Index) -> impl Iterator<Item = Index> {
        self.children(index)
            .filter(|&child| !self.span(child).is_shadowed())
    }

    pub(super) fn is_empty(&self, index: Index) -> bool {
        self.span(index).next == index + 1
    }

    /// Whether `inside` is `index` or a value in it.
    pub(super) fn contains(&self, index: Index, inside: Index) -> bool {
        (index..self.span(index).next).contains(&inside)
    }

    /// The member with this name that counts.
    pub(super) fn member(&self, object: Index, name: &str) -> Option<Index> {
        self.children(object)
            .filter(|&child| self.is_named(child, name) && !self.span(child).is_shadowed())
            .last()
    }

    #[inline]
    fn is_named(&self, child: Index, name: &str) -> bool {
        let span = self.span(child);
        // The length alone rules out most names; a value that is no member has length 0.
        let is_as_long = (span.name_end - span.name) as usize == name.len() + 2;
        (is_as_long || span.marks.has(Marks::NAME_ESCAPED)) && self.name(child) == name
    }

    /// Whether two values are members of the same name.
    pub(super) fn is_namesake(&self, a: Index, b: Index) -> bool {
        let (a_marks, b_marks) = (self.span(a).marks, self.span(b).marks);
        self.span(a).name != NONE
            && self.span(b).name != NONE
            && a_marks.has(Marks::NAME_LONE) == b_marks.has(Marks::NAME_LONE)
            && self.name(a) == self.name(b)
    }

    /// The value at a pointer from the root of this text.
    pub(super) fn find(&self, pointer: &str) -> Option<Index> {
        if !super::pointer::is_valid(pointer) {
            return None;
        }
        super::pointer::split(pointer).try_fold(ROOT, |at, token| self.step(at, &token))
    }

    /// The child named by one token of a pointer.
    pub(super) fn step(&self, at: Index, token: &str) -> Option<Index> {
        match self.kind(at) {
            Kind::Object => self.member(at, token),
            Kind::Array => self.children(at).nth(super::pointer::index(token)?),
            _ => None,
        }
    }

    /// The pointer of a value from the root of this text. The time is linear in the values before it.
    pub(super) fn pointer(&self, target: Index) -> String {
        let mut pointer = String::new();
        let mut at = ROOT;
        while at != target {
            let found = self
                .children(at)
                .enumerate()
                .find(|&(_, child)| self.contains(child, target));
            let Some((position, child)) = found else {
                break;
            };
            if self.kind(at) == Kind::Array {
                super::pointer::push(&mut pointer, &position.to_string());
            } else {
                super::pointer::push(&mut pointer, &self.name(child));
            }
            at = child;
        }
        pointer
    }

    /// Whether two values are the same JSON value. Numbers are compared by their text: `1.0` is not `1`.
    pub(super) fn same(&self, index: Index, other: &Tree, other_index: Index) -> bool {
        let (span, other_span) = (self.span(index), other.span(other_index));
        if span.kind != other_span.kind {
            return false;
        }
        match span.kind {
            Kind::Null => true,
            Kind::Bool | Kind::Number => self.raw(index) == other.raw(other_index),
            Kind::String => {
                let plain =
                    !span.marks.has(Marks::ESCAPED) && !other_span.marks.has(Marks::ESCAPED);
                if plain {
                    self.raw(index) == other.raw(other_index)
                } else {
                    span.marks.has(Marks::LONE) == other_span.marks.has(Marks::LONE)
                        && self.string(index) == other.string(other_index)
                }
            }
            Kind::Array => {
                let mut theirs = other.children(other_index);
                self.children(index)
                    .all(|child| theirs.next().is_some_and(|b| self.same(child, other, b)))
                    && theirs.next().is_none()
            }
            Kind::Object => {
                let mut counterparts = Lookup::new(other, other_index);
                self.effective(index).count() == other.effective(other_index).count()
                    && self.effective(index).all(|child| {
                        let counterpart = counterparts.find(&self.name(child));
                        counterpart.is_some_and(|counterpart| self.same(child, other, counterpart))
                    })
            }
        }
    }
}

/// Looks up many members of an object, in linear time in total, in any order.
pub(super) struct Lookup<'t> {
    tree: &'t Tree,
    object: Index,
    /// The index of the next member, for lookups in the order of the text.
    cursor: Index,
    /// How often the member was not there.
    misses: usize,
    by_name: Option<HashMap<Cow<'t, str>, Index>>,
}

impl<'t> Lookup<'t> {
    /// Up to this many misses, searching is cheaper than a hash map.
    const FEW: usize = 16;

    pub(super) fn new(tree: &'t Tree, object: Index) -> Lookup<'t> {
        Lookup {
            tree,
            object,
            cursor: object + 1,
            misses: 0,
            by_name: None,
        }
    }

    /// The same as [`Tree::member`].
    pub(super) fn find(&mut self, name: &str) -> Option<Index> {
        let tree = self.tree;
        let here = self.cursor;
        let inside = here < tree.span(self.object).next;
        let found = if inside && !tree.span(here).is_shadowed() && tree.is_named(here, name) {
            here
        } else {
            self.search(name)?
        };
        self.cursor = tree.span(found).next;
        Some(found)
    }

    fn search(&mut self, name: &str) -> Option<Index> {
        let tree = self.tree;
        if self.misses < Lookup::FEW {
            self.misses += 1;
            return tree.member(self.object, name);
        }
        let by_name = self.by_name.get_or_insert_with(|| {
            let members = tree.effective(self.object);
            members.map(|member| (tree.name(member), member)).collect()
        });
        by_name.get(name).copied()
    }
}

/// The text between the quotes.
fn inner(quoted: &str) -> &str {
    quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default()
}

/// Iterator over the values directly inside a container.
#[derive(Clone)]
pub(super) struct Children<'t> {
    spans: &'t [Span],
    at: Index,
    end: Index,
}

impl Iterator for Children<'_> {
    type Item = Index;

    #[inline]
    fn next(&mut self) -> Option<Index> {
        if self.at >= self.end {
            return None;
        }
        let here = self.at;
        self.at = self.spans[here as usize].next;
        Some(here)
    }
}
