//! The rows of a key, and each statement that reads or writes them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_checkpoint::store::{EntryId, Keep, Stored};
use agent_checkpoint::{Claim, Dropped, Error, ErrorKind, Fence, Key, Result, Revision};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::database::layout_number;
use crate::failure::{Step, other};

/// How many damaged documents are kept for each key. Older ones are removed.
const QUARANTINED: usize = 8;

/// How many states a key can have, because of the ids that the layout gives them.
const PLACES: i64 = 1 << 20;

/// A text longer than this is stored in overflow pages.
const PAGE_BYTES: u64 = 4096;

/// The row of a key, as it was read before a write.
#[derive(Debug, Default)]
pub(crate) struct KeyRow {
    /// `None` if the key has no row yet.
    pub(crate) id: Option<i64>,
    present: Option<i64>,
    last: i64,
    task: i64,
    claim: Option<String>,
    fence: i64,
    /// The number of lines of the ledger; filled in only by a listing that asks for it.
    pub(crate) ledger: Option<u64>,
    /// The revision that the fingerprints belong to, and the fingerprints.
    pub(crate) fingerprints: Option<(String, String)>,
    /// Newest first.
    states: Vec<State>,
}

/// One state of a document. Its text may be damaged.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: i64,
    pub(crate) number: i64,
    pub(crate) task: i64,
    pub(crate) is_pinned: bool,
    pub(crate) modified: SystemTime,
    /// The size of the whole text, even if the text was not read.
    pub(crate) bytes: u64,
    text: Vec<u8>,
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
}

impl State {
    fn of(row: &Row<'_>) -> rusqlite::Result<State> {
        let text = row.get_ref(6)?.as_bytes_or_null()?;
        Ok(State {
            id: row.get(0)?,
            number: row.get(1)?,
            task: row.get(2)?,
            is_pinned: row.get(3)?,
            modified: time(row.get(4)?),
            bytes: row.get::<_, i64>(5)?.unsigned_abs(),
            text: text.unwrap_or_default().to_vec(),
        })
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
        self.number.unsigned_abs().into()
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

impl KeyRow {
    pub(crate) fn find(
        connection: &Connection,
        key: &Key,
        wanted: Wanted,
        max_bytes: u64,
    ) -> Step<KeyRow> {
        let sql = "SELECT id, present, last, task, claim, fence, fingerprints_of, fingerprints FROM keys WHERE name = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_row([key.as_str()], |row| {
            Ok(KeyRow {
                ledger: None,
                id: row.get(0)?,
                present: row.get(1)?,
                last: row.get(2)?,
                task: row.get(3)?,
                claim: row.get(4)?,
                fence: row.get(5)?,
                fingerprints: row.get::<_, Option<_>>(6)?.zip(row.get(7)?),
                states: Vec::new(),
            })
        });
        let Some(mut found) = found.optional()? else {
            return Ok(KeyRow::default());
        };
        let first = found.id.unwrap_or_default() * PLACES;
        let (first, last) = match (wanted, found.present) {
            (Wanted::Present, None) => return Ok(found),
            (Wanted::Present, Some(present)) => (present, present),
            _ => (first, first + PLACES - 1),
        };
        let (all, place, number) = match wanted {
            Wanted::Texts => (true, None, None),
            Wanted::Numbered(number) => (false, None, Some(number)),
            Wanted::Present | Wanted::States => (false, found.present, None),
        };
        // SQLite reads a text that is a column of the result from disk whole, even if it is not used.
        let sql = "SELECT id, number, task, is_pinned, modified, octet_length(text), \
                   CASE WHEN (id = ?5 OR ?4 OR number = ?6) AND octet_length(text) <= ?3 THEN text END \
                   FROM states WHERE id BETWEEN ?1 AND ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let most = i64::try_from(max_bytes).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![first, last, most, all, place, number])?;
        while let Some(row) = rows.next()? {
            found.states.push(State::of(row)?);
        }
        found.states.sort_by_key(|state| Reverse(state.number));
        match (found.present, found.present()) {
            (Some(place), None) => {
                let detail = format!(
                    "row {place} of the table `states`, its document, is missing; bring the database back from a copy, or set \
                     `present` of its row in `keys` to NULL"
                );
                Err(Error::new(ErrorKind::Unreadable { detail }).into())
            }
            _ => Ok(found),
        }
    }

