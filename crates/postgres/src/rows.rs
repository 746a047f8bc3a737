//! The rows of a key, and each statement that reads or writes them.

use std::fmt::Write as _;
use std::time::SystemTime;

use agent_checkpoint::store::{EntryId, Keep, Listed, ListedLedger, Query, Stored};
use agent_checkpoint::{Claim, Dropped, Error, ErrorKind, Fence, Key, Result, Revision};
use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::failure::{Failure, Step};
use crate::server::{Session, Values, refuse_newer};

/// The row of a key and its present state.
const PRESENT: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 THEN s.text END
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name AND s.number = c.present";

/// The row of a key and all its states. Texts that are not wanted are not read.
const STATES: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 AND ($3 OR s.number = coalesce($4, c.present)) THEN s.text END
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name
    ORDER BY s.number DESC";

/// The columns of `PRESENT`, and the position of the next line of the ledger. One statement sees one state of the
/// database: if the row does not show an unanswered write, its ledger line is not there either.
const LEDGER: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 THEN s.text END,
        (SELECT coalesce(max(l.position) + 1, 0) FROM ledger AS l WHERE l.key = $1)
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name AND s.number = c.present";

/// Locks the row of a key until the transaction ends. This is a separate statement, because a statement that waited for
/// a lock still sees the other tables as they were before.
const LOCK: &str = "SELECT 1 FROM checkpoints WHERE name = $1 FOR UPDATE";

/// Inserts the row of a key, if there is none.
const CREATE: &str = "
    INSERT INTO checkpoints (name, version, writes, present, last, task, claim, owner, fence, revision, fingerprints, updated)
    SELECT $1::text, $2::bigint + 1, ARRAY[$3::bigint], $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text, $9::bigint,
        $10::text, $11::bytea, $12::timestamptz
    WHERE $13::timestamptz IS NULL OR clock_timestamp() < $13
    ON CONFLICT (name) DO NOTHING RETURNING name";

/// Updates the row of a key, if no other writer was faster.
const UPDATE: &str = "
    UPDATE checkpoints AS c SET
        version = c.version + 1, writes = ($3::bigint || ARRAY(
            SELECT write FROM unnest(c.writes) WITH ORDINALITY AS w (write, place)
            WHERE write >> 20 <> $3 >> 20 ORDER BY place))[1:64], present = $4, last = $5, task = $6,
        claim = $7, owner = $8, fence = greatest(c.fence, $9), updated = $12,
        revision = CASE WHEN $4::bigint IS NOT NULL THEN coalesce($10, c.revision) END,
        fingerprints = CASE WHEN $10::text IS NULL AND $4::bigint IS NOT NULL THEN c.fingerprints ELSE $11 END
    WHERE name = $1 AND version = $2 AND ($13::timestamptz IS NULL OR clock_timestamp() < $13)
    RETURNING name";

/// Writes everything else of a key in the same statement, and nothing if the row was not written.
const BESIDE: &str = "
    removed AS (
        DELETE FROM states USING k WHERE key = name AND ($26::boolean OR number = ANY($14::bigint[]))),
    written AS (
        INSERT INTO states (key, number, task, is_pinned, modified, text)
        SELECT name, $15, $27::bigint, false, $28::timestamptz, $16::bytea FROM k WHERE $15::bigint IS NOT NULL
        ON CONFLICT (key, number) DO UPDATE SET
            task = excluded.task, is_pinned = false, modified = excluded.modified, text = excluded.text),
    pinned AS (
        UPDATE states SET is_pinned = $18::boolean FROM k WHERE key = name AND number = $17::bigint),
    cleared AS (
        DELETE FROM dropped USING k WHERE key = name AND ($19::boolean OR $26) RETURNING id),
    added AS (
        INSERT INTO dropped (key, digest, item, text)
        SELECT name, d.digest, d.item, d.text
        FROM k, unnest($20::text[], $21::text[], $22::bytea[]) WITH ORDINALITY AS d (digest, item, text, place)
        -- Only once those before are gone.
        WHERE (SELECT count(*) FROM cleared) >= 0
        ORDER BY d.place
        ON CONFLICT (key, digest) DO NOTHING),
    quarantined AS (
        INSERT INTO quarantine (key, digest, text) SELECT name, $23, $24::bytea FROM k WHERE $23::text IS NOT NULL
        ON CONFLICT (key, digest) DO NOTHING),
    released AS (
        DELETE FROM quarantine USING k WHERE key = name AND ($26 OR digest <> $23 AND id NOT IN
            (SELECT id FROM quarantine WHERE key = $1 AND digest <> $23 ORDER BY id DESC LIMIT 7))),
    entered AS (
        INSERT INTO ledger (key, position, line) SELECT name, $29, $30::text FROM k WHERE $29::bigint IS NOT NULL),
    closed AS (
        DELETE FROM ledger USING k WHERE key = name AND $26),
    notified AS (
        SELECT pg_notify($25::text, name) FROM k WHERE $25::text IS NOT NULL)
    SELECT (SELECT count(*) FROM k), (SELECT count(*) FROM notified)";

