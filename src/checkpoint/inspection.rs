//! How a format reports violations of its rules.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use chrono::TimeDelta;

use super::{Checkpoint, Limits, OpenEnum, RuleContext, Timestamp};
use crate::json::{Code, Document, Kind, Node, Reading, Violation, pointer, quoted_short};

/// How far a stamp may lie in the future before it is a violation.
pub const FUTURE_TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// The most rule violations that are listed for one checkpoint.
const MAX_FOUND: usize = 256;

/// Collects the violations of a format's rules.
///
/// A format walks its typed value and reports violations by pointer. The inspection knows which parts of the
/// document could not be read, so a rule reports nothing about values that are not there to judge: a violation
/// at or below an unreadable value is skipped. Pointers into lists are those of the file, even if unreadable
/// elements are missing from the typed list.
pub struct Inspection<'a> {
    left_out: HashSet<&'a str>,
    locate: Box<dyn Fn(&str) -> String + 'a>,
    /// The node at the present position; `None` if the document has none.
    node: Option<Node<'a>>,
    context: RuleContext<'a>,
    limits: Limits,
    /// The pointer of the present position in the typed value.
    prefix: String,
    /// The pointer of the present position in the file.
    place: String,
    found: Vec<Violation>,
}

impl fmt::Debug for Inspection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("place", &self.place)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

impl<'a> Inspection<'a> {
    /// An inspection of what was read from a document.
    pub fn new<T>(
        document: &'a Document,
        reading: &'a Reading<T>,
        context: &RuleContext<'a>,
    ) -> Self {
        Inspection {
            left_out: reading.left_out().iter().map(String::as_str).collect(),
            locate: Box::new(move |pointer| reading.locate(document, pointer)),
            node: Some(document.root()),
            context: *context,
            limits: Limits::default(),
            prefix: String::new(),
            place: document.at().to_owned(),
            found: Vec::new(),
        }
    }

