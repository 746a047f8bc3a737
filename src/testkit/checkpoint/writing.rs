//! What a type writes over the text it was read from.

use serde_json::json;

use super::places::{another, is_identity, places, with_empty, written};
use crate::checkpoint::Checkpoint;
use crate::json::{Document, Kind, Rewrite};
use crate::testkit::rule::{Ruling, Stop, ensure};

/// A key that no format has.
const UNKNOWN: &str = "xNobodyKnowsThisKey";

fn rewrite<C: Checkpoint>(document: &Document, wanted: &C) -> Result<Document, Stop> {
    let reading = document.read::<C>()?;
    let how = Rewrite::new().identities(C::IDENTITIES);
    Ok(document.rewrite(&reading, wanted, &how)?.document)
}

pub(super) fn a_save_that_changes_nothing_changes_no_byte<C: Checkpoint>(samples: &[C]) -> Ruling {
    for sample in with_empty(samples)? {
        let (document, _) = written(&sample)?;
        let tabs = |line: &str| {
            let text = line.trim_start_matches(' ');
            format!("{}{text}\r\n", "\t".repeat((line.len() - text.len()) / 2))
        };
        let windows: String = document.text().lines().map(tabs).collect();
        let compact = serde_json::to_string(&sample)
            .map_err(|error| Stop::failed(format!("the checkpoint cannot be written: {error}")))?;
        for text in [
            document.text(),
            &windows,
            &compact,
            &format!("  {compact}  \n\n"),
        ] {
            let document = Document::from_text(text)?;
            let reading = document.read::<C>()?;
            let after = rewrite(&document, &reading.value)?;
            ensure!(
                after == document,
                "unchanged, {} was saved as {}",
                document,
                after
            );
        }
    }
    Ok(())
}

pub(super) fn a_changed_value_changes_only_its_bytes<C: Checkpoint>(samples: &[C]) -> Ruling {
    for sample in with_empty(samples)? {
        let (document, before) = written(&sample)?;
        for pointer in places(&document) {
            let Some(value) = document.get(&pointer).as_ref().and_then(another) else {
                continue;
            };
            let mut expected = document.clone();
            expected.set(&pointer, &value)?;
            let reading = expected.read::<C>()?;
            // A text that the type does not take there is another check's.
            if !reading.violations.is_empty() || is_identity(&pointer, C::IDENTITIES) {
                continue;
            }
            ensure!(
                reading.value != before.value,
                "the type writes a value at {pointer}, and does not read it"
            );
            let after = rewrite(&document, &reading.value)?;
            ensure!(
                after == expected,
                "with {value} at {pointer}, {document} was saved as {after}"
            );
        }
    }
    Ok(())
}

pub(super) fn unknown_keys_are_passed_over_and_stay<C: Checkpoint>(samples: &[C]) -> Ruling {
    for sample in with_empty(samples)? {
        let (document, _) = written(&sample)?;
        let objects = places(&document).into_iter().filter(|pointer| {
            document
                .get(pointer)
                .is_some_and(|node| node.kind() == Kind::Object && node.members().count() > 0)
        });
        let mut known = document.clone();
        for pointer in std::iter::once(String::new()).chain(objects) {
            let mut with_key = known.clone();
            let place = format!("{pointer}/{UNKNOWN}");
            with_key.set(&place, &json!({"kept": [1, null]}))?;
            let reading = with_key.read::<C>().map_err(|error| {
                Stop::failed(format!(
                    "a key that the type does not know at {pointer:?} costs all: {error}"
                ))
            })?;
            if reading.violations.is_empty() && reading.value == sample {
                known = with_key;
                continue;
            }
            ensure!(
                !pointer.is_empty() && is_map::<C>(&document, &pointer, &sample)?,
                "a key that the type does not know at {pointer:?} is not passed over: {:?}",
                reading.violations
            );
        }
        stay_when_others_change(&known, &sample)?;
    }
    Ok(())
}

/// Whether any key has a meaning there: one more with the value of another is one more entry. Where not every
/// text is a key, it is one like those that are there.
fn is_map<C: Checkpoint>(document: &Document, pointer: &str, sample: &C) -> Result<bool, Stop> {
    let Some(node) = document.get(pointer) else {
        return Ok(false);
    };
    let Some((name, first)) = node.members().next() else {
        return Ok(false);
    };
    let first: Option<serde_json::Value> = serde_json::from_str(first.raw()).ok();
    let keys = std::iter::once(UNKNOWN.to_owned()).chain(keys_like(&name));
    for key in keys.filter(|key| node.get(key).is_none()) {
        let mut with_entry = document.clone();
        let place = format!("{pointer}/{}", crate::json::pointer::escape(&key));
        with_entry.set(&place, &first)?;
        let reading = with_entry.read::<C>()?;
        if reading.violations.is_empty() && reading.value != *sample {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Keys of the same kind, where it is one of numbers, days, hashes and the like: with another last digit.
fn keys_like(name: &str) -> Vec<String> {
    let Some(at) = name.rfind(|letter: char| letter.is_ascii_digit()) else {
        return Vec::new();
    };
    let digits = '0'..='9';
    digits
        .map(|digit| format!("{}{digit}{}", &name[..at], &name[at + 1..]))
        .collect()
}

fn stay_when_others_change<C: Checkpoint>(document: &Document, sample: &C) -> Ruling {
    let unknown = document.text().matches(UNKNOWN).count();
    let mut stamped = sample.clone();
    stamped.stamp(chrono::DateTime::UNIX_EPOCH);
    let after = rewrite(document, &stamped)?;
    ensure!(
        after.text().matches(UNKNOWN).count() == unknown,
        "keys that the type does not know went with a stamp: {document} was saved as {after}"
    );
    Ok(())
}
