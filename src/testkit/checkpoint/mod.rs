//! The rules for checkpoint types: one function for each, which panics when the type breaks it.
//!
//! What a format's struct must keep so that no file of the format is lost or spoilt: the three rules of the
//! library (readable with violations, byte-exact editing, nothing guessed) and the documentation of
//! [`Checkpoint`]. The samples are checkpoints of the type; give some that have something in every field. The
//! rules also try the checkpoint that `{}` reads as.
//!
//! [`checkpoint_conformance!`](crate::checkpoint_conformance) makes one test of each. In a property test, call
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

use std::iter::once;

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::json::{Document, Kind, Node, Reading};

/// Values of one document that are tried, spread over it: each costs some whole readings.
const MOST: usize = 100;

/// Tries every rule on these samples.
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

/// The samples, and what `{}` reads as.
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

/// The document with another value at a pointer.
fn with_value(document: &Document, pointer: &str, value: &Value) -> Document {
    let mut changed = document.clone();
    changed.set(pointer, value).unwrap();
    changed
}

/// The pointers to all values, without the root; of a list to its first, second and last element, which are alike.
fn pointers(document: &Document) -> Vec<String> {
    fn walk(node: Node<'_>, found: &mut Vec<String>) {
        let members = node.members().map(|(_, child)| child);
        let children: Vec<Node<'_>> = match node.kind() {
            Kind::Object => members.collect(),
            Kind::Array => {
                let mut elements = node.elements();
                let first = elements.by_ref().take(2).collect::<Vec<_>>();
                first.into_iter().chain(elements.last()).collect()
            }
            _ => Vec::new(),
        };
        for child in children {
            found.push(child.pointer());
            walk(child, found);
        }
    }
    let mut found = Vec::new();
    walk(document.root(), &mut found);
    let every = found.len().div_ceil(MOST).max(1);
    found.into_iter().step_by(every).collect()
}

/// The document with a value of each type at each pointer, one at a time.
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
