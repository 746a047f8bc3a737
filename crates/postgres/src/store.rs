//! The store: documents, dropped items and claims.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_checkpoint::store::{
    Beside, Capabilities, Changes, CheckpointStore, ClaimChange, Claims, DeleteOptions, Exclusive,
    Heartbeat, History, Keep, LedgerLines, LedgerMark, Listener, Outcome, Page, Put, Query,
    Recover, Saved, Stored, check_expected, check_ledger_line, check_size,
};
use agent_checkpoint::{
    Claim, Clock, Dropped, Error, ErrorKind, Expect, Fence, Key, Result, Revision,
};
use chrono::{DateTime, Utc};

use crate::changes::Listening;
use crate::failure::{Step, not_known};
use crate::rows::{self, Change, Fate, KeyRow, Wanted};
use crate::server::{Call, Hand, Server, deciding};

/// The schema of the tables, unless another is named.
pub const SCHEMA: &str = "agent_checkpoint";

/// A store in a PostgreSQL database.
///
/// A clone shares the store. Threads, processes and machines may use one database at the same time, each with its own
/// store or a clone.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) server: Arc<Server>,
    clock: Option<Arc<dyn Clock>>,
    pub(crate) keep: Keep,
    pub(crate) max_bytes: u64,
    notifies: bool,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("server", &self.server)
            .field("keep", &self.keep)
            .field("max_bytes", &self.max_bytes)
            .field("notifies", &self.notifies)
            .finish_non_exhaustive()
    }
}

/// An unanswered write: its connection broke.
struct Unanswered<T> {
    version: i64,
    number: i64,
    /// The result of the call if the write was made.
    value: T,
}

impl PostgresStore {
    /// Connects to a database and creates the tables in the schema `agent_checkpoint` if they are missing.
    ///
    /// `connection` is a URL, `postgres://USER:PASSWORD@HOST/DATABASE`, or `host=HOST user=USER dbname=DATABASE`.
    /// Missing settings are taken from `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE` and
    /// `PGSSLROOTCERT`.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or refuses the connection, if it lacks the encryption or certificate that
    /// `sslmode` requires, or if the schema has tables of another program. The error names the server, without the
    /// password, and the next step.
    pub fn open(connection: &str) -> Result<PostgresStore> {
        PostgresStore::open_in(connection, SCHEMA)
    }

    /// Like [`open`](PostgresStore::open), in another schema. A database can hold any number of stores.
    ///
    /// # Errors
    ///
    /// As for [`open`](PostgresStore::open), and if `schema` has anything but letters, digits and `_`.
    pub fn open_in(connection: &str, schema: &str) -> Result<PostgresStore> {
        let store = PostgresStore::of(Server::new(connection, schema, false)?);
        store.server.prepare(true)?;
        Ok(store)
    }

    /// Opens an existing store in the schema `agent_checkpoint`. Nothing is created, so a wrong address does not become
    /// a new store.
    ///
    /// # Errors
    ///
    /// As for [`open`](PostgresStore::open), and with the code `no-store` if there is no store.
    pub fn open_existing(connection: &str) -> Result<PostgresStore> {
        let store = PostgresStore::of(Server::new(connection, SCHEMA, false)?);
        store.server.prepare(false)?;
        Ok(store)
    }

    /// Like [`open_in`](PostgresStore::open_in), but for reading only: nothing is created, and every write fails with
    /// [`ErrorKind::ReadOnly`]. A missing schema reads as an empty store. The server may be a standby.
    ///
    /// # Errors
    ///
    /// As for [`open_in`](PostgresStore::open_in).
    pub fn read_only_in(connection: &str, schema: &str) -> Result<PostgresStore> {
        let store = PostgresStore::of(Server::new(connection, schema, true)?);
        store.server.prepare(true)?;
        Ok(store)
    }

    /// Like [`read_only_in`](PostgresStore::read_only_in), in the schema `agent_checkpoint`.
    ///
    /// # Errors
    ///
    /// As for [`open`](PostgresStore::open).
    pub fn read_only(connection: &str) -> Result<PostgresStore> {
        PostgresStore::read_only_in(connection, SCHEMA)
    }

