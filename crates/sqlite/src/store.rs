//! The store: documents, dropped items and claims.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::store::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, DeleteOptions, Exclusive,
    Heartbeat, History, Keep, LedgerLines, LedgerMark, Listed, ListedLedger, Outcome, Page, Put,
    Query, Recover, Saved, Stored, check_expected, check_ledger_line, check_size,
};
use agent_checkpoint::{Claim, Clock, Dropped, Expect, Fence, Key, Result, Revision, SystemClock};
use chrono::{DateTime, Utc};
use rusqlite::Connection;

use crate::database::Database;
use crate::failure::Step;
use crate::rows::{self, KeyRow, Wanted};

/// A store in one SQLite database.
///
/// A clone shares the store. Threads and processes may use one file at the same time, each with its own store or a
/// clone.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) database: Arc<Database>,
    clock: Arc<dyn Clock>,
    pub(crate) keep: Keep,
    pub(crate) max_bytes: u64,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("database", &self.database)
            .field("keep", &self.keep)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the database in the file at `path`, and creates it if it is missing. Its folder must exist.
    ///
    /// # Errors
    ///
    /// If the file is not a database, belongs to another program, or cannot be written; the error names the file and
    /// the next step. [`ErrorKind::Locked`](agent_checkpoint::ErrorKind::Locked) if another program keeps it locked.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore> {
        let store = SqliteStore::of(Database::new(path.as_ref(), false)?);
        store.database.prepare()?;
        Ok(store)
    }

    /// Opens the database for reading only. No file is created, and every write fails with
    /// [`ErrorKind::ReadOnly`](agent_checkpoint::ErrorKind::ReadOnly). A missing database reads as an empty one.
    ///
    /// # Errors
    ///
    /// If `path` is relative and there is no working folder. Any other problem is reported by the first read.
    pub fn read_only(path: impl AsRef<Path>) -> Result<SqliteStore> {
        Ok(SqliteStore::of(Database::new(path.as_ref(), true)?))
    }

    fn of(database: Database) -> SqliteStore {
        SqliteStore {
            database: Arc::new(database),
            clock: Arc::new(SystemClock),
            keep: Keep::default(),
            max_bytes: 16 << 20,
        }
    }

    /// Takes the time of claims and saves from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how much history is kept. The default is the newest ten states of each checkpoint.
    #[must_use]
    pub fn with_history(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the largest document that is read or written, in bytes. The default is 16 MiB.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long a call of this store or a clone waits for other writers. The default is 10 s.
    #[must_use]
    pub fn with_lock_timeout(self, timeout: Duration) -> Self {
        self.database.set_lock_timeout(timeout);
        self
    }

    /// The file of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub(crate) fn find(&self, connection: &Connection, key: &Key, wanted: Wanted) -> Step<KeyRow> {
        KeyRow::find(connection, key, wanted, self.max_bytes)
    }

    pub(crate) fn stored(&self, row: &KeyRow) -> Result<Option<Stored>> {
        row.present()
            .map(|state| state.stored(self.max_bytes))
            .transpose()
    }

    pub(crate) fn read<T: Default>(
        &self,
        key: &Key,
        work: impl Fn(&Connection) -> Step<T>,
    ) -> Result<T> {
        let read = self.database.read(work);
        read.map_err(|error| error.with_key(key))
    }

    pub(crate) fn write<T>(
        &self,
        key: &Key,
        work: impl FnOnce(&Connection) -> Step<T>,
    ) -> Result<T> {
        let written = self.database.write(work);
        written.map_err(|error| error.with_key(key))
    }

    /// Checks the fence of a writer.
    pub(crate) fn check_fence(&self, row: &KeyRow, fence: Option<Fence>) -> Result<()> {
        Claim::check(row.claim()?.as_ref(), fence, self.now())
    }

    /// A key of a page, with its document while `room` (in bytes) lasts.
    fn listed(&self, key: Key, row: &KeyRow, room: &mut u64) -> Listed {
        let mut listed = Listed::from(key);
        listed.ledger = row
            .ledger
            .map_or(ListedLedger::Unknown, ListedLedger::of_lines);
        listed.version = row.version();
        let present = row.present();
        let Some(left) = present.and_then(|present| room.checked_sub(present.bytes)) else {
            return listed;
        };
        // If one of them cannot be read, `load` reports the error.
        match (self.stored(row), row.claim()) {
            (Ok(Some(stored)), Ok(claim)) => {
                *room = left;
                listed.with_content(stored, claim)
            }
            _ => listed,
        }
    }

    fn save(
        &self,
        connection: &Connection,
        key: &Key,
        mut row: KeyRow,
        present: Option<&Stored>,
        put: &Put,
    ) -> Step<Saved> {
        check_expected(key, put.expect(), present)?;
        self.check_fence(&row, put.fence())?;
        let text = put.document().text();
        check_size(text, self.max_bytes)?;
        let mut saved = put.saved(present);
        if saved.outcome == Outcome::Unchanged {
            return Ok(saved);
        }
        let id = row.id(connection, key)?;
        // An archive ends the task, although this store keeps no archives.
        if put.begins_task(saved.outcome) {
            rows::clear_dropped(connection, id)?;
            row.end_task();
        }
        if !put.dropped().is_empty() {
            rows::add_dropped(connection, id, put.dropped())?;
            saved.truncation.kept_in = Some(self.path().display().to_string());
        }
        let of = saved.revision.to_string();
        row.fingerprints = put.fingerprints().map(|text| (of, text.to_owned()));
        self.replace(connection, &mut row, id, put.skips_history(), text)?;
        Ok(saved)
    }

    /// Makes a text the present one. The replaced text stays in the history, unless that is skipped.
    pub(crate) fn replace(
        &self,
        connection: &Connection,
        row: &mut KeyRow,
        id: i64,
        skips_history: bool,
        text: &str,
    ) -> Step<()> {
        let loose = row.present().filter(|present| !present.is_pinned);
        let in_place = loose.filter(|_| skips_history).map(|present| present.id);
        row.write(connection, id, in_place, text, &self.keep, self.now())
    }
}