    /// The present document, if there is one.
    pub(crate) fn present(&self) -> Option<&State> {
        let mut states = self.states.iter();
        states.find(|state| Some(state.id) == self.present)
    }

    /// The entries of the history, newest first: all states except the present one, which is an entry only while it is
    /// pinned.
    pub(crate) fn past(&self) -> impl Iterator<Item = &State> {
        let is_entry = |state: &&State| state.is_pinned || Some(state.id) != self.present;
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

    /// A text that differs after each write; `None` if there is no document. After a backup is restored the numbers
    /// repeat, but the times do not.
    pub(crate) fn version(&self) -> Option<String> {
        let modified = self.present()?.modified.duration_since(UNIX_EPOCH);
        let micros = modified.unwrap_or_default().as_micros();
        let claim = self.claim.as_deref().unwrap_or_default();
        let all = format!("{} {micros} {claim}", self.last);
        Some(Revision::of(all.as_bytes()).to_string())
    }

    /// A fence that is higher than all earlier ones.
    pub(crate) fn next_fence(&self) -> Fence {
        Fence::new(self.fence.unsigned_abs() + 1)
    }

    /// The id of the row, which is inserted if it is missing.
    pub(crate) fn id(&mut self, connection: &Connection, key: &Key) -> Step<i64> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let mut statement = connection.prepare_cached("INSERT INTO keys (name) VALUES (?1)")?;
        let id = statement.insert([key.as_str()])?;
        self.id = Some(id);
        Ok(id)
    }

    /// Ends the present task if it has a state. All states so far then belong to earlier tasks.
    pub(crate) fn end_task(&mut self) {
        if self.states.iter().any(|state| state.task == self.task) {
            self.task += 1;
        }
    }

    /// Makes a text the present state: in the row `in_place`, or else as a new state. A new state removes those that
    /// exceed the limits.
    pub(crate) fn write(
        &mut self,
        connection: &Connection,
        id: i64,
        in_place: Option<i64>,
        text: &str,
        keep: &Keep,
        now: DateTime<Utc>,
    ) -> Step<()> {
        // Each write has its own number, which `version` relies on.
        self.last += 1;
        let place = match in_place {
            Some(place) => place,
            None => {
                let mut gone = self.beyond(None, keep, now);
                // Overwriting a row costs less than deleting one and inserting another.
                let place = match gone.pop() {
                    Some(state) => state.id,
                    None => self.free_place(id)?,
                };
                remove(connection, gone)?;
                place
            }
        };
        self.put_state(connection, place, text, now)?;
        self.present = Some(place);
        self.update(connection)
    }

    /// Removes all rows of the key except the fence. Returns whether there was anything else.
    pub(crate) fn forget(&self, connection: &Connection, claim: Option<&Claim>) -> Step<bool> {
        let Some(id) = self.id else {
            return Ok(false);
        };
        let first = id * PLACES;
        let mut gone = connection.execute(
            "DELETE FROM states WHERE id BETWEEN ?1 AND ?2",
            [first, first + PLACES - 1],
        )?;
        gone += connection.execute("DELETE FROM dropped WHERE key = ?1", [id])?;
        gone += connection.execute("DELETE FROM quarantine WHERE key = ?1", [id])?;
        gone += connection.execute("DELETE FROM ledger WHERE key = ?1", [id])?;
        let Some(claim) = claim else {
            connection.execute("DELETE FROM keys WHERE id = ?1", [id])?;
            return Ok(gone > 0);
        };
        connection.execute(
            "UPDATE keys SET present = NULL, last = 0, task = 0, fingerprints = NULL, fingerprints_of = NULL WHERE id = ?1",
            [id],
        )?;
        set_claim(connection, id, &Claim::only_fence(claim.fence))?;
        Ok(gone > 0 || !claim.is_only_fence())
    }

