use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::queue::Place;
use super::resolve::{is_plain, look_plain, not_plain, parent_of};
use super::{FileError, Operation, create_folder_durably, seam, system};

/// How many bytes of the lock file name the holder. All of them are written each time, so that nothing of an
/// earlier, longer name remains and the file never changes its size.
const NAME_WIDTH: usize = 128;

/// How many bytes after the holder name the file that the lock is for.
const LABEL_WIDTH: usize = 384;

/// How many bytes after that state when abandoned temporary files of that file were last removed.
const SWEPT_WIDTH: usize = 32;

/// How long the same holder does not rewrite its name. The time of that write tells a waiter since when the
/// lock is held, so the stated time can be too long by this much.
const NAME_AGE: Duration = Duration::from_secs(1);

/// An exclusive advisory lock, held from [`acquire`](Lock::acquire) until it is dropped.
///
/// The lock is on a separate *lock file* beside the data, which is never deleted: a lock on the data file
/// itself would be void as soon as a rename replaces that file. It excludes other threads of this process as
/// well as other processes, and the operating system releases it when its holder dies.
///
/// It only excludes programs that take it, not for example a person with an editor. `docs/durability.md`
/// describes what that means.
#[derive(Debug)]
#[must_use = "the lock is free again as soon as this is dropped"]
pub(crate) struct Lock {
    file: File,
    sidecar: PathBuf,
    label: Option<String>,
    swept: Option<SystemTime>,
}

impl Lock {
    /// Waits up to `deadline` for the lock on the file `sidecar`, and creates that file and its folder if
    /// necessary. Waiters get the lock in about the order in which they came.
    ///
    /// `holder` names the caller in the error messages of others: `pid 123 agent builder`.
    ///
    /// # Errors
    ///
    /// [`FileError::Locked`] when another process still holds it at the deadline; [`FileError::Io`] and
    /// [`FileError::DiskFull`] when the lock file cannot be created, opened or locked.
    pub(crate) fn acquire(
        sidecar: &Path,
        deadline: Duration,
        holder: &str,
    ) -> Result<Self, FileError> {
        let started = Instant::now();
        let mut place = Place::beside(sidecar);
        let mut is_our_turn = place.is_free();
        loop {
            let (file, opened) = open(sidecar)?;
            while !(is_our_turn && try_lock(&file, sidecar)?) {
                let waited = started.elapsed();
                let Some(left) = deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                    // Make the last attempt even if it is another waiter's turn.
                    if !is_our_turn && try_lock(&file, sidecar)? {
                        break;
                    }
                    let (holder, held_for) = read_holder(&file);
                    return Err(FileError::Locked {
                        lock: sidecar.to_path_buf(),
                        waited,
                        holder,
                        held_for,
                    });
                };
                is_our_turn = place.wait(left);
            }
            if let Some(lock) = Self::held(file, &opened, sidecar, holder)? {
                place.leave();
                return Ok(lock);
            }
        }
    }

    /// Clears the name of the last holder.
    pub(crate) fn forget_holder(&self) {
        let _ = system::write_at(&self.file, &self.sidecar, &padded(""), 0);
    }

    /// The name of the file that the lock is for, as its first user spelled it: names that differ only in case
    /// share one lock file. `None` if no name was written, or it cannot be read.
    #[must_use]
    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Writes the name of the file that the lock is for. A name that is too long is not written.
    pub(crate) fn set_label(&self, label: &str) {
        if label.len() < LABEL_WIDTH {
            let mut whole = vec![b'\n'; LABEL_WIDTH];
            whole[..label.len()].copy_from_slice(label.as_bytes());
            let _ = system::write_at(&self.file, &self.sidecar, &whole, NAME_WIDTH as u64);
        }
    }

    /// When abandoned temporary files were last removed, by any process.
    pub(crate) fn swept(&self) -> Option<SystemTime> {
        self.swept
    }

    /// Records that they were removed now.
    pub(crate) fn set_swept(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let text = format!(
            "{:1$}\n",
            since.unwrap_or_default().as_secs(),
            SWEPT_WIDTH - 1
        );
        let offset = NAME_WIDTH + LABEL_WIDTH;
        let _ = system::write_at(&self.file, &self.sidecar, text.as_bytes(), offset as u64);
    }

    /// The lock, if the locked file still has the name `sidecar`. It may have been removed (`git clean -X`)
    /// between our open and our lock; others would then lock the new file.
    fn held(
        file: File,
        opened: &Metadata,
        sidecar: &Path,
        holder: &str,
    ) -> Result<Option<Self>, FileError> {
        let Some(named) = still_named(opened, sidecar)? else {
            return Ok(None);
        };
        let mut head = [0; NAME_WIDTH + LABEL_WIDTH + SWEPT_WIDTH];
        let size = system::read_at(&file, &mut head, 0).unwrap_or(0);
        let head = head.get(..size).unwrap_or_default();
        let name = padded(holder);
        let age = named.modified().ok().and_then(|at| at.elapsed().ok());
        if !head.starts_with(&name) || age.is_none_or(|age| age >= NAME_AGE) {
            // The name is for people. A full disk must not prevent locking, so this write may fail. It is not
            // synced, because it is only valid while its writer lives.
            let _ = system::write_at(&file, sidecar, &name, 0);
        }
        Ok(Some(Self {
            label: label_in(head),
            swept: swept_in(head),
            file,
            sidecar: sidecar.to_path_buf(),
        }))
    }
}

