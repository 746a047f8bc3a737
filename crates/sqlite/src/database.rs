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

/// What marks a database as one of ours (`PRAGMA application_id`): "ACKP".
const APPLICATION: i64 = 0x4143_4b50;

/// The steps from an empty database to the present layout. `PRAGMA user_version` is the number of those that were made.
/// A step that was published never changes.
const LAYOUT: [&str; 2] = [include_str!("layout.sql"), include_str!("ledger.sql")];

/// How long a path and the name at its end may be, so that SQLite has room for the endings of what it keeps beside it.
const PATH_BYTES: usize = 504;
const NAME_BYTES: usize = 247;

/// At each multiple of this many bytes the log is begun anew, although there are readers. SQLite does so by itself at a quarter,
/// when nobody reads.
const LOG_BYTES: u64 = 16 << 20;

/// How long that waits for the readers.
const LOG_PATIENCE: Duration = Duration::from_millis(250);

/// How long a writer or reader waits where nothing else is said.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A database, with its connections.
///
/// Each call has a connection of its own, so a reader never waits for a writer.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    is_read_only: bool,
    lock_timeout: AtomicU64,
    /// As many as were in use at once.
    idle: Mutex<Vec<Open>>,
    /// Those of all connections that are open now.
    files: Mutex<Weak<Files>>,
    turn: Turn,
    /// The length of the log after the last write, or when a connection was made.
    known_log_bytes: AtomicU64,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    connection: Connection,
    deadline: Deadline,
    files: Arc<Files>,
}

/// How the names of the files end: the database, its log, and the index of that.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// Which files these were when a connection was made.
type Files = [Option<FileId>; ENDINGS.len()];

/// A device and the number of a file on it.
type FileId = (u64, u64);

/// Where the files of a connection are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the path.
    Here,
    /// No longer at the path; what is there is whole.
    Gone,
    /// There is another database at the path, and beside it the log of this one.
    Replaced,
    /// The database is at the path, and what was beside it is not.
    Lost(&'static str),
}

/// Until when a connection waits for the locks of others.
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
        // Rounded up: it is not given up before the time.
        let millis = u64::try_from(millis + 1).unwrap_or(u64::MAX);
        self.millis.store(millis, Ordering::Relaxed);
    }

    fn has_passed(&self) -> bool {
        self.epoch.elapsed() >= Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    /// Waits a little, as often as it is called before the deadline. Short waits, since between two saves of a busy
    /// writer there is little time to get in; `false` when it is time to give up.
    fn wait(&self, times: u32) -> bool {
        if self.has_passed() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200 << times.min(3)));
        true
    }
}

impl Database {
    /// A database in this file, which need not be there yet.
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

