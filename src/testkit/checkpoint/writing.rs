//! The rules for what a type writes over the text that it was read from.

use std::iter::once;

use chrono::DateTime;
use serde_json::{Value, json};

use super::{pointers, read, with_empty, with_value, written};
use crate::checkpoint::Checkpoint;
use crate::json::{Document, Identity, Kind, Node, Rewrite, pointer::escape};

/// A key that no format has.
const UNKNOWN: &str = "xNoFormatHasThisKey";

/// The text of `wanted` as a save writes it over `document`.
#[track_caller]
fn saved<C: Checkpoint>(document: &Document, wanted: &C) -> Document {
    let how = Rewrite::new().identities(C::IDENTITIES);
    let saved = document.rewrite(&read::<C>(document), wanted, &how);
    let saved = saved.unwrap_or_else(|error| panic!("{error}: {document} cannot be saved"));
    saved.document
}

/// An unchanged checkpoint that is saved over the text it was read from leaves every byte as it was.
pub fn an_unchanged_save_changes_no_byte<C: Checkpoint>(samples: &[C]) {
    for sample in with_empty(samples) {
        let document = written(&sample);
        let with_tabs = |line: &str| {
            let text = line.trim_start_matches(' ');
            format!("{}{text}\r\n", "\t".repeat((line.len() - text.len()) / 2))
        };
        let windows: String = document.text().lines().map(with_tabs).collect();
        let compact = serde_json::to_string(&sample).unwrap();
        let padded = format!("  {compact}  \n\n");
        for text in [document.text(), &windows, &compact, &padded] {
            let document = Document::from_text(text).unwrap();
            let after = saved(&document, &read::<C>(&document).value);
            assert!(
                after == document,
                "unchanged, {document} was saved as {after}"
            );
        }
    }
}

/// A changed value changes the bytes of that value, and no others.
pub fn a_changed_value_changes_only_its_bytes<C: Checkpoint>(samples: &[C]) {
    for sample in with_empty(samples) {
        let document = written(&sample);
        let before = read::<C>(&document);
        for pointer in pointers(&document) {
            let Some(value) = document.get(&pointer).as_ref().and_then(another) else {
                continue;
            };
            let expected = with_value(&document, &pointer, &value);
            let reading = read::<C>(&expected);
            // Another rule covers a value that the type does not accept there. An element with another identity is
            // another element.
            if !reading.violations.is_empty() || is_identity(&pointer, C::IDENTITIES) {
                continue;
            }
            assert!(
                reading.value != before.value,
                "the type writes a value at {pointer}, but does not read it"
            );
            let after = saved(&document, &reading.value);
            assert!(
                after == expected,
                "with {value} at {pointer}, {document} was saved as {after}"
            );
        }
    }
}

/// Another value of the same type, or `None` for objects, lists and null.
fn another(node: &Node<'_>) -> Option<Value> {
    match node.kind() {
        Kind::Bool => node.as_bool().map(|is| json!(!is)),
        Kind::String => node.as_str().map(|text| json!(format!("{text}x"))),
        Kind::Number => match node.as_i64() {
            Some(number) => Some(json!(number.checked_add(1)?)),
            // Never a whole number: the type may write it with or without a decimal point.
            None => node.as_f64().map(|number| {
                let step = if (number + 0.5).fract() == 0.0 {
                    0.25
                } else {
                    0.5
                };
                json!(number + step)
            }),
        },
        _ => None,
    }
}

/// Whether the value at this pointer identifies an element of a list.
fn is_identity(pointer: &str, identities: &[Identity]) -> bool {
    let mut tokens = pointer.rsplit('/');
    let (name, _, list) = (tokens.next(), tokens.next(), tokens.next());
    identities.iter().any(|identity| {
        Some(identity.list) == list && identity.by.iter().any(|by| Some(*by) == name)
    })
}

/// Keys that the type does not know are ignored at any depth, and stay in the text when other values change.
pub fn unknown_keys_are_ignored_and_stay<C: Checkpoint>(samples: &[C]) {
    for sample in with_empty(samples) {
        let document = written(&sample);
        let is_object = |pointer: &String| {
            let node = document.get(pointer);
            node.is_some_and(|node| node.kind() == Kind::Object && node.members().count() > 0)
        };
        let objects = pointers(&document).into_iter().filter(is_object);
        let mut with_keys = document.clone();
        for pointer in once(String::new()).chain(objects) {
            let unknown = json!({"kept": [1, null]});
            let with_key = with_value(&with_keys, &format!("{pointer}/{UNKNOWN}"), &unknown);
            let reading = read::<C>(&with_key);
            if reading.violations.is_empty() && reading.value == sample {
                with_keys = with_key;
                continue;
            }
            assert!(
                !pointer.is_empty() && is_map(&document, &pointer, &sample),
                "a key that the type does not know at {pointer:?} is not ignored: {:?}",
                reading.violations
            );
        }
        let mut stamped = sample.clone();
        stamped.stamp(DateTime::UNIX_EPOCH);
        let after = saved(&with_keys, &stamped);
        let unknown_keys = |document: &Document| document.text().matches(UNKNOWN).count();
        assert_eq!(
            unknown_keys(&after),
            unknown_keys(&with_keys),
            "unknown keys after a stamp: {with_keys} was saved as {after}"
        );
    }
}

/// Whether the keys of this object are data: one more key, with the value of another, reads as one more entry.
fn is_map<C: Checkpoint>(document: &Document, pointer: &str, sample: &C) -> bool {
    let node = document.get(pointer).unwrap();
    let (name, first) = node.members().next().unwrap();
    let first: Value = serde_json::from_str(first.raw()).unwrap();
    // If the type does not accept every text as a key, try one like a present key: a number, day or hash with another
    // last digit.
    let digit = name.rfind(|letter: char| letter.is_ascii_digit());
    let similar = digit.into_iter().flat_map(|at| {
        let name = &name;
        ('0'..='9').map(move |digit| format!("{}{digit}{}", &name[..at], &name[at + 1..]))
    });
    let mut keys = once(UNKNOWN.to_owned()).chain(similar);
    keys.any(|key| {
        let place = format!("{pointer}/{}", escape(&key));
        node.get(&key).is_none() && {
            let reading = read::<C>(&with_value(document, &place, &first));
            reading.violations.is_empty() && reading.value != *sample
        }
    })
}
