//! The name of a checkpoint in a store.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{Error, ErrorKind, Result};

/// The name of a checkpoint in a store: an agent id, a task id, or a slot of a host file.
///
/// A key is 1 to 200 bytes of text without control characters and without white space at its ends. It may
/// contain `/`, `..` and anything else that real ids contain: a store that uses files maps it to a file name
/// that cannot leave its folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Makes a key of `text`, if it is valid.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] when the text is empty, too long, or has a control character or
    /// white space at an end.
    pub fn new(text: impl Into<String>) -> Result<Key> {
        let text = text.into();
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > Self::MAX_BYTES {
            "it is longer than 200 bytes"
        } else if text.chars().any(char::is_control) {
            "it has a control character"
        } else if text.trim() != text {
            "it begins or ends with white space"
        } else {
            return Ok(Key(text));
        };
        Err(Error::new(ErrorKind::InvalidKey { text, reason }))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Key {
    type Error = Error;
    fn try_from(text: String) -> Result<Key> {
        Key::new(text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0
    }
}

impl FromStr for Key {
    type Err = Error;
    fn from_str(text: &str) -> Result<Key> {
        Key::new(text)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn takes_ids_as_people_write_them() {
        for id in ["US-003", "adhoc:adhoc-002", "../../etc/passwd", "täsk 1"] {
            assert_eq!(Key::new(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn refuses_what_no_store_can_name() {
        for id in ["", " a", "a ", "a\nb", "a\0b", &"x".repeat(201)] {
            assert!(Key::new(id).is_err(), "{id:?}");
        }
    }
}
