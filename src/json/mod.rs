//! A lossless JSON document: its reader, its writer, and what can be wrong with it.

mod corrupt;
mod violation;

pub use corrupt::{Corrupt, CorruptCode};
pub use violation::{Code, Violation};
