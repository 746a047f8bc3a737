//! How a format reports what breaks its rules.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Key, Limits, OpenEnum, Timestamp};
use crate::json::{Code, Document, Kind, Reading, Violation, pointer};

/// How far a stamp may lie in the future before it is a violation.
pub const FUTURE_TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// Gathers the violations of a format's rules.
///
/// A format walks its typed value and reports by pointer. The inspection knows what of the document
/// could not be read, so that a rule says nothing about values that are not there to judge: a
/// violation at or below an unreadable value is left out, and pointers into lists are those of the
/// file even where unreadable elements are missing from the typed list.
pub struct Inspection<'a> {
    document: &'a Document,
    left_out: &'a [String],
    locate: Box<dyn Fn(&str) -> String + 'a>,
    now: Option<DateTime<Utc>>,
    key: Option<&'a Key>,
    limits: Limits,
    prefix: String,
    found: Vec<Violation>,
}

impl<'a> Inspection<'a> {
    /// An inspection of what was read from a document.
    pub fn new<T>(document: &'a Document, reading: &'a Reading<T>) -> Self {
        Inspection {
            document,
            left_out: reading.left_out(),
            locate: Box::new(move |pointer| reading.locate(document, pointer)),
            now: None,
            key: None,
            limits: Limits::default(),
            prefix: String::new(),
            found: Vec::new(),
        }
    }

    /// Judges stamps in the future against this clock; without one they are not judged.
    #[must_use]
    pub fn with_now(mut self, now: Option<DateTime<Utc>>) -> Self {
        self.now = now;
        self
    }

    /// Judges ids against this key; without one they are not judged.
    #[must_use]
    pub fn with_key(mut self, key: Option<&'a Key>) -> Self {
        self.key = key;
        self
    }

    /// The key the checkpoint is kept under, where it is known.
    #[must_use]
    pub fn key(&self) -> Option<&'a Key> {
        self.key
    }

    /// The limits that texts are judged by.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reports with pointers below the member or element `token`.
    pub fn within<R>(
        &mut self,
        token: impl std::fmt::Display,
        walk: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let length = self.prefix.len();
        self.prefix = pointer::join(&self.prefix, &token.to_string());
        let result = walk(self);
        self.prefix.truncate(length);
        result
    }

    fn full(&self, member: &str) -> String {
        (self.locate)(&format!("{}{member}", self.prefix))
    }

    /// Reports a violation at `member`, a pointer below the present place.
    pub fn report(&mut self, member: &str, code: Code, message: impl Into<String>) {
        let pointer = self.full(member);
        if !self.is_hidden(&pointer) {
            self.found.push(Violation::new(pointer, code, message));
        }
    }

    /// Whether all of the value at `member` could be read.
    ///
    /// A rule that compares lists asks first: of a list with unreadable elements it cannot say what
    /// is missing.
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

    /// Whether the document has a value other than `null` at `member`.
    #[must_use]
    pub fn is_present(&self, member: &str) -> bool {
        let pointer = self.full(member);
        let inside = pointer.strip_prefix(self.document.at()).unwrap_or(&pointer);
        self.document
            .get(inside)
            .is_some_and(|node| node.kind() != Kind::Null)
    }

    /// Reports `missing` unless the document has a value other than `null` at `member`.
    pub fn require(&mut self, member: &str) -> bool {
        let present = self.is_present(member);
        if !present {
            let name = member.trim_start_matches('/');
            self.report(member, Code::MISSING, format!("{name} is required"));
        }
        present
    }

    /// Reports a stamp that is no time, or that lies in the future of the clock.
    pub fn timestamp(&mut self, member: &str, stamp: Option<&Timestamp>) {
        let Some(stamp) = stamp else { return };
        match (stamp.time(), self.now) {
            (None, _) => self.report(
                member,
                Code::BAD_TIMESTAMP,
                format!("{:?} is no RFC 3339 time with a zone", stamp.text()),
            ),
            (Some(time), Some(now)) if time > now + FUTURE_TOLERANCE => self.report(
                member,
                Code::FUTURE_TIMESTAMP,
                format!("{stamp} is after the present time"),
            ),
            _ => {}
        }
    }

    /// Reports a text that the format does not list.
    pub fn known<E: OpenEnum>(&mut self, member: &str, value: Option<&E>) {
        if let Some(value) = value.filter(|value| !value.is_known()) {
            self.report(
                member,
                Code::UNKNOWN_VALUE,
                format!("{:?} is none of {}", value.as_str(), E::KNOWN.join(", ")),
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

    /// The violations found.
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