fn swept_in(head: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(head.get(NAME_WIDTH + LABEL_WIDTH..)?).ok()?;
    let since = Duration::from_secs(text.trim().parse().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

fn label_in(head: &[u8]) -> Option<String> {
    let label = head.get(NAME_WIDTH..)?;
    let label = label.split(|byte| *byte == b'\n').next()?;
    let label = std::str::from_utf8(label).ok()?;
    (!label.is_empty()).then(|| label.to_owned())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Unlock explicitly instead of by closing: a child process that another thread is just starting may
        // hold a copy of the descriptor, which would keep the lock until its exec.
        let _ = self.file.unlock();
    }
}

fn open(sidecar: &Path) -> Result<(File, Metadata), FileError> {
    // On other systems an open follows a link.
    #[cfg(not(unix))]
    super::resolve::refuse_strange(sidecar)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut open = || system::open_plain(&mut options, Operation::Create, sidecar);
    let opened = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder_durably(parent_of(sidecar))?;
            open()
        }
        // The file was created by another user. It can still be locked, but our name cannot be written.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut options = OpenOptions::new();
            system::open_plain(options.read(true), Operation::Open, sidecar).map_err(|_| error)
        }
        opened => opened,
    };
    let file = match opened {
        Err(error) if system::is_not_plain(&error) => return Err(not_plain(sidecar)),
        opened => opened.map_err(FileError::on(Operation::Open, sidecar))?,
    };
    let found = system::metadata_of(&file, sidecar);
    let found = found.map_err(FileError::on(Operation::Inspect, sidecar))?;
    if is_plain(&found) {
        Ok((file, found))
    } else {
        Err(not_plain(sidecar))
    }
}

fn try_lock(file: &File, sidecar: &Path) -> Result<bool, FileError> {
    let locked = seam::call(Operation::Lock, sidecar, || match file.try_lock() {
        Err(TryLockError::Error(error)) => Err(error),
        locked => Ok(locked),
    });
    match locked.unwrap_or_else(|error| Err(TryLockError::Error(error))) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if has_no_locks(&error) => Err(FileError::NoLocks {
            path: sidecar.to_path_buf(),
            source: error,
        }),
        Err(TryLockError::Error(error)) => Err(FileError::io(Operation::Lock, sidecar, error)),
    }
}

/// Whether the file system has no locks (`ENOLCK`, `ENOTSUP`, `ENOSYS`).
fn has_no_locks(error: &io::Error) -> bool {
    const ENOLCK: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };
    error.kind() == io::ErrorKind::Unsupported
        || (cfg!(unix) && error.raw_os_error() == Some(ENOLCK))
}

/// The metadata of the file named `sidecar`, if that is still the locked file.
fn still_named(locked: &Metadata, sidecar: &Path) -> Result<Option<Metadata>, FileError> {
    // A link may have replaced it since it was opened.
    let named = look_plain(sidecar)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |found: &Metadata| (found.dev(), found.ino());
        Ok(named.filter(|named| id(named) == id(locked)))
    }
    // On other systems an open file cannot be deleted.
    #[cfg(not(unix))]
    {
        Ok(Some(named.unwrap_or_else(|| locked.clone())))
    }
}

/// The name of a holder, padded or cut to the fixed width.
fn padded(holder: &str) -> [u8; NAME_WIDTH] {
    let mut name = [b' '; NAME_WIDTH];
    name[NAME_WIDTH - 1] = b'\n';
    let end = (0..NAME_WIDTH)
        .rev()
        .find(|&end| holder.is_char_boundary(end.min(holder.len())))
        .map_or(0, |end| end.min(holder.len()));
    for (to, from) in name.iter_mut().zip(holder.as_bytes().iter().take(end)) {
        *to = *from;
    }
    name
}