/// For how many hands the row of a key remembers the last write (see `UPDATE`).
const KNOWN_HANDS: usize = 64;

/// The row of a key, as it was read before a write.
#[derive(Debug)]
pub(crate) struct KeyRow {
    /// The time of the database.
    pub(crate) now: DateTime<Utc>,
    /// 0 if the key has no row yet.
    version: i64,
    layout: Option<i32>,
    writes: Vec<i64>,
    present: Option<i64>,
    last: i64,
    task: i64,
    claim: Option<String>,
    owner: Option<String>,
    fence: i64,
    /// The position of the next line of the ledger, if it was read.
    ledger: i64,
    /// Newest first.
    states: Vec<State>,
}

/// One state of a document. Its text may be damaged.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) number: i64,
    pub(crate) task: i64,
    pub(crate) is_pinned: bool,
    pub(crate) modified: SystemTime,
    /// The size of the whole text, even if the text was not read.
    pub(crate) bytes: u64,
    pub(crate) text: Vec<u8>,
}

/// What is read with the row of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The present state.
    Present,
    /// All states, and the text of the present one.
    States,
    /// All states, and the text of the one with this number.
    Numbered(i64),
    /// All states with their texts.
    Texts,
    /// The present state, and the end of the ledger.
    Ledger,
}

/// What a write changes besides the row of a key.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// A new or replaced state.
    pub(crate) state: Option<NewState>,
    pub(crate) fingerprints: Option<String>,
    pub(crate) removed: Vec<i64>,
    pub(crate) pinned: Option<(i64, bool)>,
    pub(crate) clears_dropped: bool,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) quarantined: Option<Vec<u8>>,
    /// A line to append to the ledger.
    pub(crate) line: Option<String>,
    /// Whether all states, dropped items, damaged documents and ledger lines are removed.
    pub(crate) forgets: bool,
    /// When the claim that permits this write expires.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// A state to write: a new one, or a replacement of the one with this number.
#[derive(Debug)]
pub(crate) struct NewState {
    number: i64,
    task: i64,
    modified: DateTime<Utc>,
    text: Vec<u8>,
}

/// What happened to an unanswered write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// Not made yet.
    Open,
    /// Another write came first, so it will never be made.
    Lost,
    NotKnown,
}

impl State {
    /// The state in the columns from `first` on.
    fn of(row: &Row, first: usize) -> Result<Option<State>, tokio_postgres::Error> {
        let Some(number) = row.try_get(first)? else {
            return Ok(None);
        };
        Ok(Some(State {
            number,
            task: row.try_get(first + 1)?,
            is_pinned: row.try_get(first + 2)?,
            modified: row.try_get::<_, DateTime<Utc>>(first + 3)?.into(),
            bytes: row.try_get::<_, i64>(first + 4)?.unsigned_abs(),
            text: row.try_get::<_, Option<_>>(first + 5)?.unwrap_or_default(),
        }))
    }

    /// The document.
    ///
    /// # Errors
    ///
    /// If the text is no document, or too long.
    pub(crate) fn stored(&self, max_bytes: u64) -> Result<Stored> {
        Stored::read(&self.text, Some(self.modified), self.bytes, max_bytes)
    }

    /// The id of the state in the history.
    pub(crate) fn entry(&self) -> EntryId {
        id_of(self.number)
    }
}

/// The id of the state with this number.
pub(crate) fn id_of(number: i64) -> EntryId {
    number.unsigned_abs().into()
}

