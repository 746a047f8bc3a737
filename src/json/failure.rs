//! Errors of deserializing a value of the text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::tree::{Index, Kind, NONE};
use super::violation::Code;

/// The length to which texts in messages are cut, in characters.
const SHOWN: usize = 80;

/// The words of serde for a number with a fraction, or beyond 64 bits.
const FLOAT: &str = "floating point `";

/// An error of the deserializer, with the value that it is about.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    /// The value that could not be read; [`NONE`] until it is known.
    pub(super) at: Index,
    /// The type of a value that did not fit.
    pub(super) found: Option<Kind>,
    /// The missing member.
    pub(super) missing: Option<&'static str>,
    /// The value lacks only a part that was skipped, which has its own violation.
    pub(super) follows: bool,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            at: NONE,
            found: None,
            missing: None,
            follows: false,
        }
    }

    /// The error of a value that cannot be read without a skipped part.
    pub(super) fn following() -> Failure {
        Failure {
            follows: true,
            ..Failure::new(Code::UNREADABLE, "a part of it could not be read")
        }
    }

    pub(super) fn out_of_range(number: &str, expected: &dyn Expected) -> Failure {
        let number = shortened(number);
        let expected = in_json_words(expected);
        let message = format!("expected {expected}, found the number {number}, which does not fit");
        Failure::new(Code::OUT_OF_RANGE, message)
    }

    /// Replaces the number in the message by its text, since a double has fewer digits.
    pub(super) fn with_number(mut self, number: &str) -> Failure {
        if self.at == NONE
            && let Some(at) = self.message.rfind(FLOAT)
        {
            self.message.truncate(at);
            self.message = format!("{}number `{}`", self.message, shortened(number));
        }
        self
    }

    fn unexpected(code: Code, found: &Unexpected<'_>, expected: &dyn Expected) -> Failure {
        let expected = in_json_words(expected);
        let found_words = match found {
            Unexpected::Str(text) => quoted_short(text),
            Unexpected::Map => "an object".to_owned(),
            Unexpected::Seq => "an array".to_owned(),
            Unexpected::Unit => "null".to_owned(),
            other => other.to_string(),
        };
        let message = format!("expected {expected}, found {found_words}");
        Failure {
            found: kind_of(found),
            ..Failure::new(code, message)
        }
    }
}

/// What a type expects, in JSON terms, since a reader of the file does not know the Rust type.
fn in_json_words(expected: &dyn Expected) -> String {
    let words = expected.to_string();
    let rust = |prefix: &str| words.starts_with(prefix);
    if rust("struct ") || rust("a map") || rust("map") {
        "an object".to_owned()
    } else if rust("a sequence") || rust("sequence") || rust("tuple ") || rust("a tuple") {
        "an array".to_owned()
    } else if rust("unit") || rust("option") {
        "null".to_owned()
    } else if is_integer_type(&words) {
        "a whole number".to_owned()
    } else if words == "f64" || words == "f32" {
        "a number".to_owned()
    } else {
        words
    }
}

fn is_integer_type(words: &str) -> bool {
    let bits = words.strip_prefix(['u', 'i']);
    bits.is_some_and(|bits| ["8", "16", "32", "64", "128", "size"].contains(&bits))
}

/// Cuts a text for a message, since a very long text would hide the rest.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text, cut and in quotes.
pub(crate) fn quoted_short(text: &str) -> String {
    crate::quoted(&shortened(text))
}

fn kind_of(found: &Unexpected<'_>) -> Option<Kind> {
    match found {
        Unexpected::Map | Unexpected::StructVariant => Some(Kind::Object),
        Unexpected::Seq | Unexpected::TupleVariant => Some(Kind::Array),
        Unexpected::Str(_) | Unexpected::Char(_) => Some(Kind::String),
        Unexpected::Unit | Unexpected::Option => Some(Kind::Null),
        Unexpected::Bool(_) => Some(Kind::Bool),
        Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Float(_) => {
            Some(Kind::Number)
        }
        _ => None,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Failure {
        Failure::new(Code::UNREADABLE, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Failure {
        Failure::unexpected(Code::WRONG_TYPE, &found, expected)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Failure {
        let code = match kind_of(&found) {
            Some(Kind::String) => Code::UNKNOWN_VALUE,
            Some(Kind::Number) => Code::OUT_OF_RANGE,
            _ => Code::UNREADABLE,
        };
        Failure::unexpected(code, &found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Failure {
        let message = format!(
            "{} is none of {}",
            quoted_short(variant),
            expected.join(", ")
        );
        Failure {
            found: Some(Kind::String),
            ..Failure::new(Code::UNKNOWN_VALUE, message)
        }
    }

    fn missing_field(field: &'static str) -> Failure {
        Failure {
            missing: Some(field),
            ..Failure::new(Code::MISSING, format!("the member {field:?} is required"))
        }
    }
}