    /// Makes the database, if it is not there, and looks whether it can be used.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.within_timeout(|until| {
            let open = self.connect(until)?;
            self.give_back(open);
            Ok(())
        })
    }

    /// Reads. What is not there reads as empty. `work` may run more than once.
    pub(crate) fn read<T: Default>(&self, work: impl Fn(&Connection) -> Step<T>) -> Result<T> {
        self.within_timeout(|until| {
            loop {
                let is_at_rest = self.is_read_only && self.is_at_rest();
                let found = self.read_once(is_at_rest, until, &work);
                // Whoever took it as unchanging while a writer came has seen anything.
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
        // One that only reads may find a database that another program is just making.
        let read = |connection: &Connection| match self.is_read_only && layout(connection)? == 0 {
            true => Ok(T::default()),
            false => work(connection),
        };
        if is_at_rest {
            return read(&self.open_at_rest()?);
        }
        let mut open = self.lend(until)?;
        // All of it is of one state of the database.
        let found = open
            .connection
            .transaction()
            .map_err(Failure::from)
            .and_then(|transaction| read(&transaction));
        self.give_back(open);
        found
    }

    /// Writes, as one step that no other writer comes between, and that is on the disk when this returns. Nothing is
    /// written if `work` fails.
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
        // Dropped without a commit it is rolled back.
        let transaction = Transaction::new(&mut open.connection, TransactionBehavior::Immediate)?;
        let number = layout_number(&transaction)?;
        refuse_newer(number).map_err(|error| about(&transaction, error))?;
        let done = work(&transaction)?;
        // It has waited for other writers, and `work` takes its time.
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
            // With a reader that stays it is tried again later.
            let _or_not = open.connection.query_row(begin_anew, [], |_| Ok(()));
        }
        Ok(done)
    }

    /// Moves what is in the log into the database, and cuts the log to nothing: what was removed there is in neither then.
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
                // A reader of an older state still needs it.
                true => Err(locked(began.elapsed()).with_path(&self.path).into()),
            }
        })
    }

    fn within_timeout<T>(&self, work: impl FnOnce(Instant) -> Step<T>) -> Result<T> {
        let began = Instant::now();
        let timeout = Duration::from_millis(self.lock_timeout.load(Ordering::Relaxed));
        let until = began.checked_add(timeout);
        // A time that no clock reaches is for ever.
        let until = until.unwrap_or_else(|| began + Duration::from_secs(u32::MAX.into()));
        work(until).map_err(|failure| failure.into_error(&self.path, began.elapsed()))
    }

    /// A connection to the file that is there now.
    fn lend(&self, until: Instant) -> Step<Open> {
        loop {
            let idle = self.idle().pop();
            let Some(open) = idle else {
                return self.connect(until);
            };
            // One to a file that was removed or replaced would go on in a file that nobody finds.
            let place = self.place(&open.connection, &open.files)?;
            match place {
                Place::Here => {
                    open.deadline.set(until);
                    return Ok(open);
                }
                Place::Gone => continue,
                // It stays, and knows the old log also next time.
                Place::Replaced => self.give_back(open),
                Place::Lost(_) => {
                    self.give_back(open);
                    self.end_idle();
                }
            }
            return Err(self.misplaced(place).into());
        }
    }

    /// Keeps a connection for the next call, unless something in it could not be ended.
    fn give_back(&self, open: Open) {
        if open.connection.is_autocommit() {
            self.idle().push(open);
        }
    }

    /// Ends the connections that lost their log. The last one moves what is in it into the database, unless others have
    /// begun one at the path: what they wrote is newer.
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

    /// Whether the log at the path is that of a connection, and there is something in it.
    fn has_log_of(&self, then: &Files) -> bool {
        let now = self.files_now();
        then[1].is_some() && now[1] == then[1] && self.log_bytes() > 0
    }

    /// The error where a connection is not at its place.
    fn misplaced(&self, place: Place) -> Error {
        let error = match place {
            Place::Here | Place::Gone => other(
                "replaced",
                "was moved or removed in the middle of a write; nothing was written, try again",
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
        // A list of connections is whole whenever a panic comes, so a poisoned lock is no harm.
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
        // Those that are in use show no longer what is at the path.
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
        // SQLite opens what it may not write for reading.
        if !self.is_read_only && connection.is_readonly("main")? {
            return Err(write_protected().with_path(&self.path).into());
        }
        let is_writer = !self.is_read_only && found <= LAYOUT.len() as i64;
        if is_writer {
            self.use_log(&connection, &deadline)?;
            // Only then: it would wait for a writer.
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

    /// The files beside the database. What was found in the log may be from a writer that was killed before its sync, and
    /// its name from one that was killed before it synced that: they are synced before anything is built on them. While
    /// there is another connection, they have been.
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

    /// Writes go to a log first (`-wal`), and each is synced there before it is acknowledged.
    fn use_log(&self, connection: &Connection, deadline: &Deadline) -> Step<()> {
        let mode = loop {
            let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
                row.get::<_, String>(0)
            });
            // Where two make the database at once, SQLite calls no busy handler.
            match mode.map_err(Failure::from) {
                Err(failure) if failure.is_busy() && deadline.wait(u32::MAX) => {}
                mode => break mode?,
            }
        };
        if mode != "wal" {
            let message = "lies on a file system on which SQLite can keep no log that processes share, such as one of a \
                           network; name a place on a local disk";
            return Err(other("no-locks", message).into());
        }
        connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; \
             PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON",
        )?;
        // A log that stays is shortened to this at times, and emptied when the last program ends: what is in it would be read
        // as part of a copy that is put in the place of the database.
        let limit = LOG_BYTES / 2;
        connection.execute_batch(&format!("PRAGMA journal_size_limit = {limit}"))?;
        // It stays when the last program ends: one that only reads needs it, and must not make it.
        let mut is_kept = 1;
        connection.file_control(Some("main"), FileControl::PersistWal(&mut is_kept))?;
        // In a database that had no log before, it is made by the next read.
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
        // Nor is the folder's own name known to be on the disk.
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

    /// Whether nobody writes: a writer makes its log before anything else. Then the file can be read as it is, and nothing
    /// need be made beside it.
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

    /// Makes the file, where there is none, with the rights that its user gives to new files. SQLite would let nobody else
    /// write it, and gives those of the file to what it keeps beside it.
    fn make(&self) -> Result<()> {
        // SQLite's locks on a file end when its own process closes that file anywhere: another thread opens it after that.
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

    /// Refuses what SQLite does not open, or not as one database, and gives no reason for.
    fn refuse_unfit(&self) -> Result<()> {
        let length = |name: &std::ffi::OsStr| name.len();
        let is_too_long = length(self.path.as_os_str()) > PATH_BYTES
            || self.path.file_name().map_or(0, length) > NAME_BYTES;
        if cfg!(unix) && is_too_long {
            let message = format!(
                "SQLite takes no path of more than {PATH_BYTES} bytes, and of no more than {NAME_BYTES} for the name at its end; \
                 name a shorter one"
            );
            return Err(other("path-too-long", message).with_path(&self.path));
        }
        // To open one that is no file, such as a pipe, might wait for ever.
        if self.path.exists() && !self.path.is_file() {
            let message = "is no file; name the file that is to be the database";
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

    /// A file that SQLite keeps beside the database.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }
}

/// The file that a path leads to, for SQLite keeps its log beside that, and not beside a link. Absolute, since SQLite gives
/// some relative paths a meaning of their own.
fn resolve(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path);
    };
    match (std::fs::canonicalize(&path), std::fs::read_link(&path)) {
        (Ok(found), _) => Ok(found),
        // It leads nowhere.
        (Err(error), Ok(_)) => Err(error),
        (Err(_), Err(_)) => {
            let folder = std::fs::canonicalize(folder);
            Ok(folder.map_or_else(|_| path.clone(), |folder| folder.join(name)))
        }
    }
}

/// Whether the file has several names: SQLite keeps a log for each, so what one writes the other does not see.
#[cfg(unix)]
fn has_several_names(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

#[cfg(not(unix))]
fn has_several_names(_: &Path) -> bool {
    false
}

/// Which layout a database has; 0 where it is empty. One of another program is an error.
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

/// The error, with the file that the connection has open.
fn about(connection: &Connection, error: Error) -> Error {
    error.with_path(connection.path().unwrap_or_default())
}

/// How many of the steps to the present layout were made.
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

/// Brings the tables to the present layout, all at once. Of several programs that do so at the same time, the others find it
/// done.
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

/// Takes back what a commit wrote that failed. It may lie whole in the log, where the next program would find it: any page
/// that is written over its first one ends that.
fn take_back(connection: &Connection, number: i64, failed: rusqlite::Error) -> Failure {
    let taken_back = connection.pragma_update(None, "user_version", number);
    let code = failed.sqlite_error().map(|error| error.extended_code);
    // What could not be written lacks its end, and does not count.
    let is_cut = failed.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_WRITE);
    if taken_back.is_ok() || is_cut {
        return failed.into();
    }
    about(connection, Error::new(ErrorKind::NotDurable))
        .with_source(failed)
        .into()
}

/// Whether the file of a connection is no longer where it was.
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

/// Elsewhere an open file cannot be removed.
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
        // A file system without a sync for folders: nothing better can be done there.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Elsewhere a folder cannot be synced.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// How SQLite is told to take a file as one that nobody changes. All but plain letters is escaped.
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
