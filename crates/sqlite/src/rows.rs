//! What the tables have of a key: each statement that reads or writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{Keep, Stored};
use agent_checkpoint::{Claim, Dropped, Error, ErrorKind, Key, Result, Revision};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Step;

/// How many damaged documents are kept of one key, the newest.
const QUARANTINED: usize = 8;

/// What is known of a key, before anything is written.
#[derive(Debug, Default)]
pub(crate) struct KeyRow {
    /// `None` where nothing is known yet.
    pub(crate) id: Option<i64>,
    pub(crate) last: i64,
    pub(crate) task: i64,
    claim: Option<String>,
    pub(crate) fingerprints: Option<String>,
    /// The document that is there.
    pub(crate) present: Option<State>,
}

/// One state of a document, which may be damaged.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) number: i64,
    pub(crate) task: i64,
    pub(crate) is_pinned: bool,
    pub(crate) modified: SystemTime,
    /// Of the whole text, also where that was too long to be read.
    pub(crate) bytes: u64,
    text: Vec<u8>,
}

/// The columns of a [`State`]. Parameter `?1` is the most bytes that are read of a text.
const STATE: &str = "s.number, s.task, s.is_pinned, s.modified, octet_length(s.text), \
                     CASE WHEN octet_length(s.text) <= ?1 THEN s.text END";

impl State {
    fn of(row: &Row<'_>, first: usize) -> rusqlite::Result<State> {
        let text = row.get_ref(first + 5)?.as_bytes_or_null()?;
        Ok(State {
            number: row.get(first)?,
            task: row.get(first + 1)?,
            is_pinned: row.get(first + 2)?,
            modified: time(row.get(first + 3)?),
            bytes: row.get::<_, i64>(first + 4)?.unsigned_abs(),
            text: text.unwrap_or_default().to_vec(),
        })
    }

