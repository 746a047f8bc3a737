use std::borrow::Cow;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::folder_handle::FolderHandle;
use super::resolve::{look, look_through, parent_of};
use super::{
    FileError, FileStamp, OWN_FOLDER, Operation, TEMP_PREFIX, TEMP_RANDOM, TEMP_SUFFIX,
    known_synced, seam, system,
};

/// The condition on the present file at the moment it is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Present<'a> {
    /// There is no file. Of several writers with this condition, exactly one wins.
    Absent,
    /// The file is still the one that was read.
    Same(&'a FileStamp),
    /// No condition: the file is created or replaced.
    Whatever,
}

/// Which syncs a save waits for before it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Two syncs, of the file and its folder: what was saved survives a power cut.
    #[default]
    Full,
    /// One sync, of the file. After a power cut the name leads to the new contents or to older ones, each
    /// whole: the last saves may be lost, but none is torn. For work that can be repeated.
    Data,
    /// No sync. The replace is still atomic for readers, but a power cut may lose it or leave the file empty.
    /// For tests and scratch files.
    None,
}

/// The result of a replace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Replaced {
    /// The version of the file that is there now.
    pub stamp: FileStamp,
    /// When it was written, if the file system says.
    pub modified: Option<SystemTime>,
}

/// Replaces a file with full durability; see [`Replace`].
///
/// # Errors
///
/// As [`Replace::write`].
pub(crate) fn replace(
    path: &Path,
    bytes: &[u8],
    present: Present<'_>,
) -> Result<Replaced, FileError> {
    Replace::new(path, present).write(bytes)
}

/// An atomic replace of one file.
///
/// The new contents go to a temporary file in the same folder, which is then renamed. `docs/durability.md`
/// gives the order of the steps and what a crash leaves at each point.
///
/// The new file keeps the mode of the replaced one and, if privileges allow, its owner and group. It does not
/// keep extended attributes, access control lists, the creation time, or other hard links, which keep the old
/// contents. A file that replaces none gets the mode of an ordinary new file.
#[must_use = "nothing is written until `write` is called"]
pub(crate) struct Replace<'a> {
    path: &'a Path,
    present: Present<'a>,
    durability: Durability,
    known: Option<&'a Metadata>,
    like: Option<&'a Path>,
    of_its_time: bool,
    written_at: Option<SystemTime>,
    before_rename: Option<BeforeRename<'a>>,
}

type BeforeRename<'a> = &'a mut dyn FnMut() -> Result<(), FileError>;

impl fmt::Debug for Replace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replace")
            .field("path", &self.path)
            .field("present", &self.present)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

impl<'a> Replace<'a> {
    /// A replace of the file at `path`; a symbolic link is followed and stays a link.
    pub(crate) fn new(path: &'a Path, present: Present<'a>) -> Self {
        Self {
            path,
            present,
            durability: Durability::default(),
            known: None,
            like: None,
            of_its_time: false,
            written_at: None,
            before_rename: None,
        }
    }

    /// Sets which syncs to wait for; the default is [`Durability::Full`].
    pub(crate) fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the metadata of the present file, which the caller has just read from a resolved path. It is not
    /// read again before the new contents are written; whether it is still current is checked then.
    pub(crate) fn known(mut self, found: &'a Metadata) -> Self {
        self.known = Some(found);
        self
    }

    /// Gives the file the mode, owner and group of another file, as far as allowed, in place of those of the
    /// replaced file. Its contents come from that file, so its permissions must not be wider.
    pub(crate) fn like(mut self, other: &'a Path) -> Self {
        self.like = Some(other);
        self
    }

    /// Also gives a new file the modification time of the file set with [`like`](Replace::like), before it gets
    /// its name.
    pub(super) fn of_its_time(mut self) -> Self {
        self.of_its_time = true;
        self
    }

    /// Gives the file this modification time before it gets its name.
    pub(crate) fn written_at(mut self, time: Option<SystemTime>) -> Self {
        self.written_at = time;
        self
    }

