//! Writes like those of a program that never syncs, visible to the watch of this thread. For tests.

use std::path::Path;

use super::{Durability, Present, Replace};

/// Replaces a file.
///
/// # Errors
///
/// Any failure to write it.
pub fn replace(path: &Path, bytes: &[u8]) -> crate::Result<()> {
    let replace = Replace::new(path, Present::Whatever).durability(Durability::None);
    replace.write(bytes)?;
    Ok(())
}

/// Appends to a file in place.
///
/// # Errors
///
/// Any failure to write it.
pub fn append(path: &Path, bytes: &[u8]) -> crate::Result<()> {
    Ok(super::append(path, bytes, Durability::None, None)?)
}
