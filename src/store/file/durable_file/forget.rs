//! Forgets a task: only the fence of its last claim remains.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::DurableFile;
use crate::checkpoint::{Fence, Result};
use crate::fsio::{self, Durability, look, parent_of};
use crate::store::Stored;
use crate::store::file::own_file::{self, folders, path_beside};

/// The folders in which we keep data of a file in a folder of its own.
const FOLDERS: [&str; 3] = [folders::HISTORY, folders::PINNED, folders::QUARANTINE];

/// The folders in which we keep data of a file in a file of its own, and how those names end. The record of claims is
/// not among them, because it keeps the fence; neither is the placeholder of the ledger, which is removed first.
const FILES: [(&str, &str); 10] = [
    (folders::LEDGER, ".jsonl"),
    (folders::LEDGER, ".unsynced.jsonl"),
    (folders::DROPPED_LOG, ".jsonl"),
    (folders::DROPPED_LOG, ".1.jsonl"),
    (folders::DROPPED_LOG, ".unsynced.jsonl"),
    (folders::DROPPED_LOG, ".begins.jsonl"),
    (folders::FINGERPRINTS, ".json"),
    (folders::TASK_BOUNDARIES, ".json"),
    (folders::ORDER, ""),
    (folders::LOCKS, ".note"),
];

/// How long a temporary file is left to its writer, which needs milliseconds. A slower writer restarts its save.
const ABANDONED: Duration = Duration::from_secs(1);

impl DurableFile<'_> {
    /// Removes the file and everything that we keep of it, except the fence. `is_archive` states whether a name
    /// in this folder is an archive of the file with this stem. Returns `false` if there was nothing.
    ///
    /// The file is removed last: everything else is found by its name, which cannot be derived from a key
    /// inside the file.
    pub(in crate::store) fn forget(
        &self,
        fence: Option<Fence>,
        check: &mut dyn FnMut(Option<&Stored>) -> Result<()>,
        any_will_do: bool,
        is_archive: &dyn Fn(&Path, &str, &str) -> bool,
    ) -> Result<bool> {
        self.refuse_read_only()?;
        let durability = self.options.durability;
        let target = self.target()?;
        let folder = parent_of(&target);
        let own = folder.join(fsio::OWN_FOLDER);
        let stem = target.file_stem().unwrap_or_default().to_string_lossy();
        let is_archive = |name: &OsStr| is_archive(folder, &name.to_string_lossy(), &stem);
        let backups = self.backups.as_ref().map(|backups| {
            let is_one = |name: &OsStr| (backups.is_backup)(&name.to_string_lossy(), &stem);
            (folder.join(backups.folder), is_one)
        });
        // Do not create our folder for a task that has nothing. A file that was copied without that folder, for
        // example by git, may still have archives and backups.
        let mut is_there = look(&target)?.is_some() || look(&own)?.is_some();
        is_there = is_there || has(folder, &is_archive)?;
        if let Some((folder, is_one)) = &backups {
            is_there = is_there || has(folder, is_one)?;
        }
        if !is_there {
            check(None)?;
            return Ok(false);
        }
        let lock = self.lock(&target)?;
        own_file::refuse_links(folder)?;
        let beside = self.beside(&target);
        beside.claims.check_forget(fence, beside.now)?;
        if !any_will_do {
            check(self.read(&target)?.as_ref().map(|(stored, _)| stored))?;
        }
        let mut gone = 0;
        // Remove the placeholder first, and durably, even if another process removed it: a placeholder without a ledger
        // would mean that the ledger is on another machine.
        let placeholder = path_beside(&target, folders::DROPPED_LOG, ".ledger");
        if look(&placeholder)?.is_some() {
            fsio::remove(&placeholder, Durability::None)?;
            gone += 1;
        }
        self.ensure_absence_synced(&placeholder)?;
        for kind in FOLDERS {
            let inside = path_beside(&target, kind, "");
            self.options.recent.take(&inside);
            gone += self.clear(folder, &inside, &|_| true)?;
        }
        for (kind, ending) in FILES {
            let path = path_beside(&target, kind, ending);
            if look(&path)?.is_some() {
                fsio::remove(&path, Durability::None)?;
                // The note alone does not count: it only records that there was something.
                gone += usize::from(kind != folders::LOCKS);
            }
        }
        // Temporary files of killed writers may contain data of this task.
        for kind in folders::REPLACED.into_iter().chain([folders::LOCKS, ""]) {
            self.clear(folder, &own.join(kind), &|_| false)?;
        }
        if let Some((backups, is_one)) = &backups {
            gone += self.clear(folder, backups, is_one)?;
        }
        gone += self.clear(folder, folder, &is_archive)?;
        gone += usize::from(beside.claims.forget(durability)?);
        if look(&target)?.is_some() {
            fsio::remove(&target, durability)?;
            self.remove_link(&target)?;
            gone += 1;
        } else {
            self.ensure_absence_synced(&target)?;
        }
        lock.forget_holder();
        Ok(gone > 0)
    }

    /// Removes the wanted files of a folder and returns their number; also removes temporary files of killed
    /// writers. The removals are on disk when this returns, whichever process made them.
    fn clear(
        &self,
        within: &Path,
        folder: &Path,
        is_wanted: &dyn Fn(&OsStr) -> bool,
    ) -> Result<usize> {
        fsio::within(within, folder)?;
        let mut gone = 0;
        let mut left: Vec<PathBuf> = Vec::new();
        for file in fsio::list(folder)? {
            let name = file.file_name();
            let is_folder = file.file_type().is_ok_and(|found| found.is_dir());
            if !is_folder && is_wanted(&name) {
                fsio::remove(&file.path(), Durability::None)?;
                gone += 1;
            } else if !is_folder && fsio::is_temporary(&name) {
                left.push(file.path());
            }
        }
        for _ in 0..20 {
            if left.is_empty() {
                break;
            }
            fsio::sweep(folder, ABANDONED);
            left.retain(|path| matches!(look(path), Ok(Some(_))));
            std::thread::sleep(ABANDONED / 10);
        }
        if self.options.durability == Durability::Full && look(folder)?.is_some() {
            fsio::sync_folder(folder)?;
        }
        Ok(gone)
    }
}

/// Whether a folder has a file with a wanted name.
fn has(folder: &Path, is_wanted: &dyn Fn(&OsStr) -> bool) -> Result<bool> {
    let files = fsio::list(folder)?;
    Ok(files.iter().any(|file| is_wanted(&file.file_name())))
}
