//! The results of effects.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Error, Result, Revision};

/// The largest receipt that is recorded whole, in bytes of JSON.
const MOST: usize = 64 * 1024;

/// The result of an effect: the id of a message, the output of a command. Up to 64 KiB of JSON are recorded exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Receipt {
    /// The JSON that the caller gave; of a larger one only the beginning, which is not valid JSON.
    pub json: String,
    /// The omitted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
}

/// The part of a receipt that was too large to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Omitted {
    /// How many bytes of JSON are omitted.
    pub bytes: u64,
    /// The SHA-256 of the whole JSON.
    pub whole: String,
}

impl Receipt {
    pub(super) fn of(value: &(impl Serialize + ?Sized)) -> Result<Receipt> {
        let mut json =
            serde_json::to_string(value).map_err(|error| unread(format!("is no JSON: {error}")))?;
        if json.len() <= MOST {
            return Ok(Receipt {
                json,
                omitted: None,
            });
        }
        let whole = Revision::of(json.as_bytes()).to_string();
        let is_boundary = |at: &usize| json.is_char_boundary(*at);
        let kept = (0..=MOST).rev().find(is_boundary).unwrap_or(0);
        let bytes = (json.len() - kept) as u64;
        json.truncate(kept);
        Ok(Receipt {
            json,
            omitted: Some(Omitted { bytes, whole }),
        })
    }

    /// The value that the caller gave.
    ///
    /// # Errors
    ///
    /// The code `receipt` if it is of another type, or was too large to be recorded.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        if let Some(omitted) = &self.omitted {
            let bytes = omitted.bytes;
            return Err(unread(format!(
                "was too large to be kept: {bytes} bytes of it are left out"
            )));
        }
        serde_json::from_str(&self.json)
            .map_err(|error| unread(format!("is of another type: {error}")))
    }
}

fn unread(why: String) -> Error {
    Error::other("receipt", format!("the receipt {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_kept_whole_or_says_what_it_lacks() {
        let small = Receipt::of(&("sent", 7)).unwrap();
        assert_eq!(
            small.read::<(String, u8)>().unwrap(),
            ("sent".to_owned(), 7)
        );
        assert!(small.read::<bool>().is_err());
        let text = "é".repeat(MOST);
        let large = Receipt::of(&text).unwrap();
        let omitted = large.omitted.clone().unwrap();
        let whole = serde_json::to_string(&text).unwrap();
        assert_eq!(large.json.len() as u64 + omitted.bytes, whole.len() as u64);
        assert!(large.json.len() <= MOST && whole.starts_with(&large.json));
        assert!(large.read::<String>().is_err());
    }
}