    /// Adds a text as the newest state to the history of a key without a document. `tasks_ended` is how many tasks
    /// ended after that state.
    pub(crate) fn append(
        &mut self,
        connection: &Connection,
        key: &Key,
        text: &str,
        modified: DateTime<Utc>,
        tasks_ended: usize,
    ) -> Step<EntryId> {
        let id = self.id(connection, key)?;
        self.last += 1;
        let place = self.free_place(id)?;
        self.put_state(connection, place, text, modified)?;
        let ended = i64::try_from(tasks_ended).unwrap_or(i64::MAX);
        self.task = self.task.saturating_add(ended);
        self.update(connection)?;
        Ok(self.last.unsigned_abs().into())
    }

    fn put_state(
        &self,
        connection: &Connection,
        place: i64,
        text: &str,
        modified: DateTime<Utc>,
    ) -> Step<()> {
        let is_long = |state: &State| state.id == place && state.bytes > PAGE_BYTES;
        if self.states.iter().any(is_long) {
            // The new text takes the pages that this one frees. Otherwise SQLite writes other pages and overwrites
            // these as well.
            let sql = "UPDATE states SET text = '' WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([place])?;
        }
        let sql = "INSERT OR REPLACE INTO states (id, number, task, modified, text) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = connection.prepare_cached(sql)?;
        let modified = modified.timestamp_micros();
        statement.execute(params![place, self.last, self.task, modified, text])?;
        Ok(())
    }

    /// Marks the document as absent. Its last state stays in the history.
    pub(crate) fn set_absent(&mut self, connection: &Connection) -> Step<()> {
        self.present = None;
        self.fingerprints = None;
        self.update(connection)
    }

    fn update(&self, connection: &Connection) -> Step<()> {
        let sql = "UPDATE keys SET present = ?2, last = ?3, task = ?4, fingerprints_of = ?5, fingerprints = ?6 WHERE id = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let (id, present, last) = (self.id, self.present, self.last);
        let of = self.fingerprints.as_ref().map(|(of, _)| of);
        let fingerprints = self.fingerprints.as_ref().map(|(_, text)| text);
        statement.execute(params![id, present, last, self.task, of, fingerprints])?;
        Ok(())
    }

    /// Removes and returns the entries of the history that exceed the limits, except `spared`.
    pub(crate) fn prune(
        &self,
        connection: &Connection,
        spared: Option<i64>,
        keep: &Keep,
        now: DateTime<Utc>,
    ) -> Step<Vec<EntryId>> {
        let mut gone = self.beyond(self.present, keep, now);
        gone.retain(|state| Some(state.number) != spared);
        let ids = gone.iter().map(|state| state.entry()).collect();
        remove(connection, gone)?;
        Ok(ids)
    }

    /// The states that exceed the limits, newest first. `present` is not among them.
    fn beyond(&self, present: Option<i64>, keep: &Keep, now: DateTime<Utc>) -> Vec<&State> {
        let is_loose = |state: &&State| !state.is_pinned && Some(state.id) != present;
        let loose: Vec<&State> = self.states.iter().filter(is_loose).collect();
        let entries = loose
            .iter()
            .map(|state| (Some(state.modified), state.bytes));
        let beyond = keep.beyond(Keep::COUNT, entries, SystemTime::from(now));
        beyond.into_iter().map(|at| loose[at]).collect()
    }

    /// The first free id among the states of a key.
    fn free_place(&self, id: i64) -> Result<i64> {
        let mut taken: Vec<i64> = self.states.iter().map(|state| state.id).collect();
        taken.sort_unstable();
        let first = id * PLACES;
        let free = (first..).zip(&taken).find(|(place, taken)| place != *taken);
        let place = free.map_or(first + taken.len() as i64, |(place, _)| place);
        // The next id belongs to another key.
        match place - first {
            PLACES.. => {
                let message = format!(
                    "has {PLACES} states, which is the most there can be; prune its history"
                );
                Err(other("history-full", message))
            }
            _ => Ok(place),
        }
    }
}

fn remove(connection: &Connection, states: Vec<&State>) -> Step<()> {
    for state in states {
        remove_state(connection, state.id)?;
    }
    Ok(())
}

pub(crate) fn remove_state(connection: &Connection, state: i64) -> Step<()> {
    let mut statement = connection.prepare_cached("DELETE FROM states WHERE id = ?1")?;
    statement.execute([state])?;
    Ok(())
}

