//! The identity of effects and of actions: an id, and the digest of a value.

use serde_json::Value;

use crate::checkpoint::{Error, Result, Revision};

/// The longest id, in bytes.
const MOST: usize = 256;

/// Checks a caller's id: one line of visible text.
pub(super) fn checked(what: &str, id: String) -> Result<String> {
    let problem = match &*id {
        id if crate::is_blank(id) => "is blank",
        id if id.trim() != id => "begins or ends with white space",
        id if id.len() > MOST => "is longer than 256 bytes",
        id if id.chars().any(char::is_control) || crate::visible(id) != id => {
            "has a letter in it that hides or acts"
        }
        _ => return Ok(id),
    };
    Err(Error::refused(format!("{what} {problem}")))
}

/// Checks a value by which an effect or an action is known. A whole number beyond 64 bits was rounded when it was read, and
/// a fraction of this size lost its digits: two of them would be the same, and a person would approve another than is
/// done. A smaller fraction is as exact as an `f64`.
pub(super) fn check_numbers(what: &str, value: &Value) -> Result<()> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(elements) => elements.iter().try_for_each(|one| check_numbers(what, one)),
        Value::Object(members) => members
            .values()
            .try_for_each(|one| check_numbers(what, one)),
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            match number.as_f64().is_none_or(|rounded| rounded.abs() >= EXACT) {
                true => Err(Error::refused(format!(
                    "{what} has the number {number}, which may have been rounded; give it as a text"
                ))),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The SHA-256 digest of a value, independent of the order of the members of its objects.
pub(super) fn digest(value: &Value) -> Revision {
    let mut text = String::new();
    canonical(value, &mut text);
    Revision::of(text.as_bytes())
}

/// The first half of its digits, for uses where no other program compares it.
pub(super) fn short_digest(value: &Value) -> String {
    let digest = digest(value).to_string();
    digest.trim_start_matches("sha256:")[..32].to_owned()
}

/// Compact JSON with the members of each object sorted by name, whichever features serde_json has.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                canonical(element, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}
