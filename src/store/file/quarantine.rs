//! Where damaged files are put aside.

use std::path::{Path, PathBuf};

use super::durable_file::sidecar_name;
use crate::checkpoint::Revision;
use crate::fsio::{self, Durability, FileError};

/// How many damaged texts are kept of one checkpoint, the newest.
const MOST: usize = 8;

/// How many letters of its hash name a damaged text.
const NAME: usize = 16;

/// Where the damaged texts of a file are.
pub(super) fn folder(target: &Path) -> PathBuf {
    fsio::parent_of(target)
        .join(fsio::OWN_FOLDER)
        .join("corrupt")
        .join(sidecar_name(target, ""))
}

/// Keeps the damaged contents of a file, and says where: `.agent-checkpoint/corrupt/{file}/{hash}.json`.
///
/// The same contents are kept once, however often they come. Only so many are kept; the one just put aside
/// is never the one that goes.
pub(super) fn put_aside(
    target: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<PathBuf, FileError> {
    fsio::own_folder(fsio::parent_of(target))?;
    let folder = folder(target);
    fsio::create_folder_durably(&folder)?;
    let hash = Revision::of(bytes).to_string();
    let hash = hash.rsplit(':').next().unwrap_or_default();
    let path = folder.join(format!("{}.json", &hash[..NAME.min(hash.len())]));
    // It must be on disk before the damaged file goes: a link would be as torn as the file.
    if fsio::copy(target, bytes, &path, durability)? {
        bound(&folder, &path);
    } else {
        fsio::make_last(&path, durability)?;
    }
    Ok(path)
}

fn bound(folder: &Path, spared: &Path) {
    let mut all: Vec<_> = fsio::list(folder)
        .unwrap_or_default()
        .into_iter()
        .filter(|file| {
            let name = file.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            stem.is_some_and(|stem| {
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
