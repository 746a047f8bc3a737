//! Proves stores and formats that others write.
//!
//! Feature `testkit`; for your tests, so under `[dev-dependencies]`:
//!
//! ```toml
//! agent-checkpoint = { version = "0.1", features = ["testkit"] }
//! ```
//!
//! # A store
//!
//! Whoever writes a [`CheckpointStore`](crate::store::CheckpointStore) tells the kit where to get an empty place
//! ([`Harness`], [`Place`]), and [`store_conformance!`](crate::store_conformance) makes one test of each
//! [rule](rules) of the contract. Rules on what the store does not offer
//! ([`Capabilities`](crate::store::Capabilities)) are skipped, each with a line
//! `SKIPPED module::rule (why)` on the standard error. Those on whole documents, revisions and conflicts need
//! nothing, so they cannot be waived; and a promise that the harness gives no means to prove is a failure.
//!
//! This is a whole store, and what proves it:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::{Arc, Mutex};
//!
//! use agent_checkpoint::Dropped;
//! use agent_checkpoint::store::{
//!     Capabilities, DeleteOptions, Exclusive, Outcome, Page, Put, Query, check_expected,
//! };
//! use agent_checkpoint::testkit::{self, Harness, Place};
//! use agent_checkpoint::json::Document;
//! use agent_checkpoint::store::{CheckpointStore, Saved, Stored};
//! use agent_checkpoint::{Key, Result};
//!
//! /// Documents with what was cut from them.
//! #[derive(Clone, Default)]
//! struct Rows(Arc<Mutex<BTreeMap<Key, (Option<Stored>, Vec<Dropped>)>>>);
//!
//! impl CheckpointStore for Rows {
//!     fn load(&self, key: &Key) -> Result<Option<Stored>> {
//!         let rows = self.0.lock().unwrap();
//!         Ok(rows.get(key).and_then(|(stored, _)| stored.clone()))
//!     }
//!
//!     fn put(&self, key: &Key, put: Put) -> Result<Saved> {
//!         let mut rows = self.0.lock().unwrap();
//!         let (present, cut) = rows.entry(key.clone()).or_default();
//!         check_expected(key, put.expect(), present.as_ref())?;
//!         let stored = Stored::new(put.document().clone());
//!         let previous = present.as_ref().map(|stored| stored.revision.clone());
//!         let outcome = Outcome::of(previous.as_ref(), &stored.revision);
//!         let mut saved = Saved::new(outcome, stored.revision.clone(), previous);
//!         if outcome == Outcome::Created {
//!             cut.clear();
//!         }
//!         if outcome != Outcome::Unchanged {
//!             for piece in put.dropped() {
//!                 saved.truncation.kept_in = Some("the row".to_owned());
//!                 if !cut.contains(piece) {
//!                     cut.push(piece.clone());
//!                 }
//!             }
//!             *present = Some(stored);
//!         }
//!         Ok(saved)
//!     }
//!
//!     fn exclusive(&self) -> Option<&dyn Exclusive> {
//!         None
//!     }
//!
//!     fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
//!         let mut rows = self.0.lock().unwrap();
//!         let (present, _) = rows.entry(key.clone()).or_default();
//!         check_expected(key, options.expect(), present.as_ref())?;
//!         Ok(present.take().is_some())
//!     }
//!
//!     fn list(&self, query: &Query) -> Result<Page> {
//!         let rows = self.0.lock().unwrap();
//!         let there = rows.iter().filter(|(_, (stored, _))| stored.is_some());
//!         Ok(query.page(there.map(|(key, _)| key.clone())))
//!     }
//!
//!     fn overflow(&self, key: &Key) -> Result<Vec<Dropped>> {
//!         let rows = self.0.lock().unwrap();
//!         Ok(rows.get(key).map(|(_, cut)| cut.clone()).unwrap_or_default())
//!     }
//!
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::none()
//!     }
//! }
//!
//! /// Where the tests get empty places from.
//! struct InRows;
//!
//! impl Harness for InRows {
//!     fn place(&self) -> Result<Box<dyn Place>> {
//!         Ok(Box::new(Rows::default()))
//!     }
//! }
//!
//! impl Place for Rows {
//!     fn open(&self) -> Result<Box<dyn CheckpointStore>> {
//!         Ok(Box::new(self.clone()))
//!     }
//! }
//!
//! // One test of each rule: `in_rows::what_is_put_comes_back_to_the_byte` and so on.
//! agent_checkpoint::store_conformance!(in_rows, InRows);
//!
//! # fn main() {
//! // Or all at once, as a table.
//! let report = testkit::report(&InRows);
//! println!("{}", report.to_markdown());
//! assert!(report.is_conformant());
//! # let skipped: Vec<_> = report.skipped().collect();
//! # assert!(skipped.iter().any(|(rule, why)| *rule == "a_fence_only_ever_grows" && *why == "needs `claims`"));
//! # }
//! ```
//!
//! Whoever has more offers more: an [`address`](Place::address) and [`connect`](Harness::connect) for writers
//! in several processes, [`damage`](Place::damage) for what cannot be read, a [`clock`](Place::clock) that is
//! set back, [`fail`](Place::fail) for calls that fail. The page `docs/testkit.md` has a table of the rules.
//!
//! # A checkpoint type
//!
//! [`checkpoint_conformance!`](crate::checkpoint_conformance) makes one test of each
//! [check](checkpoint::checks) of a [`Checkpoint`](crate::Checkpoint) type, on samples that you give; in a
//! property test call [`checkpoint::check`].

pub mod checkpoint;
mod child;
mod clock;
mod conformance;
mod harness;
mod macros;
mod report;
mod rule;
mod rules;
mod scene;

pub use crate::fsio::seam;
pub use clock::MovableClock;
pub use conformance::{Conformance, report, serve};
#[doc(hidden)]
pub use conformance::{test, test_name};
pub use harness::{Harness, Place};
pub use report::{Line, Report, Verdict};
pub use rule::{Need, Rule};
pub use rules::rules;
