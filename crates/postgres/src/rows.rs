//! What the tables have of a key: each statement that reads or writes them.

use std::fmt::Write as _;
use std::time::SystemTime;

use agent_checkpoint::store::{EntryId, Keep, Listed, ListedLedger, Query, Stored};
use agent_checkpoint::{Claim, Dropped, Error, ErrorKind, Fence, Key, Result, Revision};
use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::failure::{Failure, Step};
use crate::server::{Session, Values, refuse_newer};

/// Of a key its row, and the present state.
const PRESENT: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 THEN s.text END
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name AND s.number = c.present";

/// Of a key its row, and all states. A text that is not wanted stays where it is.
const STATES: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 AND ($3 OR s.number = coalesce($4, c.present)) THEN s.text END
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name
    ORDER BY s.number DESC";

/// What `PRESENT` reads, and where the next line of the ledger of the key belongs. One statement sees one state of the database:
/// where a write of which no answer came is not there by the row, its line is not there either.
const LEDGER: &str = "
    SELECT t.now, t.layout, c.version, c.writes, c.present, c.last, c.task, c.claim, c.owner, c.fence,
        s.number, s.task, s.is_pinned, s.modified, octet_length(s.text)::bigint,
        CASE WHEN octet_length(s.text) <= $2 THEN s.text END,
        (SELECT coalesce(max(l.position) + 1, 0) FROM ledger AS l WHERE l.key = $1)
    FROM (SELECT clock_timestamp() AS now, (SELECT max(number) FROM layout) AS layout) AS t
    LEFT JOIN checkpoints AS c ON c.name = $1
    LEFT JOIN states AS s ON s.key = c.name AND s.number = c.present";

/// Keeps other writers of a key out until the transaction ends. It is a statement of its own: one that waits for a lock goes
/// on with what the other tables had before.
const LOCK: &str = "SELECT 1 FROM checkpoints WHERE name = $1 FOR UPDATE";

/// The row of a key that is written first, where there is none.
const CREATE: &str = "
    INSERT INTO checkpoints (name, version, writes, present, last, task, claim, owner, fence, revision, fingerprints, updated)
    SELECT $1::text, $2::bigint + 1, ARRAY[$3::bigint], $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text, $9::bigint,
        $10::text, $11::bytea, $12::timestamptz
    WHERE $13::timestamptz IS NULL OR clock_timestamp() < $13
    ON CONFLICT (name) DO NOTHING RETURNING name";

/// The row of a key that is written again, where another writer was not faster.
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

/// All that is written of a key beside its row: in the same statement, and nothing of it where the row was not written.
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

/// The last write of how many hands a key knows, as `UPDATE` says.
const KNOWN_HANDS: usize = 64;

/// What is known of a key, before anything is written.
#[derive(Debug)]
pub(crate) struct KeyRow {
    /// What the clock of the database shows.
    pub(crate) now: DateTime<Utc>,
    /// 0 where nothing is known yet.
    version: i64,
    layout: Option<i32>,
    writes: Vec<i64>,
    present: Option<i64>,
    last: i64,
    task: i64,
    claim: Option<String>,
    owner: Option<String>,
    fence: i64,
    /// Where the next line of the ledger belongs, where that was wanted.
    ledger: i64,
    /// Newest first.
    states: Vec<State>,
}

/// One state of a document, which may be damaged.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) number: i64,
    pub(crate) task: i64,
    pub(crate) is_pinned: bool,
    pub(crate) modified: SystemTime,
    /// Of the whole text, also where that was not read.
    pub(crate) bytes: u64,
    pub(crate) text: Vec<u8>,
}

/// What is read of a key beside the row itself.
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
    /// The present state, and where the ledger ends.
    Ledger,
}