    /// Calls `hook` when the new contents are on disk and the present file was compared once more. The hook may
    /// make a hard link to the present file. An error of the hook ends the replace.
    pub(crate) fn before_rename(mut self, hook: BeforeRename<'a>) -> Self {
        self.before_rename = Some(hook);
        self
    }

    /// Writes `bytes` as the whole contents of the file.
    ///
    /// # Durability
    ///
    /// On success with [`Durability::Full`] the new contents survive a power cut. This takes exactly two syncs.
    ///
    /// # Errors
    ///
    /// After every error but one, the temporary file is removed and the present file is unchanged. The
    /// exception is [`FileError::NotDurable`]: the new contents are in place but may not survive a power cut.
    ///
    /// [`FileError::Changed`] when the present file does not meet [`Present`], or another process removed the
    /// temporary file before it got its name; [`FileError::WriteProtected`] when the present file is read-only;
    /// [`FileError::DiskFull`], [`FileError::NotAFile`], [`FileError::DanglingLink`], [`FileError::LinkLoop`],
    /// [`FileError::Io`]; and any error of the hook.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<Replaced, FileError> {
        let (target, first) = match self.known {
            Some(known) => (Cow::Borrowed(self.path), Some(known.clone())),
            None => look_through(self.path)?,
        };
        let target = target.as_ref();
        // We make no links among our own files. A link there was made by someone who wants us to write into
        // another file.
        let is_own = |path: &Path| path.iter().any(|part| part == OWN_FOLDER);
        if target != self.path && is_own(self.path) {
            return Err(FileError::NotAFile {
                path: self.path.to_path_buf(),
            });
        }
        if let Some(found) = &first {
            check_replaceable(target, found)?;
        }
        // Check early: a save that is already too late should not cost a sync.
        check_present(target, self.present, first.as_ref(), FileStamp::eq)?;

        let folder = parent_of(target);
        let folder_handle = match self.durability {
            Durability::Full => FolderHandle::open(folder)?,
            Durability::Data | Durability::None => None,
        };

        // From here on, dropping `temp` removes it, so every `?` leaves the folder as it was.
        let like = self.like.map(look).transpose()?.flatten();
        let like = like.as_ref().or(first.as_ref());
        let temp =
            create_temp(folder, like).map_err(FileError::on(Operation::CreateTemp, target))?;
        if let Some(found) = like {
            take_after(temp.as_file(), found, target, first.is_some())?;
        }
        seam::write_all(temp.as_file(), temp.path(), bytes)
            .map_err(FileError::on(Operation::Write, target))?;
        if let (true, Some(other), Some(found)) = (self.of_its_time, self.like, like) {
            // The time shows when the state was saved. A wrong one misleads a person but loses nothing, so this
            // may fail.
            if let Ok(time) = found.modified() {
                let set = || temp.as_file().set_modified(time);
                let _ = seam::call_from(Operation::SetTime, other, temp.path(), set);
            }
        }
        if let Some(time) = self.written_at {
            let set = || temp.as_file().set_modified(time);
            seam::call_from(Operation::SetTime, temp.path(), temp.path(), set)
                .map_err(FileError::on(Operation::SetTime, target))?;
        }
        if self.durability != Durability::None {
            // A failed sync is never repeated on the same file: the kernel may have dropped the pages and would
            // then report a false success. The next save writes a new file.
            system::sync_all(temp.as_file(), temp.path())
                .map_err(FileError::on(Operation::Sync, target))?;
        }

        let mut same: fn(&FileStamp, &FileStamp) -> bool = FileStamp::eq;
        if let Some(hook) = self.before_rename {
            // Compare first, so that the hook never puts another program's version into the history.
            look_again(target, self.present, same)?;
            hook()?;
            // A hard link made by the hook changed the inode's change time.
            same = FileStamp::same_contents;
        }
        look_again(target, self.present, same)?;

        let file = rename(temp, target, matches!(self.present, Present::Absent))?;

