//! Strategies for property tests, in this crate and downstream.
//!
//! Feature `proptest`. The library's types implement [`Arbitrary`](proptest::arbitrary::Arbitrary): `any::<C>()` is a
//! checkpoint without violations. From it, and from the `Arbitrary` of your own types, five functions generate what a
//! test of an orchestrator, a store or a format needs:
//!
//! | function | values | what they are |
//! |---|---|---|
//! | [`valid`] | `C` | no violation |
//! | [`any_shape`] | text | a JSON object around the shape of the type, valid or not |
//! | [`oversized`] | `C` | no violation but lengths; larger than the target size of a save |
//! | [`with_unknown_fields`] | text | no violation, but undeclared members |
//! | [`as_agents_write_it`] | text | a JSON object with deviations of real files, mostly with violations |
//!
//! Each documents what it generates and how often, and shrinks within its kind. [`json_object`] and [`json_value`] are
//! independent of any type, [`restyled`] lays out a given value, and [`any_spelling`] is for enums that keep unknown
//! texts.
//!
//! ```
//! use agent_checkpoint::strategies::{as_agents_write_it, with_unknown_fields};
//! use agent_checkpoint::formats::task::TaskCheckpoint;
//! use agent_checkpoint::json::Document;
//! use proptest::prelude::*;
//!
//! proptest! {
//!     # #![proptest_config(ProptestConfig::with_cases(8))]
//!     # /*
//!     #[test]
//!     # */
//!     fn whatever_an_agent_wrote_is_read(text in as_agents_write_it::<TaskCheckpoint>()) {
//!         let document = Document::from_text(text)?;
//!         document.read::<TaskCheckpoint>()?;
//!     }
//!
//!     # /*
//!     #[test]
//!     # */
//!     fn what_is_set_does_not_cost_a_member(text in with_unknown_fields::<TaskCheckpoint>()) {
//!         let mut document = Document::from_text(text)?;
//!         let members = document.root().members().count();
//!         document.set("/phase", "verification")?;
//!         prop_assert_eq!(document.root().members().count(), members);
//!     }
//! }
//! # whatever_an_agent_wrote_is_read();
//! # what_is_set_does_not_cost_a_member();
//! ```

mod any_shape;
mod as_agents_write_it;
mod boundaries;
mod edit;
mod layout;
mod oversized;
mod spelling;
mod valid;
mod with_unknown_fields;

pub use any_shape::any_shape;
pub use as_agents_write_it::as_agents_write_it;
pub use layout::restyled;
pub use oversized::oversized;
pub use spelling::any_spelling;
pub use valid::{Examine, valid};
pub use with_unknown_fields::with_unknown_fields;

pub use crate::checkpoint::arbitrary::{json_object, json_value};