/// What is written of a key beside its row.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// A state that is written.
    pub(crate) state: Option<NewState>,
    pub(crate) fingerprints: Option<String>,
    pub(crate) removed: Vec<i64>,
    pub(crate) pinned: Option<(i64, bool)>,
    pub(crate) clears_dropped: bool,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) quarantined: Option<Vec<u8>>,
    /// A line at the end of the ledger.
    pub(crate) line: Option<String>,
    /// Whether all states, dropped items, damaged documents and lines of the ledger go.
    pub(crate) forgets: bool,
    /// Until when the claim stands that lets the writer in.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// A state that is written: another, or in the place of the one with this number.
#[derive(Debug)]
pub(crate) struct NewState {
    number: i64,
    task: i64,
    modified: DateTime<Utc>,
    text: Vec<u8>,
}

/// What became of a write of which no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// Not yet.
    Open,
    /// Another came first, so it never will be.
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

    /// The document; an error where the text is none, or too long.
    pub(crate) fn stored(&self, max_bytes: u64) -> Result<Stored> {
        Stored::read(&self.text, Some(self.modified), self.bytes, max_bytes)
    }

    /// Its name among the entries of the history.
    pub(crate) fn entry(&self) -> EntryId {
        id_of(self.number)
    }
}

/// The name of a state of this number.
pub(crate) fn id_of(number: i64) -> EntryId {
    number.unsigned_abs().into()
}

impl KeyRow {
    /// Reads a key; under a lock that keeps other writers out, if that is wanted.
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

    /// The document that is there.
    pub(crate) fn present(&self) -> Option<&State> {
        let mut states = self.states.iter();
        states.find(|state| Some(state.number) == self.present)
    }

    /// The states that are entries of the history, newest first: all but the present one, which is one once it is pinned.
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

    /// A fence that is higher than all before.
    pub(crate) fn next_fence(&self) -> Fence {
        Fence::new(self.fence.unsigned_abs() + 1)
    }

    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// What became of a write that went on from this version and drew this number.
    pub(crate) fn fate(&self, version: i64, write: i64) -> Fate {
        match self.version - version {
            _ if self.writes.contains(&write) => Fate::Done,
            ..=0 => Fate::Open,
            _ if self.writes.len() < KNOWN_HANDS => Fate::Lost,
            // An earlier one would have given its place to it.
            _ if self.writes.iter().any(|known| known >> 20 == write >> 20) => Fate::Lost,
            _ => Fate::NotKnown,
        }
    }

    /// Ends the present task, if it has a state: all of them are of an earlier one from now on.
    pub(crate) fn end_task(&mut self) {
        if self.states.iter().any(|state| state.task == self.task) {
            self.task += 1;
        }
    }

    /// Makes a text the present state. What it replaces is in the history, unless that is skipped; what is too old by then goes.
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

    /// Makes a text the newest state of the history of a key without a document. So many tasks end after it.
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

    /// Adds a line to the ledger, where it has so many; `None` where it has another number.
    pub(crate) fn add_to_ledger(&self, line: &str, at: usize) -> Option<Change> {
        let is_next = usize::try_from(self.ledger) == Ok(at);
        is_next.then(|| Change {
            line: Some(line.to_owned()),
            ..Change::default()
        })
    }

    /// From now on nothing is known of the key but the fence; `false` where it is so already.
    pub(crate) fn forget(&mut self, claim: Option<&Claim>) -> Result<bool> {
        let has_owner = claim.is_some_and(|claim| !claim.is_only_fence());
        let was_known = self.last > 0 || self.ledger > 0 || has_owner;
        if let Some(claim) = claim {
            self.set_claim(&Claim::only_fence(claim.fence))?;
        }
        (self.present, self.last, self.task) = (None, 0, 0);
        Ok(was_known)
    }

    /// From now on there is no document; its last state is in the history.
    pub(crate) fn set_absent(&mut self) {
        self.present = None;
    }

    /// The numbers of the entries of the history that are beyond the limits, but for one that is spared.
    pub(crate) fn too_old(&self, spared: Option<i64>, keep: &Keep, now: DateTime<Utc>) -> Vec<i64> {
        let mut gone = self.beyond(self.present, keep, now);
        gone.retain(|number| Some(*number) != spared);
        gone
    }