impl KeyRow {
    /// Reads a key. With `locks`, other writers are kept out until the transaction ends.
    pub(crate) fn find(
        session: &mut Session,
        key: &Key,
        wanted: Wanted,
        max_bytes: u64,
        locks: bool,
    ) -> Step<KeyRow> {
        let name = key.as_str();
        let most = i32::try_from(max_bytes).unwrap_or(i32::MAX);
        let all = wanted == Wanted::Texts;
        let number = match wanted {
            Wanted::Numbered(number) => Some(number),
            _ => None,
        };
        let of_present: Values<'_> = &[&name, &most];
        let of_states: Values<'_> = &[&name, &most, &all, &number];
        let (sql, values) = match (wanted, locks) {
            (Wanted::Ledger, _) => (LEDGER, of_present),
            (Wanted::Present, false) => (PRESENT, of_present),
            _ => (STATES, of_states),
        };
        let rows = match locks {
            false => session.query(sql, values)?,
            true => session.begin_and_query((LOCK, &[&name]), (sql, values))?,
        };
        let mut row = KeyRow::of(&rows)?;
        if wanted == Wanted::Ledger {
            let end = rows.first().ok_or(Failure::NoAnswer)?;
            row.ledger = end.try_get(16)?;
        }
        if row.present.is_some() && row.present().is_none() {
            let detail = format!(
                "row {} of the table `states`, its document, is missing; bring the database back from a copy, or set `present` of \
                 its row in `checkpoints` to NULL",
                row.present.unwrap_or_default()
            );
            return Err(Error::new(ErrorKind::Unreadable { detail }).into());
        }
        Ok(row)
    }

    fn of(rows: &[Row]) -> Step<KeyRow> {
        let Some(row) = rows.first() else {
            return Err(Failure::NoAnswer);
        };
        let number = |column: usize| row.try_get::<_, Option<i64>>(column);
        let states = rows.iter().filter_map(|row| State::of(row, 10).transpose());
        Ok(KeyRow {
            now: row.try_get(0)?,
            layout: row.try_get(1)?,
            version: number(2)?.unwrap_or_default(),
            writes: row.try_get::<_, Option<_>>(3)?.unwrap_or_default(),
            present: number(4)?,
            last: number(5)?.unwrap_or_default(),
            task: number(6)?.unwrap_or_default(),
            claim: row.try_get(7)?,
            owner: row.try_get(8)?,
            fence: number(9)?.unwrap_or_default(),
            ledger: 0,
            states: states.collect::<Result<_, _>>()?,
        })
    }

    /// The present document, if there is one.
    pub(crate) fn present(&self) -> Option<&State> {
        let mut states = self.states.iter();
        states.find(|state| Some(state.number) == self.present)
    }

    /// The entries of the history, newest first: all states except the present one, which is an entry only while it is
    /// pinned.
    pub(crate) fn past(&self) -> impl Iterator<Item = &State> {
        let is_entry = |state: &&State| state.is_pinned || Some(state.number) != self.present;
        self.states.iter().filter(is_entry)
    }

    /// How many tasks ended after a state.
    pub(crate) fn tasks_since(&self, state: &State) -> usize {
        usize::try_from(self.task - state.task).unwrap_or_default()
    }

    /// The last claim.
    pub(crate) fn claim(&self) -> Result<Option<Claim>> {
        let claim = self.claim.as_deref().map(serde_json::from_str);
        claim
            .transpose()
            .map_err(|error| unreadable("claim", error))
    }

    pub(crate) fn set_claim(&mut self, claim: &Claim) -> Result<()> {
        let text = serde_json::to_string(claim).map_err(|error| unreadable("claim", error))?;
        self.claim = Some(text);
        self.owner = (!claim.is_only_fence()).then(|| claim.owner.clone());
        self.fence = i64::try_from(claim.fence.number()).unwrap_or(i64::MAX);
        Ok(())
    }

    /// A fence that is higher than all earlier ones.
    pub(crate) fn next_fence(&self) -> Fence {
        Fence::new(self.fence.unsigned_abs() + 1)
    }

    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// What happened to the write with this number, which was based on `version` of the row.
    pub(crate) fn fate(&self, version: i64, write: i64) -> Fate {
        match self.version - version {
            _ if self.writes.contains(&write) => Fate::Done,
            ..=0 => Fate::Open,
            _ if self.writes.len() < KNOWN_HANDS => Fate::Lost,
            // The key remembers an earlier write of this hand. Had this write been made, it would have replaced that
            // one.
            _ if self.writes.iter().any(|known| known >> 20 == write >> 20) => Fate::Lost,
            _ => Fate::NotKnown,
        }
    }

