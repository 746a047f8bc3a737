//! What a type reads.

use serde_json::Value;

use super::places::{any_type, places, with_empty, written};
use crate::checkpoint::{Checkpoint, RuleContext, violations};
use crate::json::{Document, Reading, Violation};
use crate::testkit::rule::{Ruling, Stop, ensure};

pub(super) fn an_empty_object_reads<C: Checkpoint>(_: &[C]) -> Ruling {
    let reading = Document::from_text("{}")?.read::<C>()?;
    ensure!(
        reading.violations.is_empty(),
        "`{{}}` reads with {:?}; put `#[serde(default)]` on every struct",
        reading.violations
    );
    let plain = serde_json::from_str::<C>("{}");
    ensure!(
        plain.as_ref().ok() == Some(&reading.value),
        "`{{}}` reads otherwise with serde_json: {:?}",
        plain.err()
    );
    reads_back(&reading.value)
}

pub(super) fn what_is_written_reads_back<C: Checkpoint>(samples: &[C]) -> Ruling {
    with_empty(samples)?.iter().try_for_each(reads_back)
}

fn reads_back<C: Checkpoint>(sample: &C) -> Ruling {
    let (document, reading) = written(sample)?;
    ensure!(
        reading.violations.is_empty(),
        "{document} reads with {:?}",
        reading.violations
    );
    let again = Document::new(&reading.value)?;
    ensure!(
        reading.value == *sample && again == document,
        "{document} reads as what is written as {again}"
    );
    Ok(())
}

pub(super) fn what_does_not_fit_is_a_violation_and_costs_only_itself<C: Checkpoint>(
    samples: &[C],
) -> Ruling {
    for sample in with_empty(samples)? {
        let (document, _) = written(&sample)?;
        for pointer in places(&document) {
            for value in any_type() {
                let mut bent = document.clone();
                bent.set(&pointer, &value)?;
                let reading = bent.read::<C>().map_err(|error| {
                    Stop::failed(format!(
                        "{value} at {pointer} costs the whole checkpoint: {error}"
                    ))
                })?;
                let violations = violations(&bent, &reading, &RuleContext::none());
                is_told(&document, &reading, &violations, &pointer, &value)?;
                costs_only_itself(&document, &reading, &pointer, &value)?;
            }
        }
    }
    Ok(())
}

/// What was put there is kept, or a violation tells of it.
fn is_told<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
    violations: &[Violation],
    pointer: &str,
    value: &Value,
) -> Ruling {
    // A violation of another place tells nothing of this one.
    let tells = |at: &str| {
        let below = pointer.strip_prefix(at);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    if violations.iter().any(|violation| tells(&violation.pointer)) {
        return Ok(());
    }
    if value.is_null() {
        // Nothing is there, as when it is left out.
        let mut without = document.clone();
        without.remove(pointer)?;
        if without.read::<C>()?.value == reading.value {
            return Ok(());
        }
    }
    let back = serde_json::to_value(&reading.value)
        .map_err(|error| Stop::failed(format!("the checkpoint cannot be written: {error}")))?;
    let kept = back.pointer(pointer);
    let is_kept = match (value, kept) {
        (Value::Object(_), Some(Value::Object(_))) => true,
        // Whole numbers may be kept as others.
        (Value::Number(is), Some(Value::Number(kept))) => is.as_f64() == kept.as_f64(),
        (is, Some(kept)) => is == kept,
        (_, None) => false,
    };
    ensure!(
        is_kept,
        "{value} at {pointer} is read without a violation there as {}",
        kept.unwrap_or(&Value::Null)
    );
    Ok(())
}

/// Every other member of the root is as it was.
fn costs_only_itself<C: Checkpoint>(
    before: &Document,
    reading: &Reading<C>,
    pointer: &str,
    value: &Value,
) -> Ruling {
    let after = Document::new(&reading.value)?;
    let bent = pointer.split('/').nth(1);
    for (name, node) in before.root().members() {
        if bent == Some(&*crate::json::pointer::escape(&name)) {
            continue;
        }
        let now = after.root().get(&name);
        ensure!(
            now.as_ref().is_some_and(|now| now.same_value(&node)),
            "{value} at {pointer} changed {name:?} from {} to {}",
            node.raw(),
            now.map_or("nothing", |now| now.raw())
        );
    }
    Ok(())
}