    /// The numbers of the states beyond the limits, newest first, where this one is present.
    fn beyond(&self, present: Option<i64>, keep: &Keep, now: DateTime<Utc>) -> Vec<i64> {
        let is_loose = |state: &&State| !state.is_pinned && Some(state.number) != present;
        let loose: Vec<&State> = self.states.iter().filter(is_loose).collect();
        let entries = loose
            .iter()
            .map(|state| (Some(state.modified), state.bytes));
        let beyond = keep.beyond(Keep::COUNT, entries, SystemTime::from(now));
        beyond.into_iter().map(|at| loose[at].number).collect()
    }

    /// Writes the row and what changed beside it, with the number that this write drew; `false` where another writer was faster,
    /// or the writer's claim ran out meanwhile. Ends the transaction that the row was read in, if there is one.
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

/// The lines of the ledger of a key, oldest first.
pub(crate) fn ledger(session: &mut Session, key: &Key) -> Step<Vec<String>> {
    let sql = "SELECT position, line FROM ledger WHERE key = $1 ORDER BY position";
    let mut lines = Vec::new();
    for row in session.query(sql, &[&key.as_str()])? {
        let at = lines.len();
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

/// The fingerprints of the document of this revision.
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

/// The keys with a document, in order: those that the query wants, no more than so many, each in a row that [`listed`] reads,
/// with their documents as long as they have no more bytes together.
pub(crate) fn list(
    session: &mut Session,
    query: &Query,
    most: Option<i64>,
    bytes: i64,
) -> Step<Vec<Row>> {
    let prefix = query.prefix.as_deref().unwrap_or_default();
    let after = query.after.as_ref().map_or("", Key::as_str);
    // No key with the prefix is behind this, for none is longer.
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
    let lines = "(SELECT coalesce(max(l.position) + 1, 0) FROM ledger AS l WHERE l.key = c.name)";
    match session.query(&sql(lines), &values) {
        // One that only reads may find the tables of an earlier version, which had no ledgers.
        Err(failure) if failure.is_no_table() => session.query(&sql("0::bigint"), &values),
        rows => rows,
    }
}

/// A key of a page: its name, or what it has, with the document and the claim where they are wanted and there is room.
pub(crate) fn listed(
    row: &Row,
    has_content: bool,
    max_bytes: u64,
) -> Result<Result<Listed, String>, tokio_postgres::Error> {
    let (version, write): (i64, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
    let Ok(key) = Key::new(row.try_get::<_, &str>(0)?) else {
        return Ok(Err(row.try_get(0)?));
    };
    // A copy that was brought back repeats its versions, and not the numbers that writes draw.
    let mut of = String::with_capacity(2 * 16 + 1);
    let _ = write!(of, "{version:x}-{:x}", write.unwrap_or_default());
    let lines: i64 = row.try_get(3)?;
    let listed = Listed::from(key)
        .with_version(of)
        .with_ledger(ListedLedger::of_lines(lines.unsigned_abs()));
    if !has_content || row.try_get::<_, Option<&[u8]>>(10)?.is_none() {
        return Ok(Ok(listed));
    }
    let claim: Option<&str> = row.try_get(4)?;
    let claim = claim.map(serde_json::from_str).transpose();
    let stored = State::of(row, 5)?.map(|state| state.stored(max_bytes));
    Ok(Ok(match (stored, claim) {
        (Some(Ok(stored)), Ok(claim)) => listed.with_content(stored, claim),
        // What cannot be read has its error in `load`, and in that of its claim.
        _ => listed,
    }))
}

/// The names of the keys without a document whose claim was not given back, or cannot be read.
pub(crate) fn claimed_without_document(session: &mut Session) -> Step<Vec<String>> {
    // Of a forgotten key only the fence stays, which has no owner.
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

/// The error for what another program wrote into the tables.
fn unreadable(what: &str, error: serde_json::Error) -> Error {
    let detail = format!("the {what} in the database cannot be read; correct it there");
    Error::new(ErrorKind::Unreadable { detail }).with_source(error)
}