    /// Ends the present task if it has a state. All states so far then belong to earlier tasks.
    pub(crate) fn end_task(&mut self) {
        if self.states.iter().any(|state| state.task == self.task) {
            self.task += 1;
        }
    }

    /// Makes a text the present state. The replaced text stays in the history, unless that is skipped; states that then
    /// exceed the limits are removed.
    pub(crate) fn replace(
        &mut self,
        change: &mut Change,
        text: &str,
        skips_history: bool,
        keep: &Keep,
        now: DateTime<Utc>,
    ) {
        let loose = self.present().filter(|present| !present.is_pinned);
        if loose.is_none() || !skips_history {
            change.removed = self.beyond(None, keep, now);
            self.last += 1;
            self.present = Some(self.last);
        }
        change.state = self.present.map(|number| self.state(number, text, now));
    }

    /// Adds a text as the newest state to the history of a key without a document. `tasks_ended` is how many tasks
    /// ended after that state.
    pub(crate) fn append(
        &mut self,
        change: &mut Change,
        text: &str,
        modified: DateTime<Utc>,
        tasks_ended: usize,
    ) -> i64 {
        self.last += 1;
        change.state = Some(self.state(self.last, text, modified));
        let ended = i64::try_from(tasks_ended).unwrap_or(i64::MAX);
        self.task = self.task.saturating_add(ended);
        self.last
    }

    fn state(&self, number: i64, text: &str, modified: DateTime<Utc>) -> NewState {
        NewState {
            number,
            task: self.task,
            modified,
            text: text.as_bytes().to_vec(),
        }
    }

    /// Appends a line to the ledger if it has `at` lines; otherwise returns `None`.
    pub(crate) fn add_to_ledger(&self, line: &str, at: usize) -> Option<Change> {
        let is_next = usize::try_from(self.ledger) == Ok(at);
        is_next.then(|| Change {
            line: Some(line.to_owned()),
            ..Change::default()
        })
    }

    /// Clears everything of the key except the fence. Returns `false` if there was nothing else.
    pub(crate) fn forget(&mut self, claim: Option<&Claim>) -> Result<bool> {
        let has_owner = claim.is_some_and(|claim| !claim.is_only_fence());
        let was_known = self.last > 0 || self.ledger > 0 || has_owner;
        if let Some(claim) = claim {
            self.set_claim(&Claim::only_fence(claim.fence))?;
        }
        (self.present, self.last, self.task) = (None, 0, 0);
        Ok(was_known)
    }

    /// Marks the document as absent. Its last state stays in the history.
    pub(crate) fn set_absent(&mut self) {
        self.present = None;
    }

    /// The numbers of the entries that exceed the limits of the history, except `spared`.
    pub(crate) fn too_old(&self, spared: Option<i64>, keep: &Keep, now: DateTime<Utc>) -> Vec<i64> {
        let mut gone = self.beyond(self.present, keep, now);
        gone.retain(|number| Some(*number) != spared);
        gone
    }

    /// The numbers of the states that exceed the limits, newest first. `present` is not among them.
    fn beyond(&self, present: Option<i64>, keep: &Keep, now: DateTime<Utc>) -> Vec<i64> {
        let is_loose = |state: &&State| !state.is_pinned && Some(state.number) != present;
        let loose: Vec<&State> = self.states.iter().filter(is_loose).collect();
        let entries = loose
            .iter()
            .map(|state| (Some(state.modified), state.bytes));
        let beyond = keep.beyond(Keep::COUNT, entries, SystemTime::from(now));
        beyond.into_iter().map(|at| loose[at].number).collect()
    }

