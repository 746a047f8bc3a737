use std::io;
use std::path::Path;

use super::folder_handle::sync_folder;
use super::resolve::{look, parent_of};
use super::{Durability, FileError, Operation, Present, Replace, known_synced, system};

/// The name of the hidden folder for our own files, such as locks and history.
pub(crate) const OWN_FOLDER: &str = ".agent-checkpoint";

/// The folder in it that holds the locks.
pub(crate) const LOCKS_FOLDER: &str = "locks";

/// Creates a folder and its missing parents. In our own folder it also writes what [`ignore`] writes.
///
/// # Durability
///
/// The parent of each new folder is synced, so that the folder survives a power cut. For an existing folder
/// this is one system call and no sync. But if this process does not know that the folder's name is synced, the
/// parent is synced anyway: the process that created it may have died before its sync.
///
/// # Errors
///
/// [`FileError::NotAFolder`] when something else is in the way, [`FileError::DiskFull`], [`FileError::Io`].
pub(crate) fn create_folder_durably(path: &Path) -> Result<(), FileError> {
    create(path, Durability::Full)
}

/// Creates a folder and its missing parents without syncs, for contents that may be lost in a power cut. In our
/// own folder it also writes what [`ignore`] writes.
///
/// # Errors
///
/// As [`create_folder_durably`].
pub(crate) fn create_folder(path: &Path) -> Result<(), FileError> {
    create(path, Durability::None)
}