    /// The context that the rules were given.
    #[must_use]
    pub fn context(&self) -> &RuleContext<'a> {
        &self.context
    }

    /// The limits for texts.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs `walk` with pointers below the member `name`.
    pub fn within<R>(&mut self, name: &str, walk: impl FnOnce(&mut Self) -> R) -> R {
        let node = self.node.and_then(|node| node.get(name));
        self.below(name, name, node, walk)
    }

    /// Runs `walk` for each element of the list `name`, with pointers below it. `items` are the elements that
    /// could be read.
    pub fn each<T>(&mut self, name: &str, items: &[T], mut walk: impl FnMut(&T, &mut Self)) {
        self.within(name, |inspection| {
            let mut nodes = inspection
                .node
                .into_iter()
                .flat_map(|list| list.elements())
                .enumerate();
            for (index, item) in items.iter().enumerate() {
                // The next readable element of the file is the one that became this item.
                let next = nodes.find(|(position, _)| {
                    inspection.left_out.is_empty() || {
                        let place = format!("{}/{position}", inspection.place);
                        !inspection.left_out.contains(place.as_str())
                    }
                });
                let (position, node) = match next {
                    Some((position, node)) => (position, Some(node)),
                    None => (index, None),
                };
                let file = position.to_string();
                let typed = match index == position {
                    true => Cow::Borrowed(file.as_str()),
                    false => index.to_string().into(),
                };
                inspection.below(&typed, &file, node, |inspection| walk(item, inspection));
            }
        });
    }

    fn below<R>(
        &mut self,
        typed: &str,
        file: &str,
        node: Option<Node<'a>>,
        walk: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let (prefix, place) = (self.prefix.len(), self.place.len());
        let outside = std::mem::replace(&mut self.node, node);
        for (path, token) in [(&mut self.prefix, typed), (&mut self.place, file)] {
            path.push('/');
            path.push_str(&pointer::escape(token));
        }
        let result = walk(self);
        self.prefix.truncate(prefix);
        self.place.truncate(place);
        self.node = outside;
        result
    }

    /// The pointer in the file for `member`, which is a pointer in the typed value below the present position.
    fn full(&self, member: &str) -> String {
        if self.left_out.is_empty() {
            format!("{}{member}", self.place)
        } else {
            (self.locate)(&format!("{}{member}", self.prefix))
        }
    }

    /// Reports a violation at `member`, a pointer below the present position.
    pub fn report(&mut self, member: &str, code: Code, message: impl Into<String>) {
        if self.found.len() > MAX_FOUND {
            return;
        }
        if self.found.len() == MAX_FOUND {
            let message = "more rules are broken; they are not listed";
            self.found.push(Violation::new("", Code::TOO_MANY, message));
            return;
        }
        let pointer = self.full(member);
        if !self.is_hidden(&pointer) {
            self.found.push(Violation::new(pointer, code, message));
        }
    }

    /// Whether the whole value at `member` could be read.
    ///
    /// A rule that compares lists asks this first: it cannot tell what is missing from a list with unreadable
    /// elements.
    #[must_use]
    pub fn is_whole(&self, member: &str) -> bool {
        let pointer = self.full(member);
        !self.is_hidden(&pointer)
            && !self
                .left_out
                .iter()
                .any(|left| is_at_or_below(left, &pointer))
    }

    fn is_hidden(&self, pointer: &str) -> bool {
        self.left_out
            .iter()
            .any(|left| is_at_or_below(pointer, left))
    }

    /// Whether the member `name` of the present position has a value other than `null`.
    #[must_use]
    pub fn is_present(&self, name: &str) -> bool {
        self.node
            .and_then(|node| node.get(name))
            .is_some_and(|node| node.kind() != Kind::Null)
    }

    /// Reports `missing` unless the member `name` has a value other than `null`. Returns whether it has one.
    pub fn require(&mut self, name: &str) -> bool {
        let present = self.is_present(name);
        if !present {
            let member = pointer::join("", name);
            self.report(&member, Code::MISSING, format!("{name} is required"));
        }
        present
    }

    /// Reports `missing` for each of these members that is absent or `null`.
    pub fn require_all(&mut self, names: &[&str]) {
        for name in names {
            self.require(name);
        }
    }

    /// Reports a number in place of an id. The reader accepted it by its digits.
    pub(crate) fn id(&mut self, name: &str) {
        let node = self.node.and_then(|node| node.get(name));
        let pointer = pointer::join(&self.place, name);
        self.number(node, pointer);
    }

    /// Reports each number in the list `name` of ids. The reader accepted them by their digits.
    pub(crate) fn numbers(&mut self, name: &str) {
        let list = pointer::join(&self.place, name);
        let node = self.node.and_then(|node| node.get(name));
        let elements = node.into_iter().flat_map(|list| list.elements());
        for (index, element) in elements.enumerate() {
            self.number(Some(element), pointer::join(&list, &index.to_string()));
        }
    }

    /// Reports each id that occurs again in the list `name`, at `member` of its element. Unreadable ids are
    /// never equal.
    pub(crate) fn each_once<'i>(
        &mut self,
        name: &str,
        ids: impl Iterator<Item = Option<&'i str>>,
        member: &str,
    ) {
        let mut seen = HashSet::new();
        for (index, id) in ids.enumerate() {
            if let Some(id) = id.filter(|id| !seen.insert(*id)) {
                let pointer = format!(
                    "{}{member}",
                    pointer::join(&pointer::join("", name), &index.to_string())
                );
                let message = format!("{id} is in the list already", id = crate::quoted(id));
                self.report(&pointer, Code::NOT_DISJOINT, message);
            }
        }
    }

    fn number(&mut self, node: Option<Node<'a>>, pointer: String) {
        let Some(node) = node.filter(|node| node.kind() == Kind::Number) else {
            return;
        };
        if self.found.len() < MAX_FOUND && !self.left_out.contains(pointer.as_str()) {
            let is_whole = !node.raw().contains(['.', 'e', 'E']);
            let kind = if is_whole { "integer" } else { "number" };
            let message = format!("expected a string, found {kind} `{}`", node.raw());
            self.found
                .push(Violation::new(pointer, Code::WRONG_TYPE, message));
        }
    }

    /// Reports a stamp that is not a time. The time may lie in the future, for example that of an expected event.
    pub fn expected_timestamp(&mut self, member: &str, stamp: Option<&Timestamp>) {
        if let Some(stamp) = stamp.filter(|stamp| stamp.time().is_none()) {
            self.report(
                member,
                Code::BAD_TIMESTAMP,
                format!(
                    "{} is not an RFC 3339 time with a zone",
                    quoted_short(stamp.text())
                ),
            );
        }
    }

    /// Reports a stamp that is not a time, or that lies in the future of the clock.
    pub fn timestamp(&mut self, member: &str, stamp: Option<&Timestamp>) {
        self.expected_timestamp(member, stamp);
        let (Some(stamp), Some(now)) = (stamp, self.context.now) else {
            return;
        };
        if stamp
            .time()
            .is_some_and(|time| time > now + FUTURE_TOLERANCE)
        {
            self.report(
                member,
                Code::FUTURE_TIMESTAMP,
                format!("{stamp} is after the present time"),
            );
        }
    }

    /// Reports a version of the format that this program does not know. For a whole document
    /// [`violations`](super::violations) does this; a format calls it only for checkpoints nested in others.
    pub fn version<C: Checkpoint>(&mut self, checkpoint: &C) {
        let (Some(found), Some(known)) = (checkpoint.schema_version(), C::latest_version()) else {
            return;
        };
        if found > known {
            let message = format!("version {found}; this program knows up to {known}");
            let member = C::VERSION_POINTER.unwrap_or_default();
            self.report(member, Code::NEWER_SCHEMA, message);
        }
    }

    /// Reports a text that the format does not list.
    pub fn known<E: OpenEnum>(&mut self, member: &str, value: Option<&E>) {
        if let Some(value) = value.filter(|value| !value.is_known()) {
            self.report(
                member,
                Code::UNKNOWN_VALUE,
                format!(
                    "{} is none of {}",
                    quoted_short(value.as_str()),
                    E::KNOWN.join(", ")
                ),
            );
        }
    }

    /// Reports a text of more than `limit` characters (code points).
    pub fn at_most(&mut self, member: &str, text: Option<&str>, limit: Option<usize>) {
        let (Some(text), Some(limit)) = (text, limit) else {
            return;
        };
        let length = text.chars().count();
        if length > limit {
            self.report(
                member,
                Code::TOO_LONG,
                format!("{length} characters, at most {limit}"),
            );
        }
    }

    /// The violations that were found.
    #[must_use]
    pub fn finish(self) -> Vec<Violation> {
        self.found
    }
}