    fn of(server: Server) -> PostgresStore {
        PostgresStore {
            server: Arc::new(server),
            clock: None,
            keep: Keep::default(),
            max_bytes: 16 << 20,
            notifies: false,
        }
    }

    /// Takes the time of claims and saves from `clock`. The default is the clock of the database, which is the same for
    /// all machines.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
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

    /// Sets how long a call of this store or a clone waits for a lock, for a connection, and for a server that went
    /// away. The default is 10 s.
    #[must_use]
    pub fn with_lock_timeout(self, timeout: Duration) -> Self {
        self.server.set_lock_timeout(timeout);
        self
    }

    /// Sets the largest number of connections of this store and all its clones. The default is 16. Connections are
    /// opened when they are needed. A call inside a closure of
    /// [`transact`](agent_checkpoint::CheckpointStoreExt::transact) may open one more.
    #[must_use]
    pub fn with_connections(self, most: usize) -> Self {
        self.server.set_connections(most);
        self
    }

    /// Notifies the listeners of [`changes`](CheckpointStore::changes) of each write; by default it notifies of none.
    /// This has a cost: PostgreSQL commits notifying writes one after another, each with its own sync.
    #[must_use]
    pub fn notify_changes(mut self) -> Self {
        self.notifies = true;
        self
    }

    /// The server and the database as messages name them, without the password.
    #[must_use]
    pub fn address(&self) -> &str {
        self.server.address()
    }

    pub(crate) fn now(&self, row: &KeyRow) -> DateTime<Utc> {
        self.clock.as_ref().map_or(row.now, |clock| clock.now())
    }

    pub(crate) fn stored(&self, row: &KeyRow) -> Result<Option<Stored>> {
        row.present()
            .map(|state| state.stored(self.max_bytes))
            .transpose()
    }

    /// Reads a key and passes its row to `work`.
    pub(crate) fn find<T: Default>(
        &self,
        key: &Key,
        wanted: Wanted,
        work: impl Fn(KeyRow) -> Result<T>,
    ) -> Result<T> {
        let found = self.server.read(|session| {
            let row = KeyRow::find(session, key, wanted, self.max_bytes, false)?;
            Ok(work(row)?)
        });
        found.map_err(|error| error.with_key(key))
    }

    /// Reads, lets `decide` choose, and writes, and repeats this until no other writer came between. With `locks` the
    /// row is locked from the first read on; otherwise only after another writer came between.
    pub(crate) fn write<T>(
        &self,
        key: &Key,
        wanted: Wanted,
        locks: bool,
        mut decide: impl FnMut(&mut KeyRow) -> Result<(Option<Change>, T)>,
    ) -> Result<T> {
        if self.server.is_read_only() {
            let error = Error::new(ErrorKind::ReadOnly).with_path(self.address());
            return Err(error.with_key(key));
        }
        let mut call = self.server.begin_call();
        let mut hand = self.server.take_hand();
        let mut unanswered = Vec::new();
        let mut locks = locks;
        let written = loop {
            let reading = (wanted, locks);
            match self.try_write(&call, key, reading, &mut hand, &mut unanswered, &mut decide) {
                Ok(Some(value)) => break Ok(value),
                // Another writer was faster; lock the row on the next try.
                Ok(None) => locks = true,
                Err(failure) => {
                    // If the connection broke while it held the lock, try without one: a slow decision would break it
                    // again.
                    locks &= !failure.is_lost();
                    if let Err(failure) = call.retry(failure) {
                        break Err(failure);
                    }
                }
            }
        };
        let is_known = unanswered.is_empty();
        if is_known {
            self.server.give_back_hand(hand);
        }
        written.map_err(|failure| {
            let error = failure.into_error(self.address(), call.waited());
            let error = match is_known {
                true => error,
                false => not_known(self.address()).with_source(error),
            };
            error.with_key(key)
        })
    }

