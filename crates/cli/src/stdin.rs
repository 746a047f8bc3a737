//! Standard input, and `-` as a file name for it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::output::Outcome;

/// The name of standard input as a FILE and in output.
pub(crate) const NAME: &str = "-";

/// Reads standard input: at most `max_bytes`, plus one byte that shows that there is more.
pub(crate) fn read(max_bytes: u64) -> Result<Vec<u8>, Failure> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err(Failure::usage(
            "standard input would be read twice; name a file for one of the two",
        ));
    }
    let mut bytes = Vec::new();
    let input = std::io::stdin().lock();
    let read = input
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("standard input cannot be read: {error}")))?;
    Ok(bytes)
}

/// Whether a path is the name of standard input.
pub(crate) fn is_named(path: &Path) -> bool {
    path.as_os_str() == NAME
}

/// A temporary file with the content of standard input.
pub(crate) struct AsFile {
    folder: tempfile::TempDir,
}

impl AsFile {
    /// Reads standard input if one of these files is it, and names the temporary file in its place.
    pub(crate) fn take(
        mut files: Vec<&mut PathBuf>,
        max_bytes: u64,
    ) -> Result<Option<AsFile>, Failure> {
        files.retain(|file| is_named(file));
        if files.is_empty() {
            return Ok(None);
        }
        let bytes = read(max_bytes)?;
        let failed = |error| {
            Failure::new(format!(
                "standard input cannot be kept in a temporary file: {error}"
            ))
        };
        let folder = tempfile::tempdir().map_err(failed)?;
        let input = AsFile { folder };
        std::fs::write(input.path(), bytes).map_err(failed)?;
        for file in files {
            *file = input.path();
        }
        Ok(Some(input))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Replaces the path of the temporary file by `-` in the output.
    pub(crate) fn name(&self, outcome: &mut Outcome) {
        let path = self.path().display().to_string();
        // In JSON the separators of a Windows path are doubled.
        for path in [path.replace('\\', "\\\\"), path] {
            outcome.out = outcome.out.replace(&path, NAME);
            for note in &mut outcome.notes {
                *note = note.replace(&path, NAME);
            }
        }
    }
}

/// Whether the path is such a temporary file.
pub(crate) fn is_input(path: &Path) -> bool {
    path.ends_with(NAME) && path.starts_with(std::env::temp_dir())
}

/// Refuses `-` for a file that is not only read.
pub(crate) fn refuse(file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(file) if is_named(file) => Err(Failure::usage(
            "`-` is standard input, which detect, validate, show, revision, stale, resume and convert read; name a \
             file here (write `./-` for a file of that name)",
        )),
        _ => Ok(()),
    }
}