impl CheckpointStore for SqliteStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.read(key, |connection| {
            Ok(self.stored(&self.find(connection, key, Wanted::Present)?)?)
        })
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.write(key, |connection| {
            let row = self.find(connection, key, Wanted::States)?;
            let present = self.stored(&row)?;
            self.save(connection, key, row, present.as_ref(), &put)
        })
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.write(key, |connection| {
            let mut row = self.find(connection, key, Wanted::States)?;
            let present = self.stored(&row)?;
            check_expected(key, options.expect(), present.as_ref())?;
            self.check_fence(&row, options.fence())?;
            let is_there = present.is_some();
            if is_there {
                row.set_absent(connection)?;
                row.prune(connection, None, &self.keep, self.now())?;
            }
            Ok(is_there)
        })
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        let was_there = self.write(key, |connection| {
            let row = self.find(connection, key, Wanted::States)?;
            if *options.expect() != Expect::Any {
                check_expected(key, options.expect(), self.stored(&row)?.as_ref())?;
            }
            let claim = row.claim()?;
            Claim::check_forget(claim.as_ref(), options.fence(), self.now())?;
            row.forget(connection, claim.as_ref())
        })?;
        // Even if there was nothing to remove: an earlier call may have removed the rows and died before this.
        self.database.empty_log()?;
        Ok(was_there)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.database.read(|connection| {
            let prefix = query.prefix.as_deref().unwrap_or_default();
            let after = query.after.as_ref().map_or("", Key::as_str);
            // Ask for one more than is wanted, to see whether there is another page.
            let enough = query
                .limit
                .map_or(usize::MAX, |limit| limit.saturating_add(1));
            let (mut all, mut foreign) = (Vec::new(), Vec::new());
            // Room for one document of the largest size, or for many small ones.
            let mut room = if query.documents { self.max_bytes } else { 0 };
            let only = (query.keys.as_ref(), query.ledgers);
            rows::list(connection, (prefix, after), only, room, |name, row| {
                let is_wanted = name.starts_with(prefix);
                match Key::new(name.as_str()) {
                    _ if !is_wanted => {}
                    Ok(key) => all.push(self.listed(key, &row, &mut room)),
                    Err(_) => foreign.push(name.into()),
                }
                is_wanted && all.len() < enough
            })?;
            let mut page = query.page(all);
            page.foreign = foreign;
            Ok(page)
        })
    }

    fn beside(&self) -> &dyn Beside {
        self
    }

    fn claims(&self) -> Option<&dyn Claims> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn recovery(&self) -> Option<&dyn Recover> {
        Some(self)
    }

    fn heartbeat(&self) -> Option<&dyn Heartbeat> {
        None
    }

    fn changes(&self) -> Option<&dyn Changes> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        let mut offered = Capabilities::none();
        offered.survives_power_loss = true;
        offered.excludes_processes = true;
        offered
    }
}

