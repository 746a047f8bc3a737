//! The database file: how it is opened, laid out, and shared by threads and processes.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use agent_checkpoint::{Error, ErrorKind, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, FileControl, OpenFlags, Transaction, TransactionBehavior};

use crate::failure::{Failure, Step, cannot_make, locked, other, write_protected};
use crate::turn::Turn;

/// The `PRAGMA application_id` of our databases: "ACKP".
const APPLICATION: i64 = 0x4143_4b50;

/// The migrations from an empty database to the present layout. `PRAGMA user_version` counts those that were applied. A
/// published migration never changes.
const LAYOUT: [&str; 2] = [include_str!("layout.sql"), include_str!("ledger.sql")];

/// The longest path, and the longest file name, in bytes. They leave room for the suffixes of the files that SQLite
/// creates beside the database.
const PATH_BYTES: usize = 504;
const NAME_BYTES: usize = 247;

/// Each time the log reaches a multiple of this many bytes, it is restarted even if there are readers. SQLite restarts
/// it by itself at a quarter of this size, but only while no reader is active.
const LOG_BYTES: u64 = 16 << 20;

/// How long a restart of the log waits for readers.
const LOG_PATIENCE: Duration = Duration::from_millis(250);

/// How long a call waits for a lock by default.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A database and its connections.
///
/// Each call has its own connection, so a reader never waits for a writer.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    is_read_only: bool,
    lock_timeout: AtomicU64,
    /// Idle connections, as many as were ever in use at the same time.
    idle: Mutex<Vec<Open>>,
    /// The files that all open connections use.
    files: Mutex<Weak<Files>>,
    turn: Turn,
    /// The length of the log after the last write, or when the newest connection was opened.
    known_log_bytes: AtomicU64,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    connection: Connection,
    deadline: Deadline,
    files: Arc<Files>,
}

/// The suffixes of the three files: the database, its log (WAL), and the index of the log.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// The identity of the three files when a connection was opened.
type Files = [Option<FileId>; ENDINGS.len()];

/// A device and an inode number.
type FileId = (u64, u64);

/// Whether the files of a connection are still at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All of them are at the path.
    Here,
    /// The database is no longer at the path. A new file at the path, if any, is not affected by this connection's log.
    Gone,
    /// Another database is at the path, but the log of this one still lies beside it.
    Replaced,
    /// The database is at the path, but the file with this suffix beside it was removed or replaced.
    Lost(&'static str),
}

/// The time until which a connection waits for locks of other connections.
#[derive(Clone, Debug)]
struct Deadline {
    epoch: Instant,
    millis: Arc<AtomicU64>,
}

impl Deadline {
    fn new(until: Instant) -> Self {
        let deadline = Deadline {
            epoch: Instant::now(),
            millis: Arc::default(),
        };
        deadline.set(until);
        deadline
    }

    fn set(&self, until: Instant) {
        let millis = until.saturating_duration_since(self.epoch).as_millis();
        // Rounded up, so that a wait never ends early.
        let millis = u64::try_from(millis + 1).unwrap_or(u64::MAX);
        self.millis.store(millis, Ordering::Relaxed);
    }

    fn has_passed(&self) -> bool {
        self.epoch.elapsed() >= Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    /// Sleeps briefly; returns `false` once the deadline has passed. The sleeps are short because a busy writer leaves
    /// little time between two saves.
    fn wait(&self, times: u32) -> bool {
        if self.has_passed() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200 << times.min(3)));
        true
    }
}

impl Database {
    /// A database in the file at `path`, which need not exist yet.
    pub(crate) fn new(path: &Path, is_read_only: bool) -> Result<Self> {
        let resolved = resolve(path);
        let path = resolved
            .map_err(|error| Error::new(ErrorKind::Io).with_path(path).with_source(error))?;
        Ok(Database {
            path,
            is_read_only,
            lock_timeout: AtomicU64::new(LOCK_TIMEOUT.as_millis() as u64),
            idle: Mutex::default(),
            files: Mutex::default(),
            turn: Turn::default(),
            known_log_bytes: AtomicU64::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn set_lock_timeout(&self, timeout: Duration) {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.lock_timeout.store(millis, Ordering::Relaxed);
    }

    /// Creates the database if it does not exist, and checks that it can be used.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.within_timeout(|until| {
            let open = self.connect(until)?;
            self.give_back(open);
            Ok(())
        })
    }

