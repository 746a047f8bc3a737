//! Violations: what is wrong with a document that can be read.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// A stable, machine-readable name for one kind of violation, such as `wrong-type`.
///
/// The set of codes is open: each layer and each downstream format adds its own constants. Codes are compared by their
/// text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Code(Cow<'static, str>);

impl Code {
    /// A value has another JSON type than the format declares.
    pub const WRONG_TYPE: Code = Code::new("wrong-type");
    /// A text is none of the values that the format lists.
    pub const UNKNOWN_VALUE: Code = Code::new("unknown-value");
    /// A number is outside its range, or does not fit the type that holds it.
    pub const OUT_OF_RANGE: Code = Code::new("out-of-range");
    /// A required member is absent or `null`.
    pub const MISSING: Code = Code::new("missing");
    /// A value could not be read for another reason, which the message gives.
    pub const UNREADABLE: Code = Code::new("unreadable");
    /// So many values were unreadable that the whole top-level member was skipped.
    pub const TOO_MANY: Code = Code::new("too-many");
    /// An object has a duplicate name; the last one counts.
    pub const DUPLICATE_KEY: Code = Code::new("duplicate-key");
    /// The text begins with a byte order mark, which RFC 8259 forbids.
    pub const BYTE_ORDER_MARK: Code = Code::new("byte-order-mark");
    /// A string has half of a surrogate pair, so it is no valid Unicode.
    pub const LONE_SURROGATE: Code = Code::new("lone-surrogate");

    /// A new code: lower case words joined by `-`.
    #[must_use]
    pub const fn new(text: &'static str) -> Code {
        Code(Cow::Borrowed(text))
    }

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for Code {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// One violation in a readable document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// The place: a JSON pointer (RFC 6901) into the file; empty for the whole document.
    pub pointer: String,
    /// The kind of violation.
    pub code: Code,
    /// A message for a person, without the pointer.
    pub message: String,
}

impl Violation {
    /// A violation at `pointer`. A message is cut after 1000 characters, since a value that it quotes may be very long.
    pub fn new(pointer: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(1000) {
            message.truncate(end);
            message.push('…');
        }
        Violation {
            pointer: pointer.into(),
            code,
            message,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "(document)"
        } else {
            &self.pointer
        };
        write!(f, "{place}: {} ({})", self.message, self.code)
    }
}
