//! Replaces a file of the project.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Replaces the whole file at once. Links are followed, and permissions stay. Returns `false` if the file is no longer
/// equal to `before`.
pub(crate) fn replace(path: &Path, before: &str, text: &str) -> std::io::Result<bool> {
    let path = path.canonicalize()?;
    let folder = path.parent().ok_or(ErrorKind::NotFound)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file()
        .set_permissions(fs::metadata(&path)?.permissions())?;
    file.as_file().sync_all()?;
    if fs::read(&path)? != before.as_bytes() {
        return Ok(false);
    }
    file.persist(&path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, "new").unwrap();
        assert!(!replace(&path, "old", "text").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(replace(&path, "new", "text").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }
}
