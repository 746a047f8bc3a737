//! Lossless JSON documents: reading, editing and writing them, and violations found in them.
//!
//! [`Document`] keeps the text of a file byte for byte, together with the place of every value in it, so that an edit
//! changes the edited value and nothing else.

mod corrupt;
mod de;
mod diff;
mod document;
mod edit;
mod edit_error;
mod failure;
mod layout;
mod maps;
mod node;
mod parser;
mod part;
pub mod pointer;
mod reader;
mod relay;
mod rewrite;
mod salvage;
mod slip;
mod text;
mod tree;
mod typed;
mod violation;

pub(crate) use corrupt::conflict;
pub use corrupt::{Corrupt, CorruptCode};
pub(crate) use de::NUMBER_AS_TEXT;
pub use diff::Identity;
pub use document::Document;
pub use edit_error::EditError;
pub(crate) use failure::{quoted_short, shortened};
pub use node::Node;
pub use parser::MAX_DEPTH;
pub use reader::{Reading, Unreadable};
#[doc(hidden)]
pub use rewrite::{Rewrite, RewriteError, Rewritten};
pub use salvage::{LeftOut, Salvage, salvage};
pub(crate) use salvage::{good_part, start_of_object};
pub use tree::Kind;
pub use violation::{Code, Violation};
