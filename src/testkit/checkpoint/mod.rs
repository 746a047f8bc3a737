//! The rules for checkpoint types: one function for each, which panics when the type breaks it.
//!
//! They check that no file of the format is lost or damaged: the three promises of the library (a file with violations
//! is still read, edits are byte-exact, nothing is guessed) and the documentation of [`Checkpoint`]. The samples are
//! checkpoints of the type; some of them should have a value in every field. The rules also try the checkpoint that
//! `{}` reads as.
//!
//! [`checkpoint_conformance!`](crate::checkpoint_conformance) makes one test of each rule. In a property test, call
//! [`check_all`] on each value of the strategy.
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "the module says when a rule panics, and where it can be skipped its documentation says when"
)]

mod reading;
mod reporting;
mod writing;

pub use reading::*;
pub use reporting::*;
pub use writing::*;

use std::collections::HashSet;
use std::iter::once;

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::json::{Document, Kind, Node, Reading};

/// The largest number of values of one document that are tried, spread over the document. Each costs several complete
/// readings, so fewer are tried in a large document.
fn most_values(document: &Document) -> usize {
    (400_000 / document.text().len().max(1)).clamp(10, 100)
}

/// Checks every rule on these samples.
///
/// ```
/// use agent_checkpoint::formats::task::TaskCheckpoint;
/// use agent_checkpoint::testkit::checkpoint;
///
/// checkpoint::check_all(&[TaskCheckpoint::begin("dev", ["Wire toggle"], chrono::Utc::now())]);
/// ```
pub fn check_all<C: Checkpoint>(samples: &[C]) {
    macro_rules! call {
        ({ } $($rule:ident)+) => { $( let _skipped = $rule(samples); )+ };
    }
    crate::__checkpoint_rules! { call, { } }
}

/// The samples, preceded by the checkpoint that `{}` reads as.
#[track_caller]
fn with_empty<C: Checkpoint>(samples: &[C]) -> Vec<C> {
    assert!(
        !samples.is_empty(),
        "there are no samples: give at least one"
    );
    let empty = read(&Document::from_text("{}").unwrap()).value;
    once(empty).chain(samples.iter().cloned()).collect()
}

/// The text of a checkpoint.
#[track_caller]
fn written<C: Checkpoint>(sample: &C) -> Document {
    let written = Document::new(sample);
    written.unwrap_or_else(|error| panic!("the checkpoint cannot be written: {error}"))
}

#[track_caller]
fn read<C: Checkpoint>(document: &Document) -> Reading<C> {
    let reading = document.read::<C>();
    reading.unwrap_or_else(|error| panic!("the complete checkpoint is lost: {error}: {document}"))
}

/// A copy of the document with another value at a pointer.
fn with_value(document: &Document, pointer: &str, value: &Value) -> Document {
    let mut changed = document.clone();
    changed.set(pointer, value).unwrap();
    changed
}

/// The pointers to all values, without the root. Of the same value in several elements of a list, two are taken: the
/// one in the first element and one in a later element.
fn pointers(document: &Document) -> Vec<String> {
    fn walk(
        node: Node<'_>,
        place: &str,
        seen: &mut HashSet<(String, Kind)>,
        found: &mut Vec<String>,
    ) {
        let members = node
            .members()
            .map(|(name, child)| (format!("{place}/{name}"), child));
        let elements = node.elements().enumerate().map(|(index, child)| {
            let which = if index == 0 { "first" } else { "later" };
            (format!("{place}/{which}"), child)
        });
        for (place, child) in members.chain(elements) {
            if seen.insert((place.clone(), child.kind())) {
                found.push(child.pointer());
            }
            walk(child, &place, seen, found);
        }
    }
    let mut found = Vec::new();
    walk(document.root(), "", &mut HashSet::new(), &mut found);
    let most = found.len().min(most_values(document));
    (0..most)
        .map(|which| found[which * found.len() / most].clone())
        .collect()
}

/// Copies of the document: each has a value of one of the six JSON types at one of the pointers.
fn with_other_types(document: &Document) -> impl Iterator<Item = (String, Value, Document)> {
    let values = [
        Value::Null,
        json!(true),
        json!(7),
        json!("no such text"),
        json!([]),
        json!({}),
    ];
    pointers(document).into_iter().flat_map(move |pointer| {
        let changed = values.clone().map(|value| {
            let changed = with_value(document, &pointer, &value);
            (pointer.clone(), value, changed)
        });
        changed.into_iter()
    })
}