fn is_at_or_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Code {
    /// A text that should be an RFC 3339 time with a zone is not one.
    pub const BAD_TIMESTAMP: Code = Code::new("bad-timestamp");
    /// A time is more than 5 seconds ahead of the given clock.
    pub const FUTURE_TIMESTAMP: Code = Code::new("future-timestamp");
    /// A time is earlier than one that it must follow.
    pub const OUT_OF_ORDER: Code = Code::new("out-of-order");
    /// An id does not have the form that its format requires.
    pub const BAD_ID: Code = Code::new("bad-id");
    /// An element is in two lists that must not share any, or twice in one list.
    pub const NOT_DISJOINT: Code = Code::new("not-disjoint");
    /// An element is missing from the list that must contain it.
    pub const NOT_SUBSET: Code = Code::new("not-subset");
    /// A count differs from the number of the items that it counts.
    pub const COUNT_MISMATCH: Code = Code::new("count-mismatch");
    /// A text is longer than its format allows.
    pub const TOO_LONG: Code = Code::new("too-long");
    /// A value is not allowed with the status.
    pub const STATUS_RULE: Code = Code::new("status-rule");
    /// The id inside a checkpoint does not match its key.
    pub const KEY_MISMATCH: Code = Code::new("key-mismatch");
    /// A later version of the format wrote the checkpoint: it can be read, not written.
    pub const NEWER_SCHEMA: Code = Code::new("newer-schema");

    /// Whether a JSON Schema of the format can find the violation: it concerns a single value, not a
    /// combination of values, the key, or a clock.
    #[must_use]
    pub fn is_shape(&self) -> bool {
        [
            Code::WRONG_TYPE,
            Code::MISSING,
            Code::UNKNOWN_VALUE,
            Code::OUT_OF_RANGE,
            Code::TOO_LONG,
            Code::BAD_ID,
            Code::BAD_TIMESTAMP,
        ]
        .contains(self)
    }
}