fn create(path: &Path, durability: Durability) -> Result<(), FileError> {
    let durably = durability != Durability::None;
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match system::metadata(at) {
            Ok(found) if found.is_dir() => {
                if durably && !known_synced::lasts(&found) {
                    match sync_name_of(at) {
                        // A user who may not open the parent did not create the folder.
                        Err(FileError::Io { source, .. })
                            if source.kind() == io::ErrorKind::PermissionDenied => {}
                        synced => synced?,
                    }
                }
                break;
            }
            Ok(_) => {
                return Err(FileError::NotAFolder {
                    path: at.to_path_buf(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(at),
            Err(error) => return Err(FileError::io(Operation::Inspect, at, error)),
        }
        match at.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => at = parent,
            _ => break,
        }
    }
    for folder in missing.into_iter().rev() {
        match system::create_dir(folder) {
            Ok(()) => {}
            // Another process was faster. It may not have synced the folder yet, and this caller relies on it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(FileError::io(Operation::CreateFolder, folder, error)),
        }
        if durably {
            sync_name_of(folder)?;
        }
        // This is also needed if the folder was removed after the lock was taken.
        if is_own(folder) {
            ignore(folder, durability)?;
        }
    }
    Ok(())
}

fn is_own(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == OWN_FOLDER)
}

/// Syncs the name of a folder. For our own folder this is only remembered once the folder is complete, so it is
/// checked again until then.
fn sync_name_of(folder: &Path) -> Result<(), FileError> {
    // The root and the start of a relative path have no name.
    if folder.file_name().is_none() {
        return Ok(());
    }
    sync_folder(parent_of(folder))?;
    // Best effort: if this fails, the next call syncs again.
    if !is_own(folder)
        && let Ok(found) = system::metadata(folder)
    {
        known_synced::note(&found);
    }
    Ok(())
}

/// The `.gitignore` of our own folder: everything but the dropped logs, which a clone needs to know what was done.
const IGNORED: &str = "*\n!/overflow/\n!/overflow/**\n.agent-checkpoint-*.tmp\n";

/// The `.gitignore` that earlier versions of this library wrote.
const ALL_IGNORED: [&[u8]; 2] = [b"*\n", b"*"];

/// Creates our own folder, and excludes it from version control as [`ignore`] does.
///
/// # Errors
///
/// As [`create_folder_durably`] and [`ignore`].
pub(crate) fn own_folder(own: &Path) -> Result<(), FileError> {
    create_folder_durably(own)?;
    ignore(own, Durability::Full)?;
    if let Ok(found) = system::metadata(own) {
        known_synced::note(&found);
    }
    Ok(())
}

/// Excludes our own folder, except for the dropped logs, from version control. An existing `.gitignore` is
/// kept, unless it is that of an earlier version, which also ignored the logs.
///
/// # Errors
///
/// As [`Replace::write`].
pub(crate) fn ignore(own: &Path, durability: Durability) -> Result<(), FileError> {
    let stamp;
    let path = own.join(".gitignore");
    let present = match look(&path)? {
        None => Present::Absent,
        Some(found) if found.len() > 2 => return Ok(()),
        Some(_) => match super::read_limited(&path, 2) {
            Ok(Some(read)) if ALL_IGNORED.contains(&&*read.bytes) => {
                stamp = read.stamp;
                Present::Same(&stamp)
            }
            _ => return Ok(()),
        },
    };
    write_gitignore(&path, present, durability, IGNORED)
}

/// Writes a `.gitignore`, unless another process is faster; its file is just as good.
///
/// This happens before there is a lock. If this process is suspended for so long that its temporary file is taken for
/// one of a killed writer and removed, it writes another one.
///
/// # Errors
///
/// As [`Replace::write`].
pub(crate) fn write_gitignore(
    path: &Path,
    present: Present<'_>,
    durability: Durability,
    text: &str,
) -> Result<(), FileError> {
    let write = || {
        let replace = Replace::new(path, present).durability(durability);
        replace.write(text.as_bytes())
    };
    let written = match write() {
        Err(FileError::Changed { .. }) if look(path)?.is_none() => write(),
        written => written,
    };
    match written {
        Ok(_) | Err(FileError::Changed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::rc::Rc;

    use super::super::seam::{Call, Watch, watched};
    use super::*;

    struct Syncs(usize);

    impl Watch for Syncs {
        fn after(&mut self, call: &Call<'_>) {
            let waits = matches!(call.operation, Operation::Sync | Operation::SyncFolder);
            self.0 += usize::from(waits);
        }
    }

    #[test]
    fn only_a_folder_that_is_to_last_waits_for_the_disk() {
        for (create, waits) in [
            (create_folder as fn(&Path) -> _, false),
            (create_folder_durably, true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let own = folder.path().join(OWN_FOLDER);
            let syncs = Rc::new(RefCell::new(Syncs(0)));
            let watch = Rc::clone(&syncs) as Rc<RefCell<dyn Watch>>;
            watched(watch, || create(&own.join("history")).unwrap());
            assert_eq!(syncs.borrow().0 > 0, waits);
            assert_eq!(
                fs::read(own.join(".gitignore")).unwrap(),
                IGNORED.as_bytes()
            );
        }
    }

    #[test]
    fn missing_parents_are_created_and_existing_ones_are_fine() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        create_folder_durably(&deep).unwrap();
        assert!(deep.is_dir());
        create_folder_durably(&deep).unwrap();
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "x").unwrap();
        match create_folder_durably(&file).unwrap_err() {
            FileError::NotAFolder { path } => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
        assert!(create_folder_durably(&file.join("b")).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }

    /// Removes the first temporary file that is written.
    struct Sweep(bool);

    impl Watch for Sweep {
        fn after(&mut self, call: &Call<'_>) {
            if call.operation == Operation::Write && !std::mem::replace(&mut self.0, true) {
                fs::remove_file(call.path).unwrap();
            }
        }
    }

    #[test]
    fn a_gitignore_whose_temporary_file_is_swept_away_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Rc::new(RefCell::new(Sweep(false)));
        watched(sweep, || ignore(folder.path(), Durability::Full)).unwrap();
        let written = fs::read(folder.path().join(".gitignore")).unwrap();
        assert_eq!(written, IGNORED.as_bytes());
    }

    #[test]
    fn our_own_folder_is_ignored_by_git_and_a_changed_gitignore_stays() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(".agent-checkpoint");
        own_folder(&own).unwrap();
        let ignore = own.join(".gitignore");
        assert_eq!(fs::read(&ignore).unwrap(), IGNORED.as_bytes());
        for changed in ["!history\n", "", "a\n"] {
            fs::write(&ignore, changed).unwrap();
            own_folder(&own).unwrap();
            assert_eq!(fs::read(&ignore).unwrap(), changed.as_bytes());
        }
        // The `.gitignore` of an earlier version kept the dropped logs out of every clone.
        for earlier in ["*\n", "*"] {
            fs::write(&ignore, earlier).unwrap();
            own_folder(&own).unwrap();
            assert_eq!(fs::read(&ignore).unwrap(), IGNORED.as_bytes());
        }
    }

    #[test]
    fn many_may_create_our_own_folder_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| own_folder(&folder.path().join("new/store/.agent-checkpoint")))
                })
                .collect();
            for one in all {
                one.join().unwrap().unwrap();
            }
        });
        assert_eq!(
            fs::read(folder.path().join("new/store/.agent-checkpoint/.gitignore")).unwrap(),
            IGNORED.as_bytes()
        );
    }
}