pub(crate) fn pin(connection: &Connection, state: i64, is_pinned: bool) -> Step<()> {
    let mut statement =
        connection.prepare_cached("UPDATE states SET is_pinned = ?2 WHERE id = ?1")?;
    statement.execute(params![state, is_pinned])?;
    Ok(())
}

pub(crate) fn set_claim(connection: &Connection, id: i64, claim: &Claim) -> Step<()> {
    let text = serde_json::to_string(claim).map_err(|error| unreadable("claim", error))?;
    let sql = "UPDATE keys SET claim = ?2, fence = max(fence, ?3) WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let fence = i64::try_from(claim.fence.number()).unwrap_or(i64::MAX);
    statement.execute(params![id, text, fence])?;
    Ok(())
}

pub(crate) fn add_dropped(connection: &Connection, id: i64, items: &[Dropped]) -> Step<()> {
    let sql = "INSERT OR IGNORE INTO dropped (key, digest, item, text) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = connection.prepare_cached(sql)?;
    for dropped in items {
        let item = serde_json::to_string(dropped).map_err(|error| unreadable("item", error))?;
        let whole = [item.as_str(), dropped.text.as_deref().unwrap_or_default()].join("\n");
        let digest = Revision::of(whole.as_bytes()).to_string();
        statement.execute(params![id, digest, item, dropped.text])?;
    }
    Ok(())
}

pub(crate) fn clear_dropped(connection: &Connection, id: i64) -> Step<()> {
    let mut statement = connection.prepare_cached("DELETE FROM dropped WHERE key = ?1")?;
    statement.execute([id])?;
    Ok(())
}

/// The newest `most` dropped items, oldest first.
pub(crate) fn dropped(connection: &Connection, key: &Key, most: usize) -> Step<Vec<Dropped>> {
    let sql = "SELECT item, d.text FROM dropped d JOIN keys k ON d.key = k.id \
               WHERE k.name = ?1 ORDER BY d.id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![key.as_str(), most])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let item = row.get_ref(0)?.as_str()?;
        let mut item: Dropped =
            serde_json::from_str(item).map_err(|error| unreadable("dropped item", error))?;
        item.text = row.get(1)?;
        all.push(item);
    }
    all.reverse();
    Ok(all)
}

/// The lines of the ledger of a key from the line `from` on, oldest first.
pub(crate) fn ledger(connection: &Connection, key: &Key, from: usize) -> Step<Vec<String>> {
    // A read-only store may find tables of an earlier version, which had no ledgers.
    if layout_number(connection)? < 2 {
        return Ok(Vec::new());
    }
    let sql = "SELECT position, line FROM ledger l JOIN keys k ON l.key = k.id \
               WHERE k.name = ?1 AND position >= ?2 ORDER BY position";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![key.as_str(), from as i64])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let at = from + lines.len();
        if row.get::<_, i64>(0)? != at as i64 {
            let detail = format!(
                "line {at} of its ledger is missing in the database, so it is unknown which effects were begun or done; bring \
                 the database back from a copy"
            );
            return Err(Error::new(ErrorKind::Unreadable { detail }).into());
        }
        lines.push(row.get(1)?);
    }
    Ok(lines)
}

/// The position of the next line of a ledger.
pub(crate) fn end_of_ledger(connection: &Connection, id: i64) -> Step<i64> {
    let sql = "SELECT coalesce(max(position) + 1, 0) FROM ledger WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([id], |row| row.get(0))?)
}

pub(crate) fn add_to_ledger(connection: &Connection, id: i64, line: &str, at: i64) -> Step<()> {
    let sql = "INSERT INTO ledger (key, position, line) VALUES (?1, ?2, ?3)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![id, at, line])?;
    Ok(())
}

