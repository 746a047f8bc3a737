//! Files outside any store, for example one that a user names before its format and key are known.

use std::path::Path;

use super::FileOptions;
use super::file::{DurableFile, layout};
use crate::checkpoint::Result;
use crate::fsio::{self, Present};
use crate::json::Document;

/// The document in a file; `None` if there is no such file.
///
/// A file that another program is writing is read again until it is whole or no longer changes, as a
/// [`FileStore`](super::FileStore) does.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when the file is not a document, and any failure to read it.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::store::{create_file, read_document};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("state.json");
/// assert!(read_document(&path, 1 << 20)?.is_none());
/// create_file(&path, b"{\"phase\":\"review\"}\n")?;
///
/// let document = read_document(&path, 1 << 20)?;
/// assert!(document.is_some_and(|document| document.get("/phase").is_some()));
/// # Ok(())
/// # }
/// ```
pub fn read_document(path: &Path, max_bytes: u64) -> Result<Option<Document>> {
    let options = FileOptions::read_only().with_max_bytes(max_bytes);
    let stored = DurableFile::new(path.to_path_buf(), &options).load()?;
    Ok(stored.map(|stored| stored.document))
}

/// The bytes of a file of at most `max_bytes` bytes; `None` if there is no such file.
///
/// # Errors
///
/// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) for a larger file,
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for a folder, pipe or device, and any failure to read it.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::store::read_file;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let error = read_file(folder.path(), 1 << 20).err();
/// assert!(error.is_some_and(|error| error.code() == "not-a-file"));
/// # Ok(())
/// # }
/// ```
pub fn read_file(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>> {
    let read = fsio::read_limited(path, max_bytes)?;
    Ok(read.map(|contents| contents.bytes))
}

/// Creates a new file durably: after a crash it exists with all of `bytes`, or not at all.
///
/// # Errors
///
/// [`ErrorKind::ChangedMeanwhile`](crate::ErrorKind::ChangedMeanwhile) when a file exists already, and any
/// failure to write it; [`ErrorKind::NewerLayout`](crate::ErrorKind::NewerLayout) when a newer program laid out
/// the store of the folder.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::store::create_file;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("converted.json");
/// create_file(&path, b"{}\n")?;
/// assert!(create_file(&path, b"{}\n").is_err());
/// # Ok(())
/// # }
/// ```
pub fn create_file(path: &Path, bytes: &[u8]) -> Result<()> {
    layout::is_present(&fsio::parent_of(path).join(fsio::OWN_FOLDER))?;
    fsio::replace(path, bytes, Present::Absent)?;
    Ok(())
}
