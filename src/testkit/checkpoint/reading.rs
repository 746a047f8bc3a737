//! The rules for what a type reads.

use serde_json::Value;

use super::{read, with_empty, with_other_types, written};
use crate::checkpoint::{Checkpoint, RuleContext, violations};
use crate::json::{Document, Reading, Violation};

/// `{}` reads without a violation, also with serde_json, and the result reads back equal after it is written.
pub fn an_empty_object_reads<C: Checkpoint>(_: &[C]) {
    let reading = read::<C>(&Document::from_text("{}").unwrap());
    assert!(
        reading.violations.is_empty(),
        "`{{}}` reads with {:?}; put `#[serde(default)]` on every struct",
        reading.violations
    );
    let plain = serde_json::from_str::<C>("{}");
    assert!(
        plain.as_ref().ok() == Some(&reading.value),
        "`{{}}` reads differently with serde_json: {:?}",
        plain.err()
    );
    reads_back(&reading.value);
}

/// A checkpoint that was written reads back equal, without a violation of its shape.
pub fn a_written_checkpoint_reads_back<C: Checkpoint>(samples: &[C]) {
    with_empty(samples).iter().for_each(reads_back);
}

#[track_caller]
fn reads_back<C: Checkpoint>(sample: &C) {
    let document = written(sample);
    let reading = read::<C>(&document);
    assert!(
        reading.violations.is_empty(),
        "{document} reads with {:?}",
        reading.violations
    );
    let again = written(&reading.value);
    assert!(
        reading.value == *sample && again == document,
        "{document} reads as another checkpoint, which is written as {again}"
    );
}

/// A value of a wrong type at any place is a violation, and all values beside it are still read.
pub fn a_wrong_type_is_a_violation_and_costs_only_itself<C: Checkpoint>(samples: &[C]) {
    for sample in with_empty(samples) {
        let document = written(&sample);
        for (pointer, value, changed) in with_other_types(&document) {
            let reading = read::<C>(&changed);
            let violations = violations(&changed, &reading, &RuleContext::none());
            assert!(
                is_reported(&violations, &pointer)
                    || is_kept(&document, &reading, &pointer, &value),
                "{value} at {pointer} is read without a violation there, but its value is lost"
            );
            costs_only_itself(&document, &reading, &pointer, &value);
        }
    }
}

/// Whether there is a violation at this value or at one that contains it.
fn is_reported(violations: &[Violation], pointer: &str) -> bool {
    violations.iter().any(|violation| {
        let below = pointer.strip_prefix(violation.pointer.as_str());
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    })
}

fn is_kept<C: Checkpoint>(
    before: &Document,
    reading: &Reading<C>,
    pointer: &str,
    value: &Value,
) -> bool {
    if value.is_null() {
        // `null` may be read as a missing value.
        let mut without = before.clone();
        without.remove(pointer).unwrap();
        if read::<C>(&without).value == reading.value {
            return true;
        }
    }
    let back = serde_json::to_value(&reading.value).unwrap();
    match (value, back.pointer(pointer)) {
        (Value::Object(_), Some(Value::Object(_))) => true,
        // A whole number may be kept as a float.
        (Value::Number(value), Some(Value::Number(kept))) => value.as_f64() == kept.as_f64(),
        (value, kept) => kept == Some(value),
    }
}

/// Checks that every other member of the root is unchanged.
#[track_caller]
fn costs_only_itself<C: Checkpoint>(
    before: &Document,
    reading: &Reading<C>,
    pointer: &str,
    value: &Value,
) {
    let after = written(&reading.value);
    let changed = pointer.split('/').nth(1);
    for (name, node) in before.root().members() {
        let now = after.root().get(&name);
        assert!(
            changed == Some(&*crate::json::pointer::escape(&name))
                || now.as_ref().is_some_and(|now| now.same_value(&node)),
            "{value} at {pointer} changed {name:?} from {} to {}",
            node.raw(),
            now.map_or("nothing", |now| now.raw())
        );
    }
}
