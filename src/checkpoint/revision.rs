//! Which state of a document is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::error::{Error, Result};
use crate::json::quoted_short;

/// An opaque token for one exact state of a document.
///
/// Tokens are compared for equality only; a later one is not greater. The token is the SHA-256 of
/// the document's bytes, so an edit by hand shows as well as one through a store.
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
        // Each save writes some: a call of the formatter for each byte takes longer than the hash.
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"sha256:0000000000000000000000000000000000000000000000000000000000000000";
        for (digits, byte) in text[7..].chunks_exact_mut(2).zip(self.0) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Revision {
    type Err = Error;

    /// Takes what [`Display`](fmt::Display) gives.
    fn from_str(text: &str) -> Result<Revision> {
        let invalid = || {
            let text = quoted_short(text);
            let message = format!("{text} is no revision; take one from a load or a save");
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

/// What must be under a key for a write to go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there, as long as it is no corrupt document.
    #[default]
    Any,
    /// Nothing.
    Absent,
    /// Exactly this state.
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