impl Exclusive for SqliteStore {
    fn with_lock(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        self.write(key, |connection| {
            let row = self.find(connection, key, Wanted::States)?;
            let present = self.stored(&row)?;
            match decide(present.as_ref())? {
                Some(put) => self.save(connection, key, row, present.as_ref(), &put),
                None => Ok(Saved::unchanged(key, present.as_ref())?),
            }
        })
    }
}

impl Beside for SqliteStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.newest_dropped(key, usize::MAX)
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        self.read(key, |connection| rows::dropped(connection, key, most))
    }

    fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
        Ok(None)
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        self.read(key, |connection| {
            let row = self.find(connection, key, Wanted::Present)?;
            let of_it = row
                .fingerprints
                .filter(|(of, _)| *of == revision.to_string());
            Ok(of_it.map(|(_, fingerprints)| fingerprints))
        })
    }

    fn document_file(&self, _: &Key) -> Option<PathBuf> {
        Some(self.path().to_path_buf())
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        self.read(key, |connection| {
            LedgerLines::since(mark, |from| rows::ledger(connection, key, from))
        })
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        check_ledger_line(line).map_err(|error| error.with_key(key))?;
        self.write(key, |connection| {
            let mut row = self.find(connection, key, Wanted::Present)?;
            self.check_fence(&row, fence)?;
            let end = match row.id {
                Some(id) => rows::end_of_ledger(connection, id)?,
                None => 0,
            };
            let is_next = usize::try_from(end) == Ok(at);
            if is_next {
                let id = row.id(connection, key)?;
                rows::add_to_ledger(connection, id, line, end)?;
            }
            Ok(is_next)
        })
    }
}

impl Claims for SqliteStore {
    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let names = self.database.read(rows::claimed_without_document)?;
        let mut keys: Vec<Key> = names
            .into_iter()
            .filter_map(|it| Key::new(it).ok())
            .collect();
        keys.sort();
        Ok(keys)
    }

    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.write(key, |connection| {
            let mut row = self.find(connection, key, Wanted::Present)?;
            let claim = match row.claim() {
                // A take-over may replace any claim, even one that cannot be read.
                Err(_) if change.takes_over() => {
                    let mut claim = change.apply(None, self.now())?;
                    claim.fence = row.next_fence();
                    claim
                }
                last => change.apply(last?.as_ref(), self.now())?,
            };
            let id = row.id(connection, key)?;
            rows::set_claim(connection, id, &claim)?;
            Ok(claim)
        })
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.read(key, |connection| {
            Ok(self.find(connection, key, Wanted::Present)?.claim()?)
        })
    }
}