    /// Reads. A missing database or table reads as `T::default()`. `work` may run more than once.
    pub(crate) fn read<T: Default>(&self, work: impl Fn(&Connection) -> Step<T>) -> Result<T> {
        self.within_timeout(|until| {
            loop {
                let is_at_rest = self.is_read_only && self.is_at_rest();
                let found = self.read_once(is_at_rest, until, &work);
                // If a writer came while the file was read as immutable, the result may be wrong: read again.
                if !is_at_rest || self.is_at_rest() {
                    return found;
                }
            }
        })
    }

    fn read_once<T: Default>(
        &self,
        is_at_rest: bool,
        until: Instant,
        work: impl Fn(&Connection) -> Step<T>,
    ) -> Step<T> {
        let failed = |error| {
            Error::new(ErrorKind::Io)
                .with_path(&self.path)
                .with_source(error)
        };
        if self.is_read_only && !self.path.try_exists().map_err(failed)? {
            return Ok(T::default());
        }
        // A read-only store may find a database that another program is just creating.
        let read = |connection: &Connection| match self.is_read_only && layout(connection)? == 0 {
            true => Ok(T::default()),
            false => work(connection),
        };
        if is_at_rest {
            return read(&self.open_at_rest()?);
        }
        let mut open = self.lend(until)?;
        // One transaction, so that all of it is read from one state of the database.
        let found = open
            .connection
            .transaction()
            .map_err(Failure::from)
            .and_then(|transaction| read(&transaction));
        self.give_back(open);
        found
    }