        // The rename itself changes the inode's change time, so the stamp is taken after it. It is taken from
        // the open file, which is ours even if the name now leads to another one.
        let written =
            system::metadata_of(&file, target).map_err(|source| FileError::NotDurable {
                path: target.to_path_buf(),
                source,
            })?;
        if let Some(handle) = folder_handle {
            handle.sync().map_err(|source| {
                known_synced::note_failed(&written);
                FileError::NotDurable {
                    path: target.to_path_buf(),
                    source,
                }
            })?;
            known_synced::note(&written);
        }
        Ok(Replaced {
            stamp: FileStamp::of(&written),
            modified: written.modified().ok(),
        })
    }
}

fn check_replaceable(target: &Path, found: &Metadata) -> Result<(), FileError> {
    if !found.is_file() {
        return Err(FileError::NotAFile {
            path: target.to_path_buf(),
        });
    }
    // A rename needs only a writable folder, but write protection of the file means that it must not change.
    if found.permissions().readonly() {
        return Err(FileError::WriteProtected {
            path: target.to_path_buf(),
        });
    }
    Ok(())
}

/// The last check. For [`Present::Absent`] the rename itself checks, without a gap.
fn look_again(
    target: &Path,
    present: Present<'_>,
    same: fn(&FileStamp, &FileStamp) -> bool,
) -> Result<(), FileError> {
    match present {
        Present::Same(_) => check_present(target, present, look(target)?.as_ref(), same),
        Present::Absent | Present::Whatever => Ok(()),
    }
}

fn check_present(
    target: &Path,
    present: Present<'_>,
    found: Option<&Metadata>,
    same: fn(&FileStamp, &FileStamp) -> bool,
) -> Result<(), FileError> {
    let as_wanted = match (present, found) {
        (Present::Absent, found) => found.is_none(),
        (Present::Same(_), None) => false,
        (Present::Same(stamp), Some(found)) => same(stamp, &FileStamp::of(found)),
        (Present::Whatever, _) => true,
    };
    if as_wanted {
        Ok(())
    } else {
        Err(FileError::Changed {
            path: target.to_path_buf(),
        })
    }
}

fn create_temp(folder: &Path, replaced: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        // The file must never have wider permissions than the final one, not even for an instant. The umask
        // applies: that is right for a new file, and `take_after` corrects it for a replaced one.
        options.mode(replaced.map_or(0o666, |found| found.mode() & 0o777));
    }
    #[cfg(not(unix))]
    let _ = replaced;
    // Use a new name each time: with a fixed name, the file of a killed writer would block every later save.
    tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .suffix(TEMP_SUFFIX)
        .rand_bytes(TEMP_RANDOM)
        .make_in(folder, |path| {
            system::open_with(&options, Operation::CreateTemp, path)
        })
}

/// Gives the temporary file the owner, group and mode of the file that it replaces or resembles, as far as allowed.
#[cfg(unix)]
fn take_after(
    temp: &File,
    replaced: &Metadata,
    target: &Path,
    replaces: bool,
) -> Result<(), FileError> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let on_mode_error = || FileError::on(Operation::SetMode, target);
    let made = system::metadata_of(temp, target).map_err(on_mode_error())?;
    let mut mode = replaced.mode() & 0o7777;
    let uid = (made.uid() != replaced.uid()).then_some(replaced.uid());
    let gid = (made.gid() != replaced.gid()).then_some(replaced.gid());
    // If root saves another user's file, it must still belong to that user.
    if (uid.is_some() || gid.is_some()) && fchown(temp, uid, gid).is_err() {
        // This user is neither root nor the owner. The rename would bypass a mode that does not let this user write.
        let may_not_write = || OpenOptions::new().write(true).open(target).is_err();
        if uid.is_some() && replaces && may_not_write() {
            return Err(FileError::WriteProtected {
                path: target.to_path_buf(),
            });
        }
        if gid.is_some() && fchown(temp, None, gid).is_err() {
            // The file has another group than intended, which must get no more rights than everyone has.
            mode &= !0o070 | ((mode & 0o007) << 3);
        }
    }
    // Changing the owner clears the set-id bits, so the mode is set last.
    if uid.is_some() || gid.is_some() || mode != made.mode() & 0o7777 {
        let set = || temp.set_permissions(Permissions::from_mode(mode));
        seam::call(Operation::SetMode, target, set).map_err(on_mode_error())?;
    }
    Ok(())
}

