//! The server: its connections, their settings, and what happens when one breaks.

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

/// The migrations from an empty schema to the present layout. The table `layout` has the number of each one that was
/// applied. A published migration never changes.
const LAYOUT: [&str; 2] = [include_str!("layout.sql"), include_str!("ledger.sql")];

/// Together with the name of the schema: the number of the lock under which migrations run ("ACKP").
const LAYING_OUT: i32 = 0x4143_4b50;

const MAKE_LAYOUT: &str = "CREATE TABLE IF NOT EXISTS layout \
                           (number integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now())";

/// The default for the largest number of connections.
const CONNECTIONS: usize = 16;

/// How long a call waits by default.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How much longer than the lock timeout the server may take for a request; this side waits for its answer for another
/// such time.
const GRACE: Duration = Duration::from_secs(5);

/// The parameters of a request.
pub(crate) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A server and the connections to it.
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
    /// Whether the server syncs what it acknowledges (`fsync`).
    syncs: AtomicBool,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Session>,
    /// The number of sessions, idle or in use.
    open: usize,
    /// The callers that wait for a session, in order of arrival. `None` lets a caller open its own.
    waiting: VecDeque<SyncSender<Option<Session>>>,
    /// The hands that no write is using.
    hands: Vec<Hand>,
}

/// A sequence of writes, one after another. The row of a key remembers the last write of each hand, so a client whose
/// connection broke can find out whether its write was made.
#[derive(Debug)]
pub(crate) struct Hand(i64);

impl Hand {
    /// A hand with a random number that no other program has.
    pub(crate) fn new() -> Hand {
        let random = RandomState::new().hash_one((SystemTime::now(), std::process::id()));
        Hand((random & !0 << 20).cast_signed())
    }

    /// The number of the next write. Its upper 44 bits identify the hand.
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
    /// The number of decisions that this thread is running. Each of them holds a session.
    static DECISIONS: Cell<usize> = const { Cell::new(0) };
}

/// Runs a closure of the caller, which may call the store.
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

/// One call of the store: when it began, and how long it may wait.
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

    /// Waits a little if a retry may help; otherwise returns the failure.
    pub(crate) fn retry(&mut self, failure: Failure) -> Step<()> {
        // The first retry is immediate and always allowed: a connection that broke long ago fails only when it is used,
        // and a process that was suspended has no time left.
        let is_first = self.attempts == 0;
        if !failure.is_passing() || !is_first && self.waited() >= self.timeout {
            return Err(failure);
        }
        if !is_first {
            // The waits are short, so that our last write is still among those that the key remembers.
            thread::sleep(Duration::from_millis(2 << self.attempts.min(3)));
        }
        self.attempts += 1;
        Ok(())
    }
}

/// A connection and its prepared statements.
pub(crate) struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
    /// The lock timeout that is set in it.
    lock_timeout: Duration,
    in_transaction: bool,
    /// Whether a request has no answer yet. If the answer did not come in time it may never come, so the session is not
    /// used again.
    is_asked: Cell<bool>,
}

/// A session in use. Dropping it returns it to the pool, unless it broke or is in the middle of a request or
/// transaction.
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
        // The longest timeout that the server accepts, less what is added to it.
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

    /// Checks that the tables can be used. Creates them if they are missing and `makes` is set; without `makes`,
    /// missing tables are an error.
    pub(crate) fn prepare(&self, makes: bool) -> Result<()> {
        let call = self.begin_call();
        let prepared = loop {
            let prepared = self
                .lend(&call)
                .and_then(|mut session| self.lay_out(&mut session, makes));
            match prepared {
                // Only while the server is starting: otherwise a wrong address would be reported late.
                Err(failure) if failure.is_starting() && call.waited() < call.timeout => {
                    thread::sleep(Duration::from_millis(20));
                }
                prepared => break prepared,
            }
        };
        prepared.map_err(|failure| failure.into_error(&self.address, call.waited()))
    }

    /// Reads, and repeats this if the connection breaks. For a read-only store missing tables read as empty.
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
        // A panic cannot leave the pool half changed, so a poisoned lock is harmless.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_hand(&self) -> Hand {
        self.pool().hands.pop().unwrap_or_else(Hand::new)
    }

    pub(crate) fn give_back_hand(&self, hand: Hand) {
        self.pool().hands.push(hand);
    }

    /// A session for one caller. Waiting callers are served in order of arrival.
    pub(crate) fn lend(&self, call: &Call) -> Step<Lent<'_>> {
        let mut pool = self.pool();
        while let Some(idle) = pool.idle.pop() {
            if !idle.client.is_closed() {
                drop(pool);
                return self.ready(idle, call);
            }
            pool.open -= 1;
        }
        // A caller that is inside a decision holds a session that the others may be waiting for.
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

    /// An open session, set to the timeout of this call.
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

    /// A new session. Its place in the pool is already taken.
    fn open(&self, call: &Call) -> Step<Lent<'_>> {
        // Dropping it gives the place back if the connection fails.
        let mut lent = Lent {
            server: self,
            session: None,
        };
        let until = call.until().max(Instant::now() + Duration::from_secs(1));
        let client = self.connect(until, |connection| async {
            // Callers that wait for an answer get the error.
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

    /// A separate connection outside the pool.
    pub(crate) fn connect<F: Future<Output = ()> + Send>(
        &self,
        until: Instant,
        drive: impl FnOnce(Connection<Socket, Stream>) -> F + Send + 'static,
    ) -> Step<Client> {
        self.io
            .connect(&self.config, &self.encryption, until, drive)
    }

    /// Sets what stays the same while a session is open.
    fn set_up(&self, session: &mut Session) -> Step<()> {
        let read_only = if self.is_read_only { "on" } else { "off" };
        session.set_up(&[
            // The schema's name has no character with a meaning inside quotes.
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

    /// Applies the missing migrations in one transaction. If several programs do so at the same time, one applies them
    /// and the others find them applied.
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
            let message =
                "there is no store here; check the address, or open it in a way that makes one";
            return Err(other("no-store", message).into());
        }
        session.begin()?;
        let schema = &self.schema;
        let sql = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        session.query_once(sql, &[(&LAYING_OUT, Type::INT4), (schema, Type::TEXT)])?;
        // Checked first, because `CREATE SCHEMA` needs a right even if the schema exists.
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

/// The layout number of the tables; 0 if there are none.
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
    // A caller that is suspended inside a decision keeps the others out for no longer than they wait.
    let decision = (timeout / 2).max(Duration::from_secs(1));
    let millis = |time: Duration| time.as_millis().max(1).to_string();
    [
        ("lock_timeout", millis(timeout)),
        ("statement_timeout", millis(timeout + GRACE)),
        ("idle_in_transaction_session_timeout", millis(decision)),
    ]
}

impl Session {
    /// The time until which a call waits for an answer.
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

    /// A request that is made only once in a session, so it is not prepared.
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

    /// Begins a transaction, takes a lock and reads, with three requests that are sent together.
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

    /// Makes a request and commits, with two requests that are sent together.
    pub(crate) fn query_and_commit(&mut self, sql: &str, values: Values<'_>) -> Step<Vec<Row>> {
        let statement = self.prepared(sql)?;
        let client = &self.client;
        let both = join(
            client.query(&statement, values),
            client.batch_execute("COMMIT"),
        );
        let (found, committed) = self.answer(both)?;
        // If the request failed, the commit has ended the transaction as well.
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