    /// Writes in one transaction, which is synced to disk when this returns. Nothing is written if `work` fails.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Connection) -> Step<T>) -> Result<T> {
        if self.is_read_only {
            return Err(Error::new(ErrorKind::ReadOnly).with_path(&self.path));
        }
        self.within_timeout(|until| {
            let began = Instant::now();
            let Some(_held) = self.turn.wait(until) else {
                return Err(locked(began.elapsed()).with_path(&self.path).into());
            };
            let mut open = self.lend(until)?;
            let written = self.in_transaction(&mut open, work);
            self.give_back(open);
            written
        })
    }

    fn in_transaction<T>(
        &self,
        open: &mut Open,
        work: impl FnOnce(&Connection) -> Step<T>,
    ) -> Step<T> {
        // A transaction that is dropped without a commit is rolled back.
        let transaction = Transaction::new(&mut open.connection, TransactionBehavior::Immediate)?;
        let number = layout_number(&transaction)?;
        refuse_newer(number).map_err(|error| about(&transaction, error))?;
        let done = work(&transaction)?;
        // Check the files again: the transaction waited for other writers, and `work` took time.
        match self.place(&transaction, &open.files)? {
            Place::Here => {}
            place => return Err(self.misplaced(place).into()),
        }
        if let Err(failed) = transaction.commit() {
            return Err(take_back(&open.connection, number, failed));
        }
        let bytes = self.log_bytes();
        let before = self.known_log_bytes.swap(bytes, Ordering::Relaxed);
        if bytes / LOG_BYTES > before / LOG_BYTES {
            open.deadline.set(Instant::now() + LOG_PATIENCE);
            let begin_anew = "PRAGMA wal_checkpoint(RESTART)";
            // Best effort: if a reader stays, a later write tries again.
            let _or_not = open.connection.query_row(begin_anew, [], |_| Ok(()));
        }
        Ok(done)
    }

    /// Moves the log into the database and truncates it, so that removed data is in neither file.
    pub(crate) fn empty_log(&self) -> Result<()> {
        self.within_timeout(|until| {
            let began = Instant::now();
            let Some(_held) = self.turn.wait(until) else {
                return Err(locked(began.elapsed()).with_path(&self.path).into());
            };
            let open = self.lend(until)?;
            let cut = "PRAGMA wal_checkpoint(TRUNCATE)";
            let is_busy = open.connection.query_row(cut, [], |row| row.get(0));
            self.give_back(open);
            match is_busy? {
                false => self.sync_log(),
                // A reader of an older state still needs the log.
                true => Err(locked(began.elapsed()).with_path(&self.path).into()),
            }
        })
    }

    fn within_timeout<T>(&self, work: impl FnOnce(Instant) -> Step<T>) -> Result<T> {
        let began = Instant::now();
        let timeout = Duration::from_millis(self.lock_timeout.load(Ordering::Relaxed));
        let until = began.checked_add(timeout);
        // A timeout beyond the range of the clock means to wait forever.
        let until = until.unwrap_or_else(|| began + Duration::from_secs(u32::MAX.into()));
        work(until).map_err(|failure| failure.into_error(&self.path, began.elapsed()))
    }

    /// A connection to the file that is at the path now.
    fn lend(&self, until: Instant) -> Step<Open> {
        loop {
            let idle = self.idle().pop();
            let Some(open) = idle else {
                return self.connect(until);
            };
            // A connection to a file that was removed or replaced would write where no other program reads.
            let place = self.place(&open.connection, &open.files)?;
            match place {
                Place::Here => {
                    open.deadline.set(until);
                    return Ok(open);
                }
                Place::Gone => continue,
                // Keep the connection: the next call needs it to recognize the old log.
                Place::Replaced => self.give_back(open),
                Place::Lost(_) => {
                    self.give_back(open);
                    self.end_idle();
                }
            }
            return Err(self.misplaced(place).into());
        }
    }

    /// Returns a connection to the pool, unless a transaction in it could not be ended.
    fn give_back(&self, open: Open) {
        if open.connection.is_autocommit() {
            self.idle().push(open);
        }
    }

    /// Closes the connections that lost their log. The last one to close moves its log into the database, unless other
    /// programs have created a new log at the path: their writes are newer.
    fn end_idle(&self) {
        for open in self.idle().drain(..) {
            let mut pairs = self.files_now().into_iter().zip(*open.files);
            if pairs.any(|(now, then)| now.is_some() && now != then) {
                let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
                let _only_a_flag = open.connection.set_db_config(no_checkpoint, true);
            }
        }
    }

    fn files_now(&self) -> Files {
        ENDINGS.map(|ending| file_id(&self.beside(ending)))
    }

    fn place(&self, connection: &Connection, then: &Files) -> Step<Place> {
        if has_moved(connection)? {
            return Ok(match self.path.exists() && self.has_log_of(then) {
                true => Place::Replaced,
                false => Place::Gone,
            });
        }
        let mut beside = ENDINGS.into_iter().zip(then).skip(1);
        let lost =
            beside.find(|(ending, then)| then.is_some() && file_id(&self.beside(ending)) != **then);
        Ok(lost.map_or(Place::Here, |(ending, _)| Place::Lost(ending)))
    }

    /// Whether the log at the path is the log of this connection and is not empty.
    fn has_log_of(&self, then: &Files) -> bool {
        let now = self.files_now();
        then[1].is_some() && now[1] == then[1] && self.log_bytes() > 0
    }

    /// The error for a connection whose files are not at the path.
    fn misplaced(&self, place: Place) -> Error {
        let error = match place {
            Place::Here | Place::Gone => other(
                "replaced",
                "was moved or removed during a write; nothing was written, try again",
            ),
            Place::Replaced => other(
                "replaced",
                "was replaced while it was open, and the log beside it is of the file before; end all programs that have it \
                 open, remove its `-wal` and `-shm`, and try again",
            ),
            Place::Lost(ending) => other(
                "log-removed",
                format!(
                    "its `{ending}` was removed or replaced while it was open; nothing was written, end all programs that have \
                     it open before the next one"
                ),
            ),
        };
        error.with_path(&self.path)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Open>> {
        // A panic cannot leave the list half changed, so a poisoned lock is harmless.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, until: Instant) -> Step<Open> {
        let access = match self.is_read_only {
            false => OpenFlags::SQLITE_OPEN_READ_WRITE,
            true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        if self.is_read_only && self.beside("-wal").exists() && !self.beside("-shm").exists() {
            return Err(self.unindexed().into());
        }
        self.refuse_unfit()?;
        // The connections in use belong to a file that is no longer at the path.
        let in_use = self
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        let is_other = |then: &Files| self.path.exists() && self.files_now()[0] != then[0];
        if in_use.is_some_and(|then| is_other(&then) && self.has_log_of(&then)) {
            return Err(self.misplaced(Place::Replaced).into());
        }
        if !self.is_read_only {
            self.make()?;
        }
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        let deadline = Deadline::new(until);
        let patience = deadline.clone();
        connection.busy_handler(Some(move |times: i32| patience.wait(times.unsigned_abs())))?;
        let found = layout(&connection)?;
        // SQLite opens a write-protected file for reading.
        if !self.is_read_only && connection.is_readonly("main")? {
            return Err(write_protected().with_path(&self.path).into());
        }
        let is_writer = !self.is_read_only && found <= LAYOUT.len() as i64;
        if is_writer {
            self.use_log(&connection, &deadline)?;
            // Only if needed, because this waits for writers.
            if found < LAYOUT.len() as i64 {
                lay_out(&mut connection)?;
            }
        }
        Ok(Open {
            connection,
            deadline,
            files: self.synced_files(is_writer)?,
        })
    }

    /// The files of the database. A writer that was killed may have left frames in the log, or the log's name, before
    /// it synced them. So both are synced before anything is built on them; another open connection has already done
    /// so.
    fn synced_files(&self, is_writer: bool) -> Step<Arc<Files>> {
        let now = self.files_now();
        let mut known = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = known.upgrade().filter(|files| **files == now) {
            return Ok(files);
        }
        if is_writer {
            self.sync_log()?;
            let bytes = self.log_bytes();
            self.known_log_bytes.store(bytes, Ordering::Relaxed);
        }
        let files = Arc::new(now);
        *known = Arc::downgrade(&files);
        Ok(files)
    }

    /// Turns on write-ahead logging: each write goes to `-wal` and is synced there before it is acknowledged.
    fn use_log(&self, connection: &Connection, deadline: &Deadline) -> Step<()> {
        let mode = loop {
            let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
                row.get::<_, String>(0)
            });
            // SQLite calls no busy handler when two programs create the database at the same time.
            match mode.map_err(Failure::from) {
                Err(failure) if failure.is_busy() && deadline.wait(u32::MAX) => {}
                mode => break mode?,
            }
        };
        if mode != "wal" {
            let message = "is on a file system, such as a network one, on which processes cannot share SQLite's log; \
                           name a place on a local disk";
            return Err(other("no-locks", message).into());
        }
        connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; \
             PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON",
        )?;
        // A log that stays is truncated to this size at times, and to nothing when the last program closes the
        // database. Otherwise its frames would be read as part of a backup that replaces the database.
        let limit = LOG_BYTES / 2;
        connection.execute_batch(&format!("PRAGMA journal_size_limit = {limit}"))?;
        // The log file stays when the last program closes the database, because a read-only store needs it and must not
        // create it.
        let mut is_kept = 1;
        connection.file_control(Some("main"), FileControl::PersistWal(&mut is_kept))?;
        // In a database that had no log before, this read creates it.
        layout_number(connection)?;
        Ok(())
    }

    fn sync_log(&self) -> Step<()> {
        let log = self.beside("-wal");
        let synced = OpenOptions::new()
            .write(true)
            .open(&log)
            .and_then(|log| log.sync_all());
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let synced = synced.and_then(|()| sync_folder(folder));
        // The folder's own name may not be on disk yet either.
        let synced = synced.and_then(|()| match folder.parent().map_or(Ok(()), sync_folder) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        });
        let failed = |error: std::io::Error| {
            let failed = match error.kind() {
                std::io::ErrorKind::PermissionDenied => write_protected(),
                _ => Error::new(ErrorKind::Io),
            };
            failed.with_path(&log).with_source(error)
        };
        Ok(synced.map_err(failed)?)
    }

    /// Whether no writer is active. A writer creates its log first, so without a log the file can be read as it is, and
    /// no file need be created beside it.
    fn is_at_rest(&self) -> bool {
        !self.beside("-wal").exists() && !self.beside("-journal").exists()
    }

    fn open_at_rest(&self) -> Step<Connection> {
        self.refuse_unfit()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        Ok(Connection::open_with_flags(frozen_uri(&self.path), flags)?)
    }

    /// Creates the file if it is missing, with the user's default permissions. SQLite itself would let no other user
    /// write it, and it gives the permissions of the file to the files beside it.
    fn make(&self) -> Result<()> {
        // SQLite's locks on a file end when any part of the process closes that file. So other threads open the
        // database only after this one has closed it.
        static MAKING: Mutex<()> = Mutex::new(());
        let _held = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).open(&self.path);
        match made.map(drop) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(cannot_make(&self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Refuses paths that SQLite cannot open, or not as one database, and for which it gives no reason.
    fn refuse_unfit(&self) -> Result<()> {
        let length = |name: &std::ffi::OsStr| name.len();
        let is_too_long = length(self.path.as_os_str()) > PATH_BYTES
            || self.path.file_name().map_or(0, length) > NAME_BYTES;
        if cfg!(unix) && is_too_long {
            let message = format!(
                "SQLite takes paths of up to {PATH_BYTES} bytes, with up to {NAME_BYTES} bytes for the file name; \
                 name a shorter one"
            );
            return Err(other("path-too-long", message).with_path(&self.path));
        }
        // Opening something else, such as a pipe, might block forever.
        if self.path.exists() && !self.path.is_file() {
            let message = "is not a file; name the file for the database";
            return Err(other("not-a-file", message).with_path(&self.path));
        }
        if has_several_names(&self.path) {
            let message = "has more than one name (hard links), and SQLite keeps a log for each: what is written under one is \
                           lost under the other; make a copy and remove the other names";
            return Err(other("several-names", message).with_path(&self.path));
        }
        Ok(())
    }

    fn unindexed(&self) -> Error {
        let message = "has a log and no index of it (`-shm`), as after a crash of the machine or in a copy; open it once \
                       for writing";
        other("no-index", message).with_path(&self.path)
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.beside("-wal")).map_or(0, |log| log.len())
    }

    /// The path of the database with this suffix: a file that SQLite keeps beside it.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }
}

