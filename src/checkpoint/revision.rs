//! Tokens that identify one state of a document.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::error::{Error, Result};
use crate::json::quoted_short;

/// An opaque token for one exact state of a document.
///
/// Tokens can only be compared for equality; a later one is not greater. The token is the SHA-256 of the
/// document's bytes, so it changes with an edit by hand as well as with a save.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Revision([u8; 32]);

impl Revision {
    /// The revision of a document with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Revision {
        Revision(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex(&self.0))
    }
}

/// The hex digits of a hash. Every save writes some, and a call of the formatter for each byte would take
/// longer than the hash itself.
pub(crate) fn hex(hash: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * hash.len());
    for byte in hash {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Revision {
    type Err = Error;

    /// Parses the output of [`Display`](fmt::Display).
    fn from_str(text: &str) -> Result<Revision> {
        let invalid = || {
            let text = quoted_short(text);
            let message =
                format!("{text} is not a revision; use one that a load or a save returned");
            Error::other("invalid-revision", message)
        };
        let hex = text.strip_prefix("sha256:").ok_or_else(invalid)?;
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Revision(bytes))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a write expects to find under a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Any document that is not corrupt, or none.
    #[default]
    Any,
    /// No document.
    Absent,
    /// Exactly this revision.
    Revision(Revision),
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Any => f.write_str("any document"),
            Expect::Absent => f.write_str("no document"),
            Expect::Revision(revision) => write!(f, "revision {revision}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn the_text_form_reads_back() {
        let revision = Revision::of(b"{}");
        assert_eq!(revision.to_string().parse::<Revision>().unwrap(), revision);
        assert!("sha256:12".parse::<Revision>().is_err());
        assert!("12".parse::<Revision>().is_err());
        let wide = format!("sha256:{}", "é".repeat(32));
        assert!(wide.parse::<Revision>().is_err());
    }
}