/// Stores a damaged text once and returns the id of its row. Only the newest ones are kept.
pub(crate) fn quarantine(connection: &Connection, id: i64, text: &[u8]) -> Step<i64> {
    let digest = Revision::of(text).to_string();
    connection.execute(
        "INSERT INTO quarantine (key, digest, text) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![id, digest, text],
    )?;
    let row = connection.query_row(
        "SELECT id FROM quarantine WHERE key = ?1 AND digest = ?2",
        params![id, digest],
        |row| row.get(0),
    )?;
    connection.execute(
        "DELETE FROM quarantine WHERE key = ?1 AND id <> ?2 AND id NOT IN \
         (SELECT id FROM quarantine WHERE key = ?1 ORDER BY id DESC LIMIT ?3)",
        params![id, row, QUARANTINED as i64],
    )?;
    Ok(row)
}

/// Reads the keys with a document in order, from `from` on and after `after`, or only those in `only`. Texts of up to
/// `max_bytes` are read with them, and the lengths of ledgers if `has_ledgers`. It stops when `take` returns `false`.
pub(crate) fn list(
    connection: &Connection,
    (from, after): (&str, &str),
    (only, has_ledgers): (Option<&BTreeSet<Key>>, bool),
    max_bytes: u64,
    mut take: impl FnMut(String, KeyRow) -> bool,
) -> Step<()> {
    let only = only.map(|only| serde_json::Value::from_iter(only.iter().map(Key::as_str)));
    let is_one = match only {
        Some(_) => "k.name IN (SELECT value FROM json_each(?4))",
        None => "?4 IS NULL",
    };
    // A read-only store may find tables of an earlier version.
    let ledger = match layout_number(connection)? {
        _ if !has_ledgers => "NULL",
        ..2 => "0",
        _ => "(SELECT coalesce(max(position) + 1, 0) FROM ledger l WHERE l.key = k.id)",
    };
    let sql = format!(
        "SELECT s.id, number, s.task, is_pinned, modified, octet_length(text), \
               CASE WHEN octet_length(text) <= ?3 THEN text END, k.name, k.last, k.claim, k.present, {ledger} \
               FROM keys k LEFT JOIN states s ON s.id = k.present \
               WHERE k.present IS NOT NULL AND k.name >= ?1 AND k.name > ?2 AND {is_one} ORDER BY k.name"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let most = i64::try_from(max_bytes).unwrap_or(i64::MAX);
    let only = only.map(|only| only.to_string());
    let mut rows = statement.query(params![from, after, most, only])?;
    while let Some(row) = rows.next()? {
        let state = row.get::<_, Option<i64>>(0)?.map(|_| State::of(row));
        let of_key = KeyRow {
            present: row.get(10)?,
            last: row.get(8)?,
            claim: row.get(9)?,
            ledger: row.get::<_, Option<i64>>(11)?.map(i64::unsigned_abs),
            states: state.transpose()?.into_iter().collect(),
            ..KeyRow::default()
        };
        if !take(row.get(7)?, of_key) {
            break;
        }
    }
    Ok(())
}

/// The names of the keys without a document whose claim was not released or cannot be read.
pub(crate) fn claimed_without_document(connection: &Connection) -> Step<Vec<String>> {
    let sql = "SELECT name, claim FROM keys WHERE present IS NULL AND claim IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let claim = serde_json::from_str::<Claim>(&row.get::<_, String>(1)?);
        if !claim.is_ok_and(|claim| claim.released) {
            names.push(row.get(0)?);
        }
    }
    Ok(names)
}

fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = match micros {
        0.. => UNIX_EPOCH.checked_add(distance),
        _ => UNIX_EPOCH.checked_sub(distance),
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// The error for content of the tables that only another program can have written.
fn unreadable(what: &str, error: serde_json::Error) -> Error {
    let detail = format!("the {what} in the database cannot be read; correct it there");
    Error::new(ErrorKind::Unreadable { detail }).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_never_takes_a_place_of_another_key() {
        let of_place = |id| State {
            id,
            number: id,
            task: 0,
            is_pinned: false,
            modified: UNIX_EPOCH,
            bytes: 0,
            text: Vec::new(),
        };
        let mut row = KeyRow {
            states: (2 * PLACES..3 * PLACES).map(of_place).collect(),
            ..KeyRow::default()
        };
        assert!(
            row.free_place(2)
                .is_err_and(|error| error.code() == "history-full")
        );
        row.states.remove(7);
        assert!(row.free_place(2).is_ok_and(|place| place == 2 * PLACES + 7));
    }
}