    /// One try. `None` if another writer came between.
    fn try_write<T>(
        &self,
        call: &Call,
        key: &Key,
        (wanted, locks): (Wanted, bool),
        hand: &mut Hand,
        unanswered: &mut Vec<Unanswered<T>>,
        decide: &mut impl FnMut(&mut KeyRow) -> Result<(Option<Change>, T)>,
    ) -> Step<Option<T>> {
        let mut session = self.server.lend(call)?;
        let mut row = KeyRow::find(&mut session, key, wanted, self.max_bytes, locks)?;
        for write in std::mem::take(unanswered) {
            match row.fate(write.version, write.number) {
                Fate::Done => {
                    // The write was made, so an error here is ignored; the session is then not used again.
                    let _ended = session.roll_back();
                    return Ok(Some(write.value));
                }
                Fate::Lost => {}
                Fate::Open => unanswered.push(write),
                Fate::NotKnown => return Err(not_known(self.address()).into()),
            }
        }
        let version = row.version();
        let decided = deciding(|| decide(&mut row));
        let (change, value) = match decided {
            Ok((Some(change), value)) => (change, value),
            Ok((None, value)) => {
                session.roll_back()?;
                return Ok(Some(value));
            }
            Err(error) => {
                session.roll_back()?;
                return Err(error.into());
            }
        };
        let number = hand.next_write();
        let now = self.now(&row);
        let channel = self.notifies.then(|| self.server.schema());
        match row.write(&mut session, key, &change, number, now, channel) {
            Ok(true) => Ok(Some(value)),
            Ok(false) => Ok(None),
            Err(failure) => {
                if failure.is_lost() {
                    unanswered.push(Unanswered {
                        version,
                        number,
                        value,
                    });
                }
                Err(failure)
            }
        }
    }

    /// Checks the fence of a writer. Returns when its claim expires, if the write must be made before that.
    pub(crate) fn check_fence(
        &self,
        row: &KeyRow,
        fence: Option<Fence>,
    ) -> Result<Option<DateTime<Utc>>> {
        let claim = row.claim()?;
        Claim::check(claim.as_ref(), fence, self.now(row))?;
        let claim = claim.filter(|_| fence.is_some() && self.clock.is_none());
        Ok(claim.map(|claim| claim.expires))
    }

    fn save(
        &self,
        key: &Key,
        row: &mut KeyRow,
        present: Option<&Stored>,
        put: &Put,
    ) -> Result<(Option<Change>, Saved)> {
        check_expected(key, put.expect(), present)?;
        let mut change = Change {
            until: self.check_fence(row, put.fence())?,
            ..Change::default()
        };
        let text = put.document().text();
        check_size(text, self.max_bytes)?;
        let mut saved = put.saved(present);
        if saved.outcome == Outcome::Unchanged {
            return Ok((None, saved));
        }
        // An archive ends the task, although this store keeps no archives.
        if put.begins_task(saved.outcome) {
            change.clears_dropped = true;
            row.end_task();
        }
        if !put.dropped().is_empty() {
            change.dropped = put.dropped().to_vec();
            saved.truncation.kept_in = Some(self.address().to_owned());
        }
        change.fingerprints = put.fingerprints().map(str::to_owned);
        let now = self.now(row);
        row.replace(&mut change, text, put.skips_history(), &self.keep, now);
        Ok((Some(change), saved))
    }
}

impl CheckpointStore for PostgresStore {
    fn load(&self, key: &Key) -> Result<Option<Stored>> {
        self.find(key, Wanted::Present, |row| self.stored(&row))
    }

    fn put(&self, key: &Key, put: Put) -> Result<Saved> {
        self.write(key, Wanted::States, false, |row| {
            let present = self.stored(row)?;
            self.save(key, row, present.as_ref(), &put)
        })
    }

    fn exclusive(&self) -> Option<&dyn Exclusive> {
        Some(self)
    }

    fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.write(key, Wanted::States, false, |row| {
            let present = self.stored(row)?;
            check_expected(key, options.expect(), present.as_ref())?;
            let until = self.check_fence(row, options.fence())?;
            if present.is_none() {
                return Ok((None, false));
            }
            row.set_absent();
            let change = Change {
                until,
                removed: row.too_old(None, &self.keep, self.now(row)),
                ..Change::default()
            };
            Ok((Some(change), true))
        })
    }

    fn forget(&self, key: &Key, options: &DeleteOptions) -> Result<bool> {
        self.write(key, Wanted::Ledger, false, |row| {
            if *options.expect() != Expect::Any {
                check_expected(key, options.expect(), self.stored(row)?.as_ref())?;
            }
            let claim = row.claim()?;
            Claim::check_forget(claim.as_ref(), options.fence(), self.now(row))?;
            let was_known = row.forget(claim.as_ref())?;
            let change = Change {
                forgets: true,
                ..Change::default()
            };
            Ok((was_known.then_some(change), was_known))
        })
    }

    fn list(&self, query: &Query) -> Result<Page> {
        // Ask for one more than is wanted, to see whether there is another page.
        let most = query.limit.map(|limit| limit.saturating_add(1));
        let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        // Room for one document of the largest size, or for many small ones.
        let bytes = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        let (all, foreign) = self.server.read(|session| {
            let rows = rows::list(session, query, most, bytes)?;
            let (mut all, mut foreign) = (Vec::with_capacity(rows.len()), Vec::new());
            for row in &rows {
                match rows::listed(row, query.documents, self.max_bytes)? {
                    Ok(listed) => all.push(listed),
                    Err(name) => foreign.push(name.into()),
                }
            }
            Ok((all, foreign))
        })?;
        let mut page = query.page(all);
        page.foreign = foreign;
        Ok(page)
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
        Some(self)
    }

    fn capabilities(&self) -> Capabilities {
        let mut offered = Capabilities::none();
        offered.survives_power_loss = self.server.syncs();
        offered.excludes_processes = true;
        offered.excludes_machines = true;
        offered
    }
}

impl Exclusive for PostgresStore {
    fn with_lock(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        self.write(key, Wanted::States, true, |row| {
            let present = self.stored(row)?;
            match decide(present.as_ref())? {
                Some(put) => self.save(key, row, present.as_ref(), &put),
                None => Ok((None, Saved::unchanged(key, present.as_ref())?)),
            }
        })
    }
}

impl Beside for PostgresStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        self.newest_dropped(key, usize::MAX)
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let read = self
            .server
            .read(|session| rows::dropped(session, key, most));
        read.map_err(|error| error.with_key(key))
    }

    fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
        Ok(None)
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let read = self
            .server
            .read(|session| rows::fingerprints(session, key, revision));
        read.map_err(|error| error.with_key(key))
    }

    fn document_file(&self, _: &Key) -> Option<PathBuf> {
        None
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        let read = self
            .server
            .read(|session| LedgerLines::since(mark, |from| rows::ledger(session, key, from)));
        read.map_err(|error| error.with_key(key))
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        check_ledger_line(line).map_err(|error| error.with_key(key))?;
        self.write(key, Wanted::Ledger, false, |row| {
            let until = self.check_fence(row, fence)?;
            let Some(change) = row.add_to_ledger(line, at) else {
                return Ok((None, false));
            };
            Ok((Some(Change { until, ..change }), true))
        })
    }
}

impl Changes for PostgresStore {
    /// Opens a separate connection.
    fn listen(&self) -> Result<Box<dyn Listener>> {
        Ok(Box::new(Listening::begin(&self.server)?))
    }
}

impl Claims for PostgresStore {
    fn claimed_without_document(&self) -> Result<Vec<Key>> {
        let names = self.server.read(rows::claimed_without_document)?;
        let mut keys: Vec<Key> = names
            .into_iter()
            .filter_map(|it| Key::new(it).ok())
            .collect();
        keys.sort();
        Ok(keys)
    }

    fn change_claim(&self, key: &Key, change: &ClaimChange) -> Result<Claim> {
        self.write(key, Wanted::Present, false, |row| {
            let now = self.now(row);
            let claim = match row.claim() {
                // A take-over may replace any claim, even one that cannot be read.
                Err(_) if change.takes_over() => {
                    let mut claim = change.apply(None, now)?;
                    claim.fence = row.next_fence();
                    claim
                }
                last => change.apply(last?.as_ref(), now)?,
            };
            row.set_claim(&claim)?;
            Ok((Some(Change::default()), claim))
        })
    }

    fn claimed(&self, key: &Key) -> Result<Option<Claim>> {
        self.find(key, Wanted::Present, |row| row.claim())
    }
}