/// On other systems a new file inherits its access rights from the folder.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
fn take_after(
    _temp: &File,
    _replaced: &Metadata,
    _target: &Path,
    _replaces: bool,
) -> Result<(), FileError> {
    Ok(())
}

/// Windows refuses to rename over a file that a program has open without sharing, and virus scanners and
/// indexers briefly open every new file. So the rename is repeated there, for about a second in total.
const RENAME_ATTEMPTS: u32 = if cfg!(windows) { 10 } else { 1 };

fn rename(temp: NamedTempFile, target: &Path, must_be_absent: bool) -> Result<File, FileError> {
    let made = temp.path().to_path_buf();
    let mut temp = Some(temp);
    let mut persist = || {
        let Some(file) = temp.take() else {
            return Err(io::Error::other("the temporary file is gone"));
        };
        let from = file.path().to_path_buf();
        let mut file = Some(file);
        let done = seam::call_from(Operation::Rename, &from, target, || {
            let Some(whole) = file.take() else {
                return Err(io::Error::other("the temporary file is gone"));
            };
            let done = if must_be_absent {
                // Atomic: a rename that does not replace, or a hard link if the file system lacks that.
                whole.persist_noclobber(target)
            } else {
                whole.persist(target)
            };
            done.map_err(|refused| {
                file = Some(refused.file);
                refused.error
            })
        });
        temp = file;
        done
    };
    try_again(RENAME_ATTEMPTS, thread::sleep, &mut persist).map_err(|error| {
        let is_missing = |path: &Path| matches!(look(path), Ok(None));
        let is_taken = must_be_absent && error.kind() == io::ErrorKind::AlreadyExists;
        // After a jump of the clock, a sweep of the folder may take the new temporary file for abandoned.
        let is_swept = error.kind() == io::ErrorKind::NotFound
            && is_missing(&made)
            && !is_missing(parent_of(target));
        if is_taken || is_swept {
            FileError::Changed {
                path: target.to_path_buf(),
            }
        } else {
            FileError::of_rename(target, error)
        }
    })
}

/// Tries up to `attempts` times as long as the error is temporary, waiting 2 ms, 4 ms, … in between.
fn try_again<T>(
    attempts: u32,
    mut wait: impl FnMut(Duration),
    action: &mut dyn FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut attempt = 1;
    loop {
        match action() {
            Err(error) if attempt < attempts && passes(&error) => {
                wait(Duration::from_millis(1 << attempt.min(8)));
                attempt += 1;
            }
            done => return done,
        }
    }
}

fn passes(error: &io::Error) -> bool {
    // ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION have no error kind.
    error.kind() == io::ErrorKind::PermissionDenied
        || (cfg!(windows) && matches!(error.raw_os_error(), Some(32 | 33)))
}

#[cfg(test)]
mod tests {
    use super::super::read_limited;
    use super::*;
    use std::fs;

    fn stamp(path: &Path) -> FileStamp {
        FileStamp::of(&fs::metadata(path).unwrap())
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_created_then_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = replace(&path, b"one", Present::Absent).unwrap();
        let read = read_limited(&path, 100).unwrap().unwrap();
        assert_eq!(read.bytes, b"one");
        assert_eq!(
            read.stamp, first.stamp,
            "the stamp returned is the one that is read back"
        );
        assert_eq!(read.modified, first.modified);

        let second = replace(&path, b"two two", Present::Same(&first.stamp)).unwrap();
        assert_ne!(first.stamp, second.stamp);
        assert_eq!(fs::read(&path).unwrap(), b"two two");
        assert_eq!(stamp(&path), second.stamp);

        replace(&path, b"", Present::Whatever).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(entries(folder.path()), ["a"]);
    }