    /// Writes the row and `change`, under the number `write`. Returns `false` if another writer was faster or the claim
    /// of this one has expired. Ends the transaction in which the row was read, if there is one.
    pub(crate) fn write(
        &self,
        session: &mut Session,
        key: &Key,
        change: &Change,
        write: i64,
        now: DateTime<Utc>,
        channel: Option<&str>,
    ) -> Step<bool> {
        refuse_newer(self.layout.unwrap_or_default())?;
        let state = change.state.as_ref();
        let text = state.map(|state| &state.text);
        let number = state.map(|state| state.number);
        let present = text.filter(|_| self.present.is_some());
        let revision = present.map(|text| Revision::of(text).to_string());
        let (pin, is_pinned) = change.pinned.unzip();
        let fingerprints = change.fingerprints.as_deref().map(str::as_bytes);
        let (mut digests, mut items, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for dropped in &change.dropped {
            let item = serde_json::to_string(dropped).map_err(|error| unreadable("item", error))?;
            let text = dropped.text.as_deref();
            let whole = [item.as_str(), text.unwrap_or_default()].join("\n");
            digests.push(Revision::of(whole.as_bytes()).to_string());
            items.push(item);
            texts.push(text.map(str::as_bytes));
        }
        let damaged = change.quarantined.as_ref();
        let digest = damaged.map(|text| Revision::of(text).to_string());
        let values: Values<'_> = &[
            &key.as_str(),
            &self.version,
            &write,
            &self.present,
            &self.last,
            &self.task,
            &self.claim,
            &self.owner,
            &self.fence,
            &revision,
            &fingerprints,
            &now,
            &change.until,
            &change.removed,
            &number,
            &text,
            &pin,
            &is_pinned.unwrap_or_default(),
            &change.clears_dropped,
            &digests,
            &items,
            &texts,
            &digest,
            &damaged,
            &channel,
            &change.forgets,
            &state.map(|state| state.task),
            &state.map(|state| state.modified),
            &change.line.as_ref().map(|_| self.ledger),
            &change.line,
        ];
        let row = if self.version == 0 { CREATE } else { UPDATE };
        let sql = format!("WITH k AS ({row}), {BESIDE}");
        let rows = match session.in_transaction() {
            true => session.query_and_commit(&sql, values)?,
            false => session.query(&sql, values)?,
        };
        let written = rows.first().map(|row| row.try_get(0));
        Ok(written.transpose()? == Some(1_i64))
    }
}

/// The newest `most` dropped items, oldest first.
pub(crate) fn dropped(session: &mut Session, key: &Key, most: usize) -> Step<Vec<Dropped>> {
    let sql = "SELECT item, text FROM dropped WHERE key = $1 ORDER BY id DESC LIMIT $2";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut all = Vec::new();
    for row in session.query(sql, &[&key.as_str(), &most])? {
        let item: &str = row.try_get(0)?;
        let mut item: Dropped =
            serde_json::from_str(item).map_err(|error| unreadable("dropped item", error))?;
        let text: Option<&[u8]> = row.try_get(1)?;
        item.text = text.map(|text| String::from_utf8_lossy(text).into_owned());
        all.push(item);
    }
    all.reverse();
    Ok(all)
}

/// The lines of the ledger of a key from a number on, oldest first.
pub(crate) fn ledger(session: &mut Session, key: &Key, from: usize) -> Step<Vec<String>> {
    let sql =
        "SELECT position, line FROM ledger WHERE key = $1 AND position >= $2 ORDER BY position";
    let mut lines = Vec::new();
    for row in session.query(sql, &[&key.as_str(), &(from as i64)])? {
        let at = from + lines.len();
        if row.try_get::<_, i64>(0)? != at as i64 {
            let detail = format!(
                "line {at} of its ledger is missing in the database, so it is unknown which effects were begun or done; bring \
                 the database back from a copy"
            );
            return Err(Error::new(ErrorKind::Unreadable { detail }).into());
        }
        lines.push(row.try_get(1)?);
    }
    Ok(lines)
}

/// The fingerprints of the document, if it still has this revision.
pub(crate) fn fingerprints(
    session: &mut Session,
    key: &Key,
    revision: &Revision,
) -> Step<Option<String>> {
    let sql = "SELECT fingerprints FROM checkpoints WHERE name = $1 AND revision = $2";
    let rows = session.query(sql, &[&key.as_str(), &revision.to_string()])?;
    let text = rows.first().map(|row| row.try_get::<_, Option<Vec<u8>>>(0));
    let text = text.transpose()?.flatten();
    Ok(text.and_then(|text| String::from_utf8(text).ok()))
}

