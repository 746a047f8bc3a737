//! Which format a file has: by its name, its folder and what is in it.

use super::Format;
use crate::checkpoint::Evidence;

/// The format of a file, with what speaks for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// What speaks for it.
    pub evidence: Evidence,
}