/// The absolute path of the file, with links followed: SQLite keeps its log beside the file and not beside a link, and
/// it gives some relative paths a meaning of their own.
fn resolve(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path);
    };
    match (std::fs::canonicalize(&path), std::fs::read_link(&path)) {
        (Ok(found), _) => Ok(found),
        // A dangling link.
        (Err(error), Ok(_)) => Err(error),
        (Err(_), Err(_)) => {
            let folder = std::fs::canonicalize(folder);
            Ok(folder.map_or_else(|_| path.clone(), |folder| folder.join(name)))
        }
    }
}

/// Whether the file has hard links. SQLite keeps a log for each name, so a write under one name is not seen under the
/// other.
#[cfg(unix)]
fn has_several_names(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

#[cfg(not(unix))]
fn has_several_names(_: &Path) -> bool {
    false
}

/// The layout number of a database; 0 if it is empty. A database of another program is an error.
fn layout(connection: &Connection) -> Step<i64> {
    let (application, number, tables): (i64, i64, i64) = connection.query_row(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) \
         FROM pragma_application_id, pragma_user_version",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let is_empty = (application, number, tables) == (0, 0, 0);
    match application == APPLICATION || is_empty {
        true => Ok(number),
        false => {
            let message =
                "is a database of another program; nothing was written, name another file";
            Err(about(connection, other("not-a-store", message)).into())
        }
    }
}

/// Adds the path of the connection's file to an error.
fn about(connection: &Connection, error: Error) -> Error {
    error.with_path(connection.path().unwrap_or_default())
}

/// The number of migrations that were applied.
pub(crate) fn layout_number(connection: &Connection) -> Step<i64> {
    let mut statement = connection.prepare_cached("PRAGMA user_version")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

fn refuse_newer(found: i64) -> Result<()> {
    let known = LAYOUT.len() as u64;
    match u64::try_from(found) {
        Ok(found) if found <= known => Ok(()),
        found => Err(Error::new(ErrorKind::NewerLayout {
            found: found.unwrap_or(u64::MAX),
            known,
        })),
    }
}

/// Applies the missing migrations in one transaction. If several programs do so at the same time, one applies them and
/// the others find them applied.
fn lay_out(connection: &mut Connection) -> Step<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let done = usize::try_from(layout(&transaction)?).unwrap_or(usize::MAX);
    let steps = LAYOUT.get(done..).unwrap_or_default();
    for step in steps {
        transaction.execute_batch(step)?;
    }
    if !steps.is_empty() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", LAYOUT.len() as i64)?;
    }
    Ok(transaction.commit()?)
}