    #[test]
    fn without_syncs_the_replace_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let done = Replace::new(&path, Present::Whatever)
            .durability(Durability::None)
            .write(b"one")
            .unwrap();
        assert_eq!(stamp(&path), done.stamp);
        assert_eq!(entries(folder.path()), ["a"]);
    }

    #[test]
    fn a_bare_name_is_in_the_current_folder() {
        assert_eq!(parent_of(Path::new("a")), Path::new("."));
        let missing = Path::new("no-such-folder-here/a");
        let error = replace(missing, b"x", Present::Absent).unwrap_err();
        assert!(matches!(error, FileError::Io { .. }), "{error:?}");
    }

    #[test]
    fn a_changed_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let read = stamp(&path);
        fs::write(&path, "somebody else").unwrap();
        for present in [Present::Same(&read), Present::Absent] {
            let error = replace(&path, b"two", present).unwrap_err();
            assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        }
        fs::remove_file(&path).unwrap();
        let error = replace(&path, b"two", Present::Same(&read)).unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn a_change_while_the_new_contents_are_written_is_seen_by_the_last_look() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let read = stamp(&path);
        let mut edit = || {
            fs::write(&path, "a foreign editor").unwrap();
            Ok(())
        };
        let error = Replace::new(&path, Present::Same(&read))
            .before_rename(&mut edit)
            .write(b"two")
            .unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), b"a foreign editor");
        assert_eq!(
            entries(folder.path()),
            ["a"],
            "the temporary file is removed"
        );
    }

    #[test]
    fn a_file_created_while_the_new_contents_are_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut create = || {
            fs::write(&path, "theirs").unwrap();
            Ok(())
        };
        let error = Replace::new(&path, Present::Absent)
            .before_rename(&mut create)
            .write(b"ours")
            .unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(entries(folder.path()), ["a"]);
    }

    #[test]
    fn the_hook_may_link_the_present_file_and_sees_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        // Let the kernel's clock tick, so that the link surely changes the inode's change time.
        thread::sleep(Duration::from_millis(30));
        let read = stamp(&path);
        let history = folder.path().join("history");
        let mut link = || {
            let temp = entries(folder.path()).into_iter().find(|name| name != "a");
            assert_eq!(fs::read(folder.path().join(temp.unwrap())).unwrap(), b"two");
            fs::hard_link(&path, &history).map_err(FileError::on(Operation::Link, &path))
        };
        Replace::new(&path, Present::Same(&read))
            .before_rename(&mut link)
            .write(b"two")
            .unwrap();
        assert_eq!(fs::read(&history).unwrap(), b"one");
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn an_error_of_the_hook_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let before = stamp(&path);
        let mut fail = || Err(FileError::NotAFile { path: path.clone() });
        let error = Replace::new(&path, Present::Whatever)
            .before_rename(&mut fail)
            .write(b"two")
            .unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        assert_eq!(stamp(&path), before);
        assert_eq!(entries(folder.path()), ["a"]);
    }

    #[test]
    fn of_eight_creators_one_wins() {
        for round in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            let start = std::sync::Barrier::new(8);
            let won: Vec<_> = thread::scope(|scope| {
                let all: Vec<_> = (0..8)
                    .map(|n: u8| {
                        let (path, start) = (&path, &start);
                        scope.spawn(move || {
                            start.wait();
                            let done = Replace::new(path, Present::Absent)
                                .durability(Durability::None)
                                .write(&[n; 100]);
                            match done {
                                Ok(_) => Some(n),
                                Err(FileError::Changed { .. }) => None,
                                Err(other) => panic!("{other:?}"),
                            }
                        })
                    })
                    .collect();
                all.into_iter()
                    .filter_map(|one| one.join().unwrap())
                    .collect()
            });
            assert_eq!(won.len(), 1, "round {round}: {won:?}");
            assert_eq!(fs::read(&path).unwrap(), [won[0]; 100]);
            assert_eq!(entries(folder.path()), ["a"]);
        }
    }

    #[test]
    fn a_folder_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        for present in [Present::Absent, Present::Whatever] {
            let error = replace(&path, b"x", present).unwrap_err();
            assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        }
        assert!(path.is_dir());
    }

    #[test]
    fn a_refused_rename_is_tried_again_a_bounded_number_of_times() {
        let mut waits = Vec::new();
        let mut calls = 0;
        let mut refused_twice = || {
            calls += 1;
            if calls < 3 {
                Err(io::Error::from(io::ErrorKind::PermissionDenied))
            } else {
                Ok(calls)
            }
        };
        let done = try_again(10, |wait| waits.push(wait), &mut refused_twice);
        assert_eq!(done.unwrap(), 3);
        assert_eq!(waits, [Duration::from_millis(2), Duration::from_millis(4)]);

        let mut calls = 0;
        let mut always = || -> io::Result<()> {
            calls += 1;
            Err(io::ErrorKind::PermissionDenied.into())
        };
        let mut total = Duration::ZERO;
        try_again(10, |wait| total += wait, &mut always).unwrap_err();
        assert_eq!(calls, 10);
        assert!(total < Duration::from_secs(2), "{total:?}");

        let mut calls = 0;
        let mut lasting = || -> io::Result<()> {
            calls += 1;
            Err(io::ErrorKind::NotFound.into())
        };
        try_again(10, |_| {}, &mut lasting).unwrap_err();
        assert_eq!(calls, 1);
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().mode() & 0o7777
        }

        #[test]
        fn the_mode_is_kept_whatever_the_umask() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "one").unwrap();
            for wanted in [0o600, 0o640, 0o644, 0o666, 0o755] {
                fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
                replace(&path, b"two", Present::Whatever).unwrap();
                assert_eq!(mode(&path), wanted, "{wanted:o}");
            }
        }

        #[test]
        fn a_new_file_has_the_mode_of_an_ordinary_new_file() {
            let folder = tempfile::tempdir().unwrap();
            let (ours, ordinary) = (folder.path().join("a"), folder.path().join("b"));
            replace(&ours, b"x", Present::Absent).unwrap();
            fs::write(&ordinary, "x").unwrap();
            assert_eq!(mode(&ours), mode(&ordinary));
        }

        #[test]
        fn a_link_is_followed_and_stays_a_link() {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("real")).unwrap();
            let (file, link) = (folder.path().join("real/a"), folder.path().join("link"));
            fs::write(&file, "one").unwrap();
            symlink("real/a", &link).unwrap();
            let read = read_limited(&link, 100).unwrap().unwrap();
            replace(&link, b"two", Present::Same(&read.stamp)).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read(&file).unwrap(), b"two");
            assert_eq!(entries(folder.path()), ["link", "real"]);
            assert_eq!(entries(&folder.path().join("real")), ["a"]);
        }

        #[test]
        fn a_dangling_link_is_refused_and_stays() {
            let folder = tempfile::tempdir().unwrap();
            let link = folder.path().join("link");
            symlink("nowhere", &link).unwrap();
            for present in [Present::Absent, Present::Whatever] {
                let error = replace(&link, b"x", present).unwrap_err();
                assert!(matches!(error, FileError::DanglingLink { .. }), "{error:?}");
            }
            assert_eq!(entries(folder.path()), ["link"]);
        }

        #[test]
        fn write_protection_is_honoured() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "one").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
            let error = replace(&path, b"two", Present::Whatever).unwrap_err();
            assert!(
                matches!(error, FileError::WriteProtected { .. }),
                "{error:?}"
            );
            assert_eq!(fs::read(&path).unwrap(), b"one");
        }

        #[test]
        fn a_write_in_place_that_puts_size_and_time_back_is_seen() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "one").unwrap();
            let read = fs::metadata(&path).unwrap();
            // Let the kernel's clock tick, so that the inode's change time surely changes.
            thread::sleep(Duration::from_millis(30));
            fs::write(&path, "two").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(read.modified().unwrap()).unwrap();
            let error = replace(&path, b"x", Present::Same(&FileStamp::of(&read))).unwrap_err();
            assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        }

        #[test]
        fn a_file_swapped_for_one_of_the_same_size_and_time_is_seen() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "one").unwrap();
            let read = fs::metadata(&path).unwrap();
            let other = folder.path().join("b");
            fs::write(&other, "two").unwrap();
            let file = File::options().write(true).open(&other).unwrap();
            file.set_modified(read.modified().unwrap()).unwrap();
            fs::rename(&other, &path).unwrap();
            let error = replace(&path, b"x", Present::Same(&FileStamp::of(&read))).unwrap_err();
            assert!(matches!(error, FileError::Changed { .. }), "{error:?}");
        }
    }
}