/// The process id in a holder's name: `process 123`, or `builder (process 123)`. A name that was cut has none.
pub(crate) fn pid_of(holder: Option<&str>) -> Option<u32> {
    let holder = holder?;
    let named = holder
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('));
    let process = named.map_or(holder, |(_, process)| process);
    process.strip_prefix("process ")?.parse().ok()
}

/// The name that the holder wrote, and how long ago.
fn read_holder(file: &File) -> (Option<String>, Option<Duration>) {
    let mut name = [0; NAME_WIDTH];
    // On Windows only the holder can read a locked file, so there is no name.
    let Ok(size) = system::read_at(file, &mut name, 0) else {
        return (None, None);
    };
    // The text may be printed to a terminal, so it must not contain control characters.
    let text: String = String::from_utf8_lossy(name.get(..size).unwrap_or_default())
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let text = text.trim();
    if text.is_empty() {
        return (None, None);
    }
    let since = file.metadata().and_then(|found| found.modified()).ok();
    let held_for = since.and_then(|since| SystemTime::now().duration_since(since).ok());
    (Some(text.to_owned()), held_for)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn threads_exclude_each_other_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("a.lock");
        let inside = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for n in 0..4 {
                let (sidecar, inside, done) = (&sidecar, &inside, &done);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let holder = format!("thread {n}");
                        let lock =
                            Lock::acquire(sidecar, Duration::from_secs(60), &holder).unwrap();
                        assert_eq!(
                            inside.fetch_add(1, Ordering::SeqCst),
                            0,
                            "two held it at once"
                        );
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 200);
        assert!(sidecar.is_file(), "the sidecar stays");
    }

    #[test]
    fn the_deadline_ends_the_wait_and_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("a.lock");
        let long = "a much longer name that must leave no tail behind";
        drop(Lock::acquire(&sidecar, Duration::ZERO, long).unwrap());
        let held = Lock::acquire(&sidecar, Duration::ZERO, "pid 7 agent builder").unwrap();
        let deadline = Duration::from_millis(150);
        let started = Instant::now();
        let error = Lock::acquire(&sidecar, deadline, "pid 8").unwrap_err();
        let took = started.elapsed();
        assert!(took >= deadline, "{took:?}");
        assert!(took < deadline + Duration::from_secs(2), "{took:?}");
        match &error {
            FileError::Locked {
                lock,
                waited,
                holder,
                held_for,
            } => {
                assert_eq!(lock, &sidecar);
                assert!(*waited >= deadline, "{waited:?}");
                if cfg!(unix) {
                    assert_eq!(holder.as_deref(), Some("pid 7 agent builder"));
                    assert!(held_for.is_some_and(|held| held >= Duration::from_millis(100)));
                }
            }
            other => panic!("{other:?}"),
        }
        assert!(Lock::acquire(&sidecar, Duration::ZERO, "pid 8").is_err());
        drop(held);
        assert!(Lock::acquire(&sidecar, Duration::ZERO, "pid 8").is_ok());
    }

    #[test]
    fn no_deadline_means_one_try() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("a.lock");
        let _held = Lock::acquire(&sidecar, Duration::ZERO, "one").unwrap();
        let started = Instant::now();
        Lock::acquire(&sidecar, Duration::ZERO, "two").unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn the_folder_is_created_and_ours_is_ignored_by_git() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("store/.agent-checkpoint/locks/a.lock");
        let _lock = Lock::acquire(&sidecar, Duration::ZERO, "one").unwrap();
        let ignore = folder.path().join("store/.agent-checkpoint/.gitignore");
        assert!(fs::read(ignore).unwrap().starts_with(b"*\n"));
    }

    #[test]
    fn a_long_or_odd_name_is_cut_at_a_character() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("a.lock");
        let name = "ä\u{1b}[2J".to_owned() + &"é".repeat(200);
        let _held = Lock::acquire(&sidecar, Duration::ZERO, &name).unwrap();
        assert_eq!(fs::metadata(&sidecar).unwrap().len(), NAME_WIDTH as u64);
        if cfg!(unix) {
            let (holder, _) = read_holder(&File::open(&sidecar).unwrap());
            let holder = holder.unwrap();
            assert!(holder.starts_with("ä [2Jé"), "{holder}");
            assert!(holder.ends_with('é'), "{holder}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_waiter_on_a_deleted_sidecar_takes_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = folder.path().join("a.lock");
        let held = Lock::acquire(&sidecar, Duration::ZERO, "one").unwrap();
        thread::scope(|scope| {
            let waiter =
                scope.spawn(|| Lock::acquire(&sidecar, Duration::from_secs(60), "two").unwrap());
            thread::sleep(Duration::from_millis(50));
            fs::remove_file(&sidecar).unwrap();
            drop(held);
            let lock = waiter.join().unwrap();
            assert!(sidecar.is_file(), "the waiter holds a file that has a name");
            assert!(Lock::acquire(&sidecar, Duration::ZERO, "three").is_err());
            drop(lock);
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_sidecar_that_is_anothers_file_is_refused_and_not_written_into() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let link = folder.path().join("link.lock");
        std::os::unix::fs::symlink("victim", &link).unwrap();
        let second = folder.path().join("second.lock");
        std::fs::hard_link(&victim, &second).unwrap();
        for sidecar in [&link, &second, &folder.path().to_path_buf()] {
            let error = Lock::acquire(sidecar, Duration::ZERO, "me").unwrap_err();
            assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }
}
