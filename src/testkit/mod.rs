//! Tests for stores and checkpoint types of your own.
//!
//! Feature `testkit`, for `[dev-dependencies]`:
//!
//! ```toml
//! agent-checkpoint = { version = "0.2", features = ["testkit"] }
//! ```
//!
//! # A store
//!
//! Implement [`Place`] to tell the tests where to get an empty store. [`store_conformance!`](crate::store_conformance)
//! then makes one test of each [rule](store) of the contract. This is a complete store with its tests:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::PathBuf;
//! use std::sync::{Arc, Mutex};
//!
//! use agent_checkpoint::store::{
//!     Beside, Capabilities, Changes, CheckpointStore, Claims, DeleteOptions, Exclusive, Heartbeat, History, LedgerLines,
//!     LedgerMark, Outcome, Page, Put, Query, Recover, Saved, Stored, check_expected, check_ledger_line,
//! };
//! use agent_checkpoint::testkit::Place;
//! use agent_checkpoint::{Dropped, Fence, Key, Result, Revision};
//!
//! /// Documents with their dropped items and ledgers.
//! #[derive(Clone, Default)]
//! struct Rows(Arc<Mutex<BTreeMap<Key, Row>>>);
//!
//! #[derive(Default)]
//! struct Row {
//!     document: Option<Stored>,
//!     dropped: Vec<Dropped>,
//!     ledger: Vec<String>,
//! }
//!
//! impl CheckpointStore for Rows {
//!     fn load(&self, key: &Key) -> Result<Option<Stored>> {
//!         let rows = self.0.lock().unwrap();
//!         Ok(rows.get(key).and_then(|row| row.document.clone()))
//!     }
//!
//!     fn put(&self, key: &Key, put: Put) -> Result<Saved> {
//!         let mut rows = self.0.lock().unwrap();
//!         let row = rows.entry(key.clone()).or_default();
//!         let present = row.document.as_ref();
//!         check_expected(key, put.expect(), present)?;
//!         let stored = Stored::new(put.document().clone());
//!         let previous = present.map(|stored| stored.revision.clone());
//!         let outcome = Outcome::of(previous.as_ref(), &stored.revision);
//!         let mut saved = Saved::new(outcome, stored.revision.clone(), previous);
//!         if outcome == Outcome::Created {
//!             row.dropped.clear();
//!         }
//!         if outcome != Outcome::Unchanged {
//!             for piece in put.dropped() {
//!                 saved.truncation.kept_in = Some("the row".to_owned());
//!                 if !row.dropped.contains(piece) {
//!                     row.dropped.push(piece.clone());
//!                 }
//!             }
//!             row.document = Some(stored);
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
//!         let row = rows.entry(key.clone()).or_default();
//!         check_expected(key, options.expect(), row.document.as_ref())?;
//!         Ok(row.document.take().is_some())
//!     }
//!
//!     fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
//!         let was_there = self.delete(key, options)?;
//!         let left = self.0.lock().unwrap().remove(key);
//!         let was_beside = |row: Row| !row.dropped.is_empty() || !row.ledger.is_empty();
//!         Ok(was_there || left.is_some_and(was_beside))
//!     }
//!
//!     fn list(&self, query: &Query) -> Result<Page> {
//!         let rows = self.0.lock().unwrap();
//!         let there = rows.iter().filter(|(_, row)| row.document.is_some());
//!         Ok(query.page(there.map(|(key, _)| key.clone())))
//!     }
//!
//!     fn beside(&self) -> &dyn Beside {
//!         self
//!     }
//!
//!     fn claims(&self) -> Option<&dyn Claims> {
//!         None
//!     }
//!
//!     fn history(&self) -> Option<&dyn History> {
//!         None
//!     }
//!
//!     fn recovery(&self) -> Option<&dyn Recover> {
//!         None
//!     }
//!
//!     fn heartbeat(&self) -> Option<&dyn Heartbeat> {
//!         None
//!     }
//!
//!     fn changes(&self) -> Option<&dyn Changes> {
//!         None
//!     }
//!
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::none()
//!     }
//! }
//!
//! impl Beside for Rows {
//!     fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
//!         let rows = self.0.lock().unwrap();
//!         Ok(rows.get(key).map(|row| row.dropped.clone()).unwrap_or_default())
//!     }
//!
//!     fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
//!         let mut all = self.dropped(key)?;
//!         Ok(all.split_off(all.len().saturating_sub(most)))
//!     }
//!
//!     fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
//!         Ok(None)
//!     }
//!
//!     fn fingerprints(&self, _: &Key, _: &Revision) -> Result<Option<String>> {
//!         Ok(None)
//!     }
//!
//!     fn document_file(&self, _: &Key) -> Option<PathBuf> {
//!         None
//!     }
//!
//!     fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
//!         let rows = self.0.lock().unwrap();
//!         let ledger = rows.get(key).map(|row| &*row.ledger).unwrap_or_default();
//!         LedgerLines::since(mark, |from| Ok(ledger.get(from..).unwrap_or_default().to_vec()))
//!     }
//!
//!     fn append_to_ledger(&self, key: &Key, line: &str, at: usize, _: Option<Fence>) -> Result<bool> {
//!         check_ledger_line(line)?;
//!         let mut rows = self.0.lock().unwrap();
//!         let ledger = &mut rows.entry(key.clone()).or_default().ledger;
//!         let is_next = ledger.len() == at;
//!         if is_next {
//!             ledger.push(line.to_owned());
//!         }
//!         Ok(is_next)
//!     }
//! }
//!
//! impl Place for Rows {
//!     fn open(&self) -> Result<Box<dyn CheckpointStore>> {
//!         Ok(Box::new(self.clone()))
//!     }
//! }
//!
//! // One test of each rule: `in_rows::a_put_comes_back_byte_for_byte` and so on.
//! agent_checkpoint::store_conformance!(in_rows, Rows::default());
//! # fn main() {}
//! ```
//!
//! The other methods of [`Place`] allow more rules to run: [`address`](Place::address) and [`connect`](Place::connect)
//! for writers in several processes, [`damage`](Place::damage) for documents that cannot be read,
//! [`clock`](Place::clock) for a clock that the rules move, [`raw`](Place::raw) for a search for the bytes of a
//! forgotten task, and [`fail`](Place::fail) for calls that fail. The page `docs/testkit.md` has a table.
//!
//! # A checkpoint type
//!
//! [`checkpoint_conformance!`](crate::checkpoint_conformance) makes one test of each [rule](checkpoint) for a
//! [`Checkpoint`](crate::Checkpoint) type, on your samples. In a property test, call [`checkpoint::check_all`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a rule fails as a test does, by panicking"
)]

pub mod checkpoint;
mod clock;
mod fixture;
mod macros;
mod place;
mod process;
pub mod store;

pub use crate::fsio::seam;
#[doc(hidden)]
pub use crate::fsio::unsynced;
pub use clock::MovableClock;
#[doc(hidden)]
pub use place::{__report, __test_name};
pub use place::{Place, Skipped};
pub use process::serve;
