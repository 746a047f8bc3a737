//! The quarantine, where damaged texts are kept.

use std::path::{Path, PathBuf};

use super::own_file;
use super::unique::unique_names;
use crate::checkpoint::{Revision, UNIQUE_SEPARATOR};
use crate::fsio::{self, Durability, FileError};

/// How many of the newest damaged texts of one checkpoint are kept.
const MOST: usize = 8;

/// How many hex digits of its hash name a damaged text.
const NAME: usize = 16;

/// The folder of the damaged texts of a file.
pub(super) fn folder(target: &Path) -> PathBuf {
    own_file::path_beside(target, own_file::folders::QUARANTINE, "")
}

/// How many files may share one hash prefix. One suffices, unless another program changed a file.
const MOST_OF_A_NAME: usize = 1000;

/// Stores the damaged contents of a file and returns the path: `.agent-checkpoint/corrupt/{file}/{hash}.json`.
///
/// The same contents are stored once, however often they occur. The number of texts is limited; the newest is
/// never removed.
pub(super) fn quarantine(
    target: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<PathBuf, FileError> {
    let folder = folder(target);
    fsio::create_folder_durably(&folder)?;
    let hash = Revision::of(bytes).to_string();
    let hash = hash.rsplit(':').next().unwrap_or_default();
    for path in unique_names(&folder, &hash[..NAME.min(hash.len())]).take(MOST_OF_A_NAME) {
        // The copy must be on disk before the damaged file is removed. A link would be as torn as the file.
        if fsio::copy(target, bytes, &path, durability)? {
            bound(&folder, &path);
            return Ok(path);
        }
        // The name alone is no proof: a copy may have been truncated or changed since.
        match fsio::read_limited(&path, bytes.len() as u64) {
            Ok(Some(kept)) if kept.bytes == bytes => {
                fsio::ensure_synced(&path, &kept, durability).map_err(FileError::of_a_step)?;
                return Ok(path);
            }
            Ok(_) | Err(FileError::TooLarge { .. } | FileError::NotAFile { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(FileError::Io {
        operation: fsio::Operation::CreateTemp,
        path: folder,
        source: std::io::ErrorKind::AlreadyExists.into(),
    })
}

fn bound(folder: &Path, spared: &Path) {
    let mut all: Vec<_> = fsio::list(folder)
        .unwrap_or_default()
        .into_iter()
        .filter(|file| {
            let name = file.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let hash = stem.map(|stem| stem.split(UNIQUE_SEPARATOR).next().unwrap_or(stem));
            hash.is_some_and(|stem| {
                stem.len() == NAME && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        })
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .filter(|(_, path)| path != spared)
        .collect();
    all.sort();
    let surplus = (all.len() + 1).saturating_sub(MOST);
    for (_, path) in all.into_iter().take(surplus) {
        let _ = fsio::remove(&path, Durability::None);
    }
}
