//! The server: the connections to it, what is set in each, and what is done when one breaks.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use agent_checkpoint::{Error, ErrorKind, Result};
use futures_util::future::{join, join3};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket, Statement};

use crate::address;
use crate::failure::{Failure, Step, locked, other};
use crate::io::{Io, wait};
use crate::tls::{Encryption, Stream};

/// The steps from an empty schema to the present layout. The table `layout` has the number of each that was made.
/// A step that was published never changes.
const LAYOUT: [&str; 2] = [include_str!("layout.sql"), include_str!("ledger.sql")];

/// With the name of the schema, the number of the lock under which the tables are laid out: "ACKP".
const LAYING_OUT: i32 = 0x4143_4b50;

const MAKE_LAYOUT: &str = "CREATE TABLE IF NOT EXISTS layout \
                           (number integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now())";

/// How many connections there are at most where nothing else is said.
const CONNECTIONS: usize = 16;

/// How long a call waits where nothing else is said.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How much longer than for a lock the server may take for a request, and then this side for its answer.
const GRACE: Duration = Duration::from_secs(5);

/// How a request gives its values.
pub(crate) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A server, with the connections to it.
pub(crate) struct Server {
    config: Config,
    encryption: Encryption,
    address: String,
    schema: String,
    is_read_only: bool,
    io: Io,
    pool: Mutex<Pool>,
    most: AtomicUsize,
    lock_timeout: AtomicU64,
    /// Whether the server syncs what it acknowledges.
    syncs: AtomicBool,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Session>,
    /// Idle and in use.
    open: usize,
    /// Those who wait for a session, in the order in which they came. `None` lets one open its own.
    waiting: VecDeque<SyncSender<Option<Session>>>,
    /// Those that make no write now.
    hands: Vec<Hand>,
}

/// One that makes one write after the other: a key knows the last one of each. With it a client whose connection broke finds
/// out whether its write was made.
#[derive(Debug)]
pub(crate) struct Hand(i64);

impl Hand {
    /// One that is told from all others, in all programs.
    pub(crate) fn new() -> Hand {
        let random = RandomState::new().hash_one((SystemTime::now(), std::process::id()));
        Hand((random & !0 << 20).cast_signed())
    }

    /// The number of its next write: 44 bits are the hand's.
    pub(crate) fn next_write(&mut self) -> i64 {
        let (hand, count) = (self.0 >> 20 << 20, (self.0 + 1) & 0xf_ffff);
        self.0 = hand | count;
        self.0
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("schema", &self.schema)
            .field("is_read_only", &self.is_read_only)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// How many decisions this thread is in the middle of, each of which has a session.
    static DECISIONS: Cell<usize> = const { Cell::new(0) };
}

/// Runs a decision of the caller, in which it may call the store.
pub(crate) fn deciding<T>(decide: impl FnOnce() -> T) -> T {
    struct Deciding;
    impl Drop for Deciding {
        fn drop(&mut self) {
            DECISIONS.set(DECISIONS.get() - 1);
        }
    }
    DECISIONS.set(DECISIONS.get() + 1);
    let _deciding = Deciding;
    decide()
}

/// One call of the store: since when, and until when it waits.
pub(crate) struct Call {
    began: Instant,
    timeout: Duration,
    attempts: u32,
}

impl Call {
    fn until(&self) -> Instant {
        self.began + self.timeout
    }

    pub(crate) fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits a little where the failure may pass; else gives it back.
    pub(crate) fn retry(&mut self, failure: Failure) -> Step<()> {
        // Always once, and at once: a connection that broke long ago shows only when it is used, and a program that was stopped
        // has no time left.
        let is_first = self.attempts == 0;
        if !failure.is_passing() || !is_first && self.waited() >= self.timeout {
            return Err(failure);
        }
        if !is_first {
            // Short waits: what was written meanwhile must still be among the writes that are remembered.
            thread::sleep(Duration::from_millis(2 << self.attempts.min(3)));
        }
        self.attempts += 1;
        Ok(())
    }
}

/// A connection, and what is prepared in it.
pub(crate) struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
    /// The timeout that was set in it.
    lock_timeout: Duration,
    in_transaction: bool,
    /// Whether a request has no answer yet. Where none came in time, none may ever come: it is not used again.
    is_asked: Cell<bool>,
}

/// A session in use; it goes back when this is dropped, unless it broke or is in the middle of something.
pub(crate) struct Lent<'s> {
    server: &'s Server,
    session: Option<Session>,
}