    /// The document; an error where the text is none, or too long.
    pub(crate) fn stored(&self, max_bytes: u64) -> Result<Stored> {
        if self.bytes > max_bytes {
            return Err(Error::new(ErrorKind::TooLarge {
                size: self.bytes,
                limit: max_bytes,
                is_new: false,
            }));
        }
        let mut stored = Stored::new(Document::parse(&self.text)?);
        stored.modified = Some(self.modified);
        Ok(stored)
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

impl KeyRow {
    pub(crate) fn find(connection: &Connection, key: &Key, max_bytes: u64) -> Step<KeyRow> {
        let sql = format!(
            "SELECT k.id, k.last, k.task, k.claim, k.fingerprints, {STATE} FROM keys k \
             LEFT JOIN states s ON k.is_present AND s.key = k.id AND s.number = k.last WHERE k.name = ?2"
        );
        let mut statement = connection.prepare(&sql)?;
        let found = statement.query_row(params![bound(max_bytes), key.as_str()], |row| {
            let is_present = row.get::<_, Option<i64>>(5)?.is_some();
            Ok(KeyRow {
                id: row.get(0)?,
                last: row.get(1)?,
                task: row.get(2)?,
                claim: row.get(3)?,
                fingerprints: row.get(4)?,
                present: is_present.then(|| State::of(row, 5)).transpose()?,
            })
        });
        Ok(found.optional()?.unwrap_or_default())
    }

    /// The last claim.
    pub(crate) fn claim(&self) -> Result<Option<Claim>> {
        let claim = self.claim.as_deref().map(serde_json::from_str);
        claim
            .transpose()
            .map_err(|error| unreadable("claim", error))
    }

    /// The row's id; there is one from now on.
    pub(crate) fn id(&mut self, connection: &Connection, key: &Key) -> Step<i64> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let mut statement = connection.prepare("INSERT INTO keys (name) VALUES (?1)")?;
        let id = statement.insert([key.as_str()])?;
        self.id = Some(id);
        Ok(id)
    }
}

/// Makes a text the present state of a key: in place of the present one, or as another.
pub(crate) fn write_state(
    connection: &Connection,
    id: i64,
    number: i64,
    is_in_place: bool,
    now: DateTime<Utc>,
    text: &str,
) -> Step<()> {
    let sql = match is_in_place {
        true => {
            "UPDATE states SET modified = ?3, text = ?4, task = (SELECT task FROM keys WHERE id = ?1) \
             WHERE key = ?1 AND number = ?2"
        }
        false => {
            "INSERT INTO states (key, number, task, modified, text) \
             SELECT ?1, ?2, task, ?3, ?4 FROM keys WHERE id = ?1"
        }
    };
    let mut statement = connection.prepare(sql)?;
    statement.execute(params![id, number, now.timestamp_micros(), text])?;
    Ok(())
}

/// Notes which state is present, with what belongs to it.
pub(crate) fn set_present(
    connection: &Connection,
    id: i64,
    number: i64,
    fingerprints: Option<&str>,
) -> Step<()> {
    let sql = "UPDATE keys SET is_present = 1, last = ?2, fingerprints = ?3 WHERE id = ?1";
    let mut statement = connection.prepare(sql)?;
    statement.execute(params![id, number, fingerprints])?;
    Ok(())
}

/// From now on there is no document; its last state is in the history.
pub(crate) fn set_absent(connection: &Connection, id: i64) -> Step<()> {
    let mut statement = connection.prepare("UPDATE keys SET is_present = 0 WHERE id = ?1")?;
    statement.execute([id])?;
    Ok(())
}

/// Ends the present task, if it has a state: all of them are of an earlier one from now on.
pub(crate) fn end_task(connection: &Connection, id: i64) -> Step<()> {
    let sql = "UPDATE keys SET task = task + 1 \
               WHERE id = ?1 AND EXISTS (SELECT 1 FROM states s WHERE s.key = ?1 AND s.task = keys.task)";
    connection.prepare(sql)?.execute([id])?;
    Ok(())
}

pub(crate) fn set_claim(connection: &Connection, id: i64, claim: &Claim) -> Step<()> {
    let text = serde_json::to_string(claim).map_err(|error| unreadable("claim", error))?;
    let mut statement = connection.prepare("UPDATE keys SET claim = ?2 WHERE id = ?1")?;
    statement.execute(params![id, text])?;
    Ok(())
}

/// All states of a key, newest first, with the texts that are not too long.
pub(crate) fn states(connection: &Connection, id: i64, max_bytes: u64) -> Step<Vec<State>> {
    let sql = format!("SELECT {STATE} FROM states s WHERE s.key = ?2 ORDER BY s.number DESC");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params![bound(max_bytes), id], |row| State::of(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn state(
    connection: &Connection,
    id: i64,
    number: i64,
    max_bytes: u64,
) -> Step<Option<State>> {
    let sql = format!("SELECT {STATE} FROM states s WHERE s.key = ?2 AND s.number = ?3");
    let mut statement = connection.prepare(&sql)?;
    let parameters = params![bound(max_bytes), id, number];
    let found = statement.query_row(parameters, |row| State::of(row, 0));
    Ok(found.optional()?)
}

pub(crate) fn pin(connection: &Connection, id: i64, number: i64, is_pinned: bool) -> Step<()> {
    let sql = "UPDATE states SET is_pinned = ?3 WHERE key = ?1 AND number = ?2";
    let mut statement = connection.prepare(sql)?;
    statement.execute(params![id, number, is_pinned])?;
    Ok(())
}

pub(crate) fn remove_state(connection: &Connection, id: i64, number: i64) -> Step<()> {
    let sql = "DELETE FROM states WHERE key = ?1 AND number = ?2";
    connection.prepare(sql)?.execute([id, number])?;
    Ok(())
}

/// Removes the states before `present` that are beyond the limits, but for one that is spared, and lists them.
pub(crate) fn prune(
    connection: &Connection,
    id: i64,
    present: Option<i64>,
    spared: Option<i64>,
    keep: &Keep,
    now: DateTime<Utc>,
) -> Step<Vec<i64>> {
    let sql = "SELECT number, modified, octet_length(text) FROM states \
               WHERE key = ?1 AND NOT is_pinned AND number IS NOT ?2 ORDER BY number DESC";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(params![id, present], |row| {
        let bytes = row.get::<_, i64>(2)?.unsigned_abs();
        Ok((row.get::<_, i64>(0)?, (Some(time(row.get(1)?)), bytes)))
    })?;
    let (numbers, entries): (Vec<i64>, Vec<_>) = rows
        .collect::<rusqlite::Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let beyond = keep.beyond(Keep::COUNT, &entries, SystemTime::from(now));
    let gone = beyond.into_iter().map(|at| numbers[at]);
    let gone: Vec<i64> = gone.filter(|number| Some(*number) != spared).collect();
    for number in &gone {
        remove_state(connection, id, *number)?;
    }
    Ok(gone)
}

pub(crate) fn add_dropped(connection: &Connection, id: i64, items: &[Dropped]) -> Step<()> {
    let sql = "INSERT OR IGNORE INTO dropped (key, digest, item, text) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = connection.prepare(sql)?;
    for dropped in items {
        let item = serde_json::to_string(dropped).map_err(|error| unreadable("item", error))?;
        let whole = [item.as_str(), dropped.text.as_deref().unwrap_or_default()].join("\n");
        let digest = Revision::of(whole.as_bytes()).to_string();
        statement.execute(params![id, digest, item, dropped.text])?;
    }
    Ok(())
}

pub(crate) fn clear_dropped(connection: &Connection, id: i64) -> Step<()> {
    let mut statement = connection.prepare("DELETE FROM dropped WHERE key = ?1")?;
    statement.execute([id])?;
    Ok(())
}

/// The newest `most` dropped items, oldest first.
pub(crate) fn dropped(connection: &Connection, key: &Key, most: usize) -> Step<Vec<Dropped>> {
    let sql = "SELECT item, d.text FROM dropped d JOIN keys k ON d.key = k.id \
               WHERE k.name = ?1 ORDER BY d.id DESC LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
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

/// Keeps a damaged text, once, and gives the row in which it is. Of different ones only the newest are kept.
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

/// The names of the keys with a document, in order, behind these two texts; `take` says when there are enough.
pub(crate) fn names(
    connection: &Connection,
    from: &str,
    after: &str,
    mut take: impl FnMut(String) -> bool,
) -> Step<()> {
    let sql = "SELECT name FROM keys WHERE is_present AND name >= ?1 AND name > ?2 ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([from, after])?;
    while let Some(row) = rows.next()? {
        if !take(row.get(0)?) {
            break;
        }
    }
    Ok(())
}

/// A length as SQLite has them.
fn bound(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = match micros {
        0.. => UNIX_EPOCH.checked_add(distance),
        _ => UNIX_EPOCH.checked_sub(distance),
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// The error for what another program wrote into the tables.
fn unreadable(what: &str, error: serde_json::Error) -> Error {
    let detail = format!("the {what} in the database cannot be read; correct it there");
    Error::new(ErrorKind::Unreadable { detail }).with_source(error)
}
