//! The rules for stores: one function for each, which panics when the store breaks it.
//!
//! Each rule is a sentence of the contract of [`CheckpointStore`](crate::store::CheckpointStore), unless it names
//! another source. A rule works in an empty [`Place`](super::Place). A rule that returns nothing can always be tried,
//! so that every store must keep it. The others return [`Skipped`](super::Skipped) if the store does not offer what
//! they are about, or the place has no means to try them. A promise that the place cannot test is a failure.
//!
//! The rules for processes take the full name of a test of the same program that calls [`serve`](super::serve()): the
//! program is started again for that test.
//!
//! [`store_conformance!`](crate::store_conformance) makes one test of each. To call one yourself:
//!
//! ```
//! use agent_checkpoint::Result;
//! use agent_checkpoint::store::{CheckpointStore, MemoryStore};
//! use agent_checkpoint::testkit::{Place, store};
//!
//! struct InMemory(MemoryStore);
//!
//! impl Place for InMemory {
//!     fn open(&self) -> Result<Box<dyn CheckpointStore>> {
//!         Ok(Box::new(self.0.clone()))
//!     }
//! }
//!
//! store::a_put_comes_back_byte_for_byte(&InMemory(MemoryStore::new()));
//! ```
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "the module says when a rule panics, and when it is skipped"
)]

mod approvals;
mod claims;
mod documents;
mod effects;
mod faults;
mod forgetting;
mod history;
mod keys;
mod ledgers;
mod processes;
mod recovery;
mod writers;

pub use approvals::*;
pub use claims::*;
pub use documents::*;
pub(in crate::testkit) use effects::bring_about;
pub use effects::killed_effects_take_place_once;
pub use faults::*;
pub use forgetting::*;
pub use history::*;
pub use keys::*;
pub use ledgers::*;
pub use processes::*;
pub use recovery::*;
pub use writers::*;