impl Server {
    pub(crate) fn new(connection: &str, schema: &str, is_read_only: bool) -> Result<Server> {
        let (config, encryption) = address::parse(connection)?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if schema.is_empty() || schema.len() > 63 || !schema.chars().all(is_name) {
            let message = "the name of a schema has 1 to 63 letters, digits and `_`";
            return Err(other("schema-name", message));
        }
        let address = address::shown(&config);
        let io = Io::start().map_err(|error| Error::new(ErrorKind::Io).with_source(error))?;
        Ok(Server {
            config,
            encryption,
            address,
            schema: schema.to_owned(),
            is_read_only,
            io,
            pool: Mutex::default(),
            most: AtomicUsize::new(CONNECTIONS),
            lock_timeout: AtomicU64::new(LOCK_TIMEOUT.as_millis() as u64),
            syncs: AtomicBool::new(false),
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(crate) fn syncs(&self) -> bool {
        self.syncs.load(Ordering::Relaxed)
    }

    pub(crate) fn set_connections(&self, most: usize) {
        self.most.store(most.max(1), Ordering::Relaxed);
    }

    pub(crate) fn set_lock_timeout(&self, timeout: Duration) {
        // The longest that the server takes, less what is added to it.
        let most = Duration::from_millis(i32::MAX as u64) - 2 * GRACE;
        let millis = timeout.min(most).as_millis() as u64;
        self.lock_timeout.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn begin_call(&self) -> Call {
        Call {
            began: Instant::now(),
            timeout: Duration::from_millis(self.lock_timeout.load(Ordering::Relaxed)),
            attempts: 0,
        }
    }

    /// Looks whether the tables can be used, and makes them where they are not there, or without `makes` refuses to.
    pub(crate) fn prepare(&self, makes: bool) -> Result<()> {
        let call = self.begin_call();
        let prepared = loop {
            let prepared = self
                .lend(&call)
                .and_then(|mut session| self.lay_out(&mut session, makes));
            match prepared {
                // Elsewhere a wrong address would be told late.
                Err(failure) if failure.is_starting() && call.waited() < call.timeout => {
                    thread::sleep(Duration::from_millis(20));
                }
                prepared => break prepared,
            }
        };
        prepared.map_err(|failure| failure.into_error(&self.address, call.waited()))
    }

    /// Reads, again when the connection breaks. Where only reading is allowed, missing tables read as empty.
    pub(crate) fn read<T: Default>(&self, work: impl Fn(&mut Session) -> Step<T>) -> Result<T> {
        let mut call = self.begin_call();
        loop {
            let read = self.lend(&call).and_then(|mut session| work(&mut session));
            let failure = match read {
                Ok(found) => return Ok(found),
                Err(failure) if self.is_read_only && failure.is_no_table() => {
                    return Ok(T::default());
                }
                Err(failure) => failure,
            };
            call.retry(failure)
                .map_err(|failure| failure.into_error(&self.address, call.waited()))?;
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // A pool is whole at every point where a panic could come, so a poisoned lock is no harm.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_hand(&self) -> Hand {
        self.pool().hands.pop().unwrap_or_else(Hand::new)
    }

    pub(crate) fn give_back_hand(&self, hand: Hand) {
        self.pool().hands.push(hand);
    }

    /// A session for one caller. Those who wait for one are served in the order in which they came.
    pub(crate) fn lend(&self, call: &Call) -> Step<Lent<'_>> {
        let mut pool = self.pool();
        while let Some(idle) = pool.idle.pop() {
            if !idle.client.is_closed() {
                drop(pool);
                return self.ready(idle, call);
            }
            pool.open -= 1;
        }
        // A caller in the middle of a decision has a session that the others may be waiting for.
        let is_nested = DECISIONS.get() > 0;
        if pool.open < self.most.load(Ordering::Relaxed) || is_nested {
            pool.open += 1;
            drop(pool);
            return self.open(call);
        }
        let (sender, receiver) = sync_channel(1);
        pool.waiting.push_back(sender);
        drop(pool);
        let left = call.timeout.saturating_sub(call.waited());
        let handed = receiver.recv_timeout(left).ok().or_else(|| {
            let _no_one_hands_it_over = self.pool();
            let handed = receiver.try_recv().ok();
            drop(receiver);
            handed
        });
        match handed {
            Some(Some(session)) => self.ready(session, call),
            Some(None) => self.open(call),
            None => Err(locked(call.waited()).into()),
        }
    }

    /// A session that was open already, with the timeout of this call.
    fn ready(&self, session: Session, call: &Call) -> Step<Lent<'_>> {
        let is_set = session.lock_timeout == call.timeout;
        let mut lent = Lent {
            server: self,
            session: Some(session),
        };
        if !is_set {
            lent.set_up(&timeouts(call.timeout))?;
            lent.lock_timeout = call.timeout;
        }
        Ok(lent)
    }

    /// A new session, whose place in the pool is taken already.
    fn open(&self, call: &Call) -> Step<Lent<'_>> {
        // Gives the place back when the connection cannot be made.
        let mut lent = Lent {
            server: self,
            session: None,
        };
        let until = call.until().max(Instant::now() + Duration::from_secs(1));
        let client = self.connect(until, |connection| async {
            // How it ends is told to those who wait for an answer.
            let _ended = connection.await;
        })?;
        let mut session = Session {
            client,
            prepared: HashMap::new(),
            lock_timeout: call.timeout,
            in_transaction: false,
            is_asked: Cell::new(false),
        };
        session.set_up(&timeouts(call.timeout))?;
        self.set_up(&mut session)?;
        lent.session = Some(session);
        Ok(lent)
    }

    /// A connection of its own, outside of the pool.
    pub(crate) fn connect<F: Future<Output = ()> + Send>(
        &self,
        until: Instant,
        drive: impl FnOnce(Connection<Socket, Stream>) -> F + Send + 'static,
    ) -> Step<Client> {
        self.io
            .connect(&self.config, &self.encryption, until, drive)
    }

    /// What holds for a session as long as it is open.
    fn set_up(&self, session: &mut Session) -> Step<()> {
        let read_only = if self.is_read_only { "on" } else { "off" };
        session.set_up(&[
            // The schema's name has no character that means anything in quotes.
            ("search_path", format!("\"{}\", pg_temp", self.schema)),
            ("default_transaction_isolation", "read committed".to_owned()),
            ("default_transaction_read_only", read_only.to_owned()),
            ("plan_cache_mode", "force_generic_plan".to_owned()),
            ("jit", "off".to_owned()),
        ])?;
        let sql = "SELECT current_setting('server_encoding'), current_setting('fsync') = 'on', \
                   CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END";
        let found = session.query_once(sql, &[])?;
        let [row] = found.as_slice() else {
            return Err(Failure::NoAnswer);
        };
        let encoding: String = row.try_get(0)?;
        if encoding != "UTF8" {
            let message = format!(
                "the database has the encoding {encoding}, and keys need UTF8; make one with `createdb --encoding=UTF8`"
            );
            return Err(other("encoding", message).with_path(&self.address).into());
        }
        self.syncs.store(row.try_get(1)?, Ordering::Relaxed);
        Ok(())
    }

    /// Brings the tables to the present layout, all at once. Of several programs that do so at the same time, the others
    /// find it done.
    fn lay_out(&self, session: &mut Session, makes: bool) -> Step<()> {
        let known = LAYOUT.len() as i32;
        let found = if self.is_read_only {
            known
        } else {
            layout(session)?
        };
        if found >= known {
            return Ok(());
        }
        if found == 0 && !makes {
            let message = "there is no store here; see that the address is right, or open it in a way that makes one";
            return Err(other("no-store", message).into());
        }
        session.begin()?;
        let schema = &self.schema;
        let sql = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        session.query_once(sql, &[(&LAYING_OUT, Type::INT4), (schema, Type::TEXT)])?;
        // Asked first: to make one needs a right, also where there is one.
        let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
        let found = session.query_once(sql, &[(schema, Type::TEXT)])?;
        if found.is_empty() {
            session.batch(&format!("CREATE SCHEMA \"{schema}\""))?;
        }
        session.batch(MAKE_LAYOUT)?;
        let made = usize::try_from(layout(session)?).unwrap_or_default();
        for (number, step) in (1_i32..).zip(LAYOUT).skip(made) {
            session.batch(step)?;
            let sql = "INSERT INTO layout (number) VALUES ($1)";
            session.query_once(sql, &[(&number, Type::INT4)])?;
        }
        session.end("COMMIT")
    }
}

/// Which layout the tables have; 0 where there are none.
fn layout(session: &mut Session) -> Step<i32> {
    let found = session.query_once("SELECT coalesce(max(number), 0) FROM layout", &[]);
    match found {
        Err(failure) if failure.is_no_table() => Ok(0),
        found => Ok(found?.first().map_or(Ok(0), |row| row.try_get(0))?),
    }
}

pub(crate) fn refuse_newer(found: i32) -> Result<()> {
    let known = LAYOUT.len() as u64;
    match u64::try_from(found) {
        Ok(found) if found > known => Err(Error::new(ErrorKind::NewerLayout { found, known })),
        _ => Ok(()),
    }
}

fn timeouts(timeout: Duration) -> [(&'static str, String); 3] {
    // A caller that stops in the middle of a decision keeps the others out no longer than they wait.
    let decision = (timeout / 2).max(Duration::from_secs(1));
    let millis = |time: Duration| time.as_millis().max(1).to_string();
    [
        ("lock_timeout", millis(timeout)),
        ("statement_timeout", millis(timeout + GRACE)),
        ("idle_in_transaction_session_timeout", millis(decision)),
    ]
}

impl Session {
    /// Until when an answer is waited for.
    fn until(&self) -> Instant {
        Instant::now() + self.lock_timeout + 2 * GRACE
    }

    fn set_up(&mut self, settings: &[(&str, String)]) -> Step<()> {
        let (names, values): (Vec<&str>, Vec<&str>) = settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .unzip();
        let sql =
            "SELECT set_config(name, value, false) FROM unnest($1, $2) AS settings (name, value)";
        self.query_once(
            sql,
            &[(&names, Type::TEXT_ARRAY), (&values, Type::TEXT_ARRAY)],
        )?;
        Ok(())
    }

    fn answer<T>(&self, asked: impl Future<Output = T>) -> Step<T> {
        self.is_asked.set(true);
        let answer = wait(asked, self.until())?;
        self.is_asked.set(false);
        Ok(answer)
    }

    /// A request that is made once in a session.
    fn query_once(&mut self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Step<Vec<Row>> {
        Ok(self.answer(self.client.query_typed(sql, values))??)
    }

    fn batch(&mut self, sql: &str) -> Step<()> {
        Ok(self.answer(self.client.batch_execute(sql))??)
    }

    fn prepared(&mut self, sql: &str) -> Step<Statement> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.answer(self.client.prepare(sql))??;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&mut self, sql: &str, values: Values<'_>) -> Step<Vec<Row>> {
        let statement = self.prepared(sql)?;
        Ok(self.answer(self.client.query(&statement, values))??)
    }

    fn begin(&mut self) -> Step<()> {
        self.in_transaction = true;
        self.batch("BEGIN")
    }

    /// Begins a transaction, takes a lock, and reads: three requests that are sent together.
    pub(crate) fn begin_and_query(
        &mut self,
        (lock, lock_values): (&str, Values<'_>),
        (sql, values): (&str, Values<'_>),
    ) -> Step<Vec<Row>> {
        let (lock, statement) = (self.prepared(lock)?, self.prepared(sql)?);
        self.in_transaction = true;
        let client = &self.client;
        let all = join3(
            client.batch_execute("BEGIN"),
            client.query(&lock, lock_values),
            client.query(&statement, values),
        );
        let (begun, locked, found) = self.answer(all)?;
        begun?;
        locked?;
        Ok(found?)
    }

    /// Makes a request and ends the transaction: two requests that are sent together.
    pub(crate) fn query_and_commit(&mut self, sql: &str, values: Values<'_>) -> Step<Vec<Row>> {
        let statement = self.prepared(sql)?;
        let client = &self.client;
        let both = join(
            client.query(&statement, values),
            client.batch_execute("COMMIT"),
        );
        let (found, committed) = self.answer(both)?;
        // Where the request failed, this ended the transaction, too.
        self.in_transaction = committed.is_err();
        let found = found?;
        committed?;
        Ok(found)
    }

    pub(crate) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    pub(crate) fn roll_back(&mut self) -> Step<()> {
        match self.in_transaction {
            true => self.end("ROLLBACK"),
            false => Ok(()),
        }
    }

    fn end(&mut self, sql: &str) -> Step<()> {
        self.batch(sql)?;
        self.in_transaction = false;
        Ok(())
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = Session;

    #[allow(clippy::expect_used, reason = "only the drop takes the session out")]
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("a session that is lent")
    }
}

impl std::ops::DerefMut for Lent<'_> {
    #[allow(clippy::expect_used, reason = "only the drop takes the session out")]
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("a session that is lent")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let is_good = |session: &Session| {
            !session.in_transaction && !session.is_asked.get() && !session.client.is_closed()
        };
        let mut session = self.session.take().filter(is_good);
        let mut pool = self.server.pool();
        while let Some(next) = pool.waiting.pop_front() {
            match next.send(session) {
                Ok(()) => return,
                Err(gave_up) => session = gave_up.0,
            }
        }
        let is_wanted = pool.open <= self.server.most.load(Ordering::Relaxed);
        match session.filter(|_| is_wanted) {
            Some(session) => pool.idle.push(session),
            None => pool.open -= 1,
        }
    }
}
