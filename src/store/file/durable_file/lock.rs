//! The lock of a file, and what is checked once it is held.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::DurableFile;
use crate::checkpoint::{Error, ErrorKind, Result};
use crate::event;
use crate::fsio::{
    self, Durability, FileError, FileStamp, InPlace, Lock, Present, look, parent_of,
};
use crate::store::file::layout;
use crate::store::file::own_file::{self, SWEPT, folders, path_beside};
use crate::store::file::quarantine;
use crate::store::file::saved::Noted;

/// The shortest wait for a lock that is reported as an event: a save by another process takes a few milliseconds.
const WORTH_TELLING: Duration = Duration::from_millis(50);

/// A file whose lock is held.
#[derive(Default)]
pub(super) struct Locked {
    /// `None` if the file system has no locks and the options permit that.
    lock: Option<Lock>,
    /// The note beside it, if it is open already.
    pub(super) note: Option<(Noted, Option<InPlace>)>,
}

impl Locked {
    /// Clears the name of the holder from the lock.
    pub(super) fn forget_holder(&self) {
        if let Some(lock) = &self.lock {
            lock.forget_holder();
        }
    }
}

impl DurableFile<'_> {
    /// Takes the lock of the file. The first save also checks our folders; later ones rely on that.
    pub(super) fn lock(&self, target: &Path) -> Result<Locked> {
        let folder = parent_of(target);
        let own = folder.join(fsio::OWN_FOLDER);
        // `git clean` may remove the folder while a program runs, together with the file that keeps it out of
        // the repository.
        let found = look(&own)?;
        let is_link = found.as_ref().is_some_and(Metadata::is_symlink);
        if let (Some(within), true) = (&self.within, is_link) {
            fsio::within(within, &own)?;
        }
        let lasts = |found: &Metadata| found.is_dir() && fsio::lasts(found);
        let is_known = found.as_ref().is_some_and(lasts) && self.options.has_swept(&own);
        let mut is_laid_out = true;
        if found.is_none() {
            is_laid_out = false;
            let is_ours = look(folder)?.is_none();
            fsio::create_folder_durably(folder)?;
            if is_ours {
                ignore_temporary_files(folder)?;
            }
            fsio::own_folder(&own)?;
        } else if !is_known {
            is_laid_out = layout::is_present(&own)?;
            own_file::refuse_links(folder)?;
            fsio::ignore(&own, Durability::Full)?;
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let lock = self.acquire(folder, &name)?;
        let mut note = None;
        if let (Some(found), false) = (found, is_known) {
            let opened = self.note(target).open();
            if self.note(target).vouches_for_folders(&opened.0)? {
                fsio::trust(&found);
                look(folder)?.iter().for_each(fsio::trust);
            } else {
                fsio::create_folder_durably(folder)?;
                fsio::own_folder(&own)?;
            }
            note = Some(opened);
        }
        if !is_laid_out {
            layout::take_over(&own, self.options.durability)?;
        }
        if let Some(lock) = &lock {
            self.refuse_other_case(lock, target, &name)?;
        }
        self.sweep(lock.as_ref(), target, folder, &own);
        Ok(Locked { lock, note })
    }

    /// Waits for the lock of a file in a folder. `None` if the file system has no locks and the options permit that.
    fn acquire(&self, folder: &Path, name: &str) -> Result<Option<Lock>> {
        // Names that differ only in case are one file on many systems, so they share one lock.
        let folded = folder.join(name.to_lowercase());
        let path = path_beside(&folded, folders::LOCKS, ".lock");
        let options = self.options;
        let began = Instant::now();
        match Lock::acquire(&path, options.lock_timeout, &options.holder) {
            Ok(lock) => {
                if began.elapsed() >= WORTH_TELLING
                    && let Some(key) = &self.key
                {
                    event::happened("lock waited", key, None, Some(&options.holder), began);
                }
                Ok(Some(lock))
            }
            Err(FileError::NoLocks { .. }) if options.single_writer => Ok(None),
            Err(FileError::Locked {
                waited,
                holder,
                held_for,
                ..
            }) => {
                // For the caller the checkpoint is locked, not the lock file.
                Err(Error::new(ErrorKind::Locked {
                    waited,
                    pid: fsio::pid_of(holder.as_deref()),
                    holder,
                    held_for,
                })
                .with_path(&self.path))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the temporary files that killed writers left, wherever the store makes any: for the whole store, and
    /// for what it keeps of this file, each once an hour across all processes. It runs under the lock: a lock holder
    /// may be in the middle of a save, however old its temporary file looks after a change of the clock.
    fn sweep(&self, lock: Option<&Lock>, target: &Path, folder: &Path, own: &Path) {
        self.options.sweep_once(own, || {
            let note = own.join(SWEPT);
            let swept = look(&note).ok().flatten();
            if is_recent(swept.and_then(|found| found.modified().ok())) {
                return Vec::new();
            }
            // If this fails, the next process sweeps again.
            let _ = InPlace::open(&note, target).and_then(|note| note.write(b"\n", 0));
            let inside = folders::REPLACED.map(|inside| own.join(inside));
            [&[folder.to_path_buf(), own.to_path_buf()][..], &inside].concat()
        });
        self.options.sweep_once(target, || {
            if is_recent(lock.and_then(Lock::swept)) {
                return Vec::new();
            }
            if let Some(lock) = lock {
                lock.set_swept();
            }
            let history = self.history_of(target);
            let mut folders = history.map_or_else(Vec::new, |history| history.folders().to_vec());
            folders.push(quarantine::folder(target));
            folders
        });
    }

    /// Refuses a new file whose name differs from an existing one only in case, and a file that is the same
    /// file as that one. Two separate files that already exist are accepted.
    fn refuse_other_case(&self, lock: &Lock, target: &Path, name: &str) -> Result<()> {
        match lock.label() {
            Some(label) if label == name => return Ok(()),
            Some(label) if label.to_lowercase() == name.to_lowercase() => {
                let other = parent_of(target).join(label);
                let is_other_case = match (look(target)?, look(&other)?) {
                    (_, None) => false,
                    (None, Some(_)) => true,
                    (Some(_), Some(_)) => is_one_file(target, &other),
                };
                if is_other_case {
                    return Err(Error::other(
                        "twin",
                        format!(
                            "{} exists, and its name differs only in upper and lower case: on many systems the two \
                             would be one file; choose another key",
                            other.display()
                        ),
                    )
                    .with_path(&self.path));
                }
            }
            _ => {}
        }
        lock.set_label(name);
        Ok(())
    }
}

/// Whether a sweep at this time is recent enough that none is due. A time in the future does not count.
fn is_recent(swept: Option<SystemTime>) -> bool {
    let age = swept.and_then(|swept| swept.elapsed().ok());
    age.is_some_and(|age| age < fsio::ABANDONED_AFTER)
}

/// Makes git ignore the temporary files that killed writers may leave beside the checkpoints. This is only done
/// in a folder that the store created; elsewhere the owner of the folder decides what is ignored.
fn ignore_temporary_files(folder: &Path) -> Result<()> {
    let text = format!("{}*{}\n", fsio::TEMP_PREFIX, fsio::TEMP_SUFFIX);
    let path = folder.join(".gitignore");
    Ok(fsio::write_gitignore(
        &path,
        Present::Absent,
        Durability::None,
        &text,
    )?)
}

/// Whether two paths lead to the same file.
fn is_one_file(one: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(other)) {
        (Ok(one), Ok(other)) if one == other => true,
        _ if cfg!(unix) => {
            let stamp = |path| look(path).ok().flatten().map(|found| FileStamp::of(&found));
            stamp(one).is_some_and(|stamp_of_one| Some(stamp_of_one) == stamp(other))
        }
        _ => false,
    }
}