/// The rows of the keys that the query selects, in order and at most `most`, for [`listed`] to read. Documents are
/// included until they have `bytes` bytes together.
pub(crate) fn list(
    session: &mut Session,
    query: &Query,
    most: Option<i64>,
    bytes: i64,
) -> Step<Vec<Row>> {
    let prefix = query.prefix.as_deref().unwrap_or_default();
    let after = query.after.as_ref().map_or("", Key::as_str);
    // No key with the prefix sorts after this, because none is longer.
    let last = [prefix, &"\u{10ffff}".repeat(Key::MAX_BYTES / 4)].concat();
    let only = query.keys.as_ref();
    let only = only.map(|only| only.iter().map(Key::as_str).collect::<Vec<_>>());
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&prefix, &last, &after, &most];
    let (mut columns, mut join, mut is_one) = ("", "", String::new());
    if query.documents {
        columns = ", c.claim, s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint, \
                   CASE WHEN sum(octet_length(s.text)) OVER (ORDER BY c.name) <= $5 THEN s.text END";
        join = "JOIN states AS s ON s.key = c.name AND s.number = c.present";
        values.push(&bytes);
    }
    if let Some(only) = &only {
        values.push(only);
        is_one = format!("AND c.name = ANY(${})", values.len());
    }
    let sql = |lines: &str| {
        format!(
            "SELECT c.name, c.version, c.writes[1], {lines}{columns} FROM checkpoints AS c {join} \
             WHERE c.present IS NOT NULL AND c.name >= $1 AND c.name <= $2 AND c.name > $3 {is_one} ORDER BY c.name LIMIT $4"
        )
    };
    let lines = match query.ledgers {
        true => "(SELECT coalesce(max(l.position) + 1, 0) FROM ledger AS l WHERE l.key = c.name)",
        false => "NULL::bigint",
    };
    match session.query(&sql(lines), &values) {
        // A read-only store may find tables of an earlier version, which had no ledgers.
        Err(failure) if failure.is_no_table() => session.query(&sql("0::bigint"), &values),
        rows => rows,
    }
}

/// A key of a page, with its document and claim if they are wanted and there was room. The inner error is a name that
/// is no key.
pub(crate) fn listed(
    row: &Row,
    has_content: bool,
    max_bytes: u64,
) -> Result<Result<Listed, String>, tokio_postgres::Error> {
    let (version, write): (i64, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
    let Ok(key) = Key::new(row.try_get::<_, &str>(0)?) else {
        return Ok(Err(row.try_get(0)?));
    };
    // After a backup is restored the versions repeat, but not the random numbers of the writes.
    let mut of = String::with_capacity(2 * 16 + 1);
    let _ = write!(of, "{version:x}-{:x}", write.unwrap_or_default());
    let lines = row.try_get::<_, Option<i64>>(3)?.map(i64::unsigned_abs);
    let listed = Listed::from(key)
        .with_version(of)
        .with_ledger(lines.map_or(ListedLedger::Unknown, ListedLedger::of_lines));
    if !has_content || row.try_get::<_, Option<&[u8]>>(10)?.is_none() {
        return Ok(Ok(listed));
    }
    let claim: Option<&str> = row.try_get(4)?;
    let claim = claim.map(serde_json::from_str).transpose();
    let stored = State::of(row, 5)?.map(|state| state.stored(max_bytes));
    Ok(Ok(match (stored, claim) {
        (Some(Ok(stored)), Ok(claim)) => listed.with_content(stored, claim),
        // If one of them cannot be read, `load` or the call for the claim reports the error.
        _ => listed,
    }))
}

/// The names of the keys without a document whose claim was not released or cannot be read.
pub(crate) fn claimed_without_document(session: &mut Session) -> Step<Vec<String>> {
    // A forgotten key keeps only its fence, which has no owner.
    let sql = "SELECT name, claim FROM checkpoints WHERE present IS NULL AND claim IS NOT NULL AND owner IS NOT NULL";
    let mut names = Vec::new();
    for row in session.query(sql, &[])? {
        let claim = serde_json::from_str::<Claim>(row.try_get(1)?);
        if !claim.is_ok_and(|claim| claim.released) {
            names.push(row.try_get(0)?);
        }
    }
    Ok(names)
}

/// The error for content of the tables that only another program can have written.
fn unreadable(what: &str, error: serde_json::Error) -> Error {
    let detail = format!("the {what} in the database cannot be read; correct it there");
    Error::new(ErrorKind::Unreadable { detail }).with_source(error)
}