/// Undoes a commit that failed. Its frames may lie complete in the log, where the next program would read them as a
/// save. Any page that is written over the first of them prevents that.
fn take_back(connection: &Connection, number: i64, failed: rusqlite::Error) -> Failure {
    let taken_back = connection.pragma_update(None, "user_version", number);
    let code = failed.sqlite_error().map(|error| error.extended_code);
    // A commit whose write failed lacks its last frame and is ignored.
    let is_cut = failed.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_WRITE);
    if taken_back.is_ok() || is_cut {
        return failed.into();
    }
    about(connection, Error::new(ErrorKind::NotDurable))
        .with_source(failed)
        .into()
}

/// Whether the file of a connection is no longer at its path.
#[cfg(unix)]
fn has_moved(connection: &Connection) -> Step<bool> {
    let mut moved = 0;
    connection.file_control(Some("main"), FileControl::HasMoved(&mut moved))?;
    Ok(moved != 0)
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// On other systems an open file cannot be removed.
#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<FileId> {
    None
}

#[cfg(not(unix))]
fn has_moved(_: &Connection) -> Step<bool> {
    Ok(false)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    match std::fs::File::open(folder)?.sync_all() {
        // This file system cannot sync folders; there is nothing better to do.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}

/// On other systems a folder cannot be synced.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// The URI with which SQLite opens a file as immutable. All but plain ASCII characters are escaped.
fn frozen_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    if !path.starts_with("/") {
        uri.push('/');
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => {
                let _fits_in_memory = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri.push_str("?immutable=1");
    uri
}
