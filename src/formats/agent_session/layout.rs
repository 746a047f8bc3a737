//! The protocol's files: their places, and the evidence that a file is one of them.

use std::path::Path;

use chrono::{DateTime, NaiveDateTime, Utc};

use super::AgentType;
use crate::checkpoint::{
    Archive, Backups, Error, ErrorKind, Evidence, FileRole, Key, Layout, OpenEnum, Result,
    Timestamp, is_unique_number,
};
use crate::json::Document;

/// The folder of the checkpoints.
const FOLDER: &str = "agent_checkpoints";
/// The folder of the backups, in that of the checkpoints.
pub(super) const BACKUPS: &str = "backups";
/// How many backups of an agent are kept.
const BACKUPS_KEPT: usize = 10;
const EXTENSION: &str = ".json";
const ARCHIVES: [Archive; 3] = [Archive::Crashed, Archive::Aborted, Archive::Complete];

pub(super) fn layout() -> Layout {
    Layout {
        file_name,
        role,
        key_in: Some(id_in),
        archive_stem: |stem, archive, now| {
            format!("{stem}_{}_{}", archive.as_str(), now.timestamp())
        },
        backups: Some(
            Backups::new(BACKUPS, backup_stem, is_backup, BACKUPS_KEPT)
                .with_stamp_in(last_checkpoint),
        ),
        only_file: None,
    }
}

fn last_checkpoint(document: &Document) -> Option<DateTime<Utc>> {
    let text = document.get("/last_checkpoint")?.as_str()?.into_owned();
    Some(Timestamp::parse(text).time()?.to_utc())
}

/// The file of an agent: its id in lower case with `-` as `_`, without a leading `agent_`. Whatever
/// no file name may have is written as `%XX`, so no id leaves the folder; so is the last character of an
/// id that reads like an archive or a backup.
pub(super) fn file_name(key: &Key) -> Result<String> {
    let refused = |reason| {
        let text = key.to_string();
        Error::new(ErrorKind::InvalidKey { text, reason })
    };
    let stem = plain_stem(key.as_str());
    let reads_like_archive = is_archive_or_backup(&stem);
    let stem = Key::new(stem).map_err(|_| refused("nothing of it is left for a file name"))?;
    let name = (Layout::default().file_name)(&stem)?;
    match name.strip_suffix(EXTENSION).and_then(split_last) {
        Some((start, last)) if reads_like_archive => Ok(format!("{start}%{last:02X}{EXTENSION}")),
        _ => Ok(name),
    }
}

/// A stem without its last character, and that character.
fn split_last(stem: &str) -> Option<(&str, u8)> {
    let (last, _) = stem.as_bytes().split_last()?;
    Some((stem.get(..stem.len() - 1)?, *last))
}

/// The stem of which [`file_name`] made this one because it reads like an archive or a backup.
fn plain_of_encoded(stem: &str) -> Option<String> {
    let (start, hex) = stem.rsplit_once('%')?;
    let last = u8::from_str_radix(hex, 16).ok()?;
    let plain = format!("{start}{}", char::from(last));
    let name = file_name(&Key::new(plain.as_str()).ok()?).ok()?;
    (name.strip_suffix(EXTENSION) == Some(stem)).then_some(plain)
}

/// With [`ID_IS_EMPTY`], what [`is_agent_id`] takes, of at most [`MAX_ID`] characters: neither control characters nor
/// white space at the ends.
#[cfg(feature = "schema")]
pub(super) const ID_PATTERN: &str = concat!(
    "^[^\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]",
    "([^\\u0000-\\u001f\\u007f-\\u009f]*",
    "[^\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000])?$"
);

/// An id of which nothing is left when the leading `agent-` goes. A pattern of its own, since not every validator
/// has lookarounds.
#[cfg(feature = "schema")]
pub(super) const ID_IS_EMPTY: &str = concat!(
    "^[Aa][Gg][Ee][Nn][Tt][_-]($|",
    "[\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000])"
);

/// The longest id, in characters.
const MAX_ID: usize = Key::MAX_BYTES;

/// Whether a text is the id of an agent: 1 to 200 characters, none of them a control character, without white space
/// at its ends, also where a leading `agent-` is left out. Whether a store can name a file after it is another
/// matter: that counts bytes.
pub(super) fn is_agent_id(text: &str) -> bool {
    let stem = plain_stem(text);
    text.chars().count() <= MAX_ID
        && !text.chars().any(char::is_control)
        && text.trim() == text
        && !stem.is_empty()
        && stem.trim_start() == stem
}

/// Whether two ids are spellings of one agent: `secondary_a` has the file of `Secondary-A`.
#[must_use]
pub fn same_agent(one: &str, other: &str) -> bool {
    plain_stem(one) == plain_stem(other)
}

/// A backup copied beside the checkpoints is no second checkpoint of its agent.
fn is_archive_or_backup(stem: &str) -> bool {
    archived(stem).is_some() || backed_up(stem).is_some()
}

fn plain_stem(id: &str) -> String {
    let id = id.to_lowercase().replace('-', "_");
    match id.strip_prefix("agent_") {
        Some(rest) => rest.to_owned(),
        None => id,
    }
}

/// Whether a key leads to the file of this name, or to an archive or a backup of it.
pub(super) fn fits(name: &str, key: &Key) -> bool {
    let own = name.strip_suffix(EXTENSION).unwrap_or(name);
    let stem = plain_stem(key.as_str());
    archived(&stem) == Some(own)
        || backed_up(key.as_str()).is_some_and(|(stem, _)| stem == own)
        || file_name(key).is_ok_and(|other| other == name)
}

fn role(name: &str) -> FileRole {
    let Some(stem) = name.strip_suffix(EXTENSION) else {
        return FileRole::Foreign;
    };
    if is_archive_or_backup(stem) {
        return FileRole::Archive;
    }
    match (Layout::default().role)(name) {
        // A name is no id: who the agent is stands in the file.
        FileRole::Current(Some(key)) if plain(key.as_str()) => FileRole::Current(None),
        _ if plain_of_encoded(stem).is_some() => FileRole::Current(None),
        _ => FileRole::Foreign,
    }
}

fn plain(stem: &str) -> bool {
    !stem.contains('-') && stem.to_lowercase() == stem
}

/// The stem of an archived file's agent: `secondary_a_crashed_1768488300` is one of `secondary_a`.
fn archived(stem: &str) -> Option<&str> {
    ARCHIVES.iter().find_map(|archive| {
        let (agent, number) = stem.rsplit_once(&format!("_{}_", archive.as_str()))?;
        // The counter is separated by `-`, which an id becomes `_`.
        (!agent.is_empty() && is_unique_number(&number.replacen('_', "-", 1))).then_some(agent)
    })
}

fn backup_stem(stem: &str, now: DateTime<Utc>) -> String {
    format!("{stem}_{}", now.format("%Y%m%d_%H%M%S"))
}

fn is_backup(name: &str, stem: &str) -> bool {
    backup_of(name, stem).is_some()
}

/// When a backup was made, and which of that second it is.
pub(super) type BackupTime = (NaiveDateTime, u32);

/// The agent's stem and the time in the name of a backup, its ending left out. All of the name must
/// fit: `secondary_a_new_20260115_143000` is none of `secondary_a`.
fn backed_up(stem: &str) -> Option<(&str, BackupTime)> {
    // `-` parts the store's own counter; a stem has none.
    let (stem, counter) = match stem.split_once('-') {
        Some((stem, counter)) if is_unique_number(counter) => (stem, counter.parse().ok()?),
        Some(_) => return None,
        None => (stem, 0),
    };
    let (agent, time) = stem.split_at_checked(stem.len().checked_sub(16)?)?;
    let time = time.strip_prefix('_')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (day, hour) = time.split_once('_')?;
    if agent.is_empty() || day.len() != 8 || !digits(day) || !digits(hour) {
        return None;
    }
    let time = NaiveDateTime::parse_from_str(time, "%Y%m%d_%H%M%S").ok()?;
    Some((agent, (time, counter)))
}

/// The stem of an agent's file.
pub(super) fn stem_of(agent: &Key) -> Result<String> {
    let name = file_name(agent)?;
    Ok(name.strip_suffix(EXTENSION).unwrap_or(&name).to_owned())
}

/// The time in the name of a backup, where it is one of the agent with this stem.
pub(super) fn backup_of(name: &str, stem: &str) -> Option<BackupTime> {
    let (agent, time) = backed_up(name.strip_suffix(EXTENSION)?)?;
    (agent == stem).then_some(time)
}

/// The id of an agent that takes over from another and begins a file of its own, `{stem}_new.json`.
#[must_use]
pub fn take_over_id(agent_id: &str) -> String {
    format!("{agent_id}-New")
}

/// Who the agent is, from the content of its file. Some agents wrote it as their role, where others have a type.
fn id_in(document: &Document) -> Option<Key> {
    let text = |name| document.root().get(name)?.as_str();
    let role = || text("agent_role").filter(|role| !AgentType::from(role.as_ref()).is_known());
    Key::new(text("agent_id").or_else(role)?).ok()
}

/// Members that tell the format where the place does not.
const DISTINCTIVE: [&str; 8] = [
    "agent_id",
    "agent_type",
    "last_checkpoint",
    "next_checkpoint_expected",
    "can_resume",
    "recovery_instructions",
    "coordination_state",
    "recovery_notes",
];

pub(super) fn recognise(path: &Path, document: Option<&Document>) -> Option<Evidence> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| lies_where_the_protocol_keeps_files(path, name));
    let mut members = Vec::new();
    if let Some(document) = document {
        let root = document.root();
        members.extend(DISTINCTIVE.into_iter().filter(|m| root.get(m).is_some()));
    }
    // One member alone could be anybody's, and so could a place in which there is none.
    if document.is_some() && members.len() < if name.is_some() { 1 } else { 2 } {
        return None;
    }
    Evidence::gather(name, &members)
}

fn lies_where_the_protocol_keeps_files(path: &Path, name: &str) -> bool {
    let is_named = |path: Option<&Path>, name| path.is_some_and(|path| path.ends_with(name));
    let folder = path.parent();
    let stem = name.strip_suffix(EXTENSION);
    if is_named(folder, FOLDER) {
        // Whatever its letters: agents name their files by hand, too.
        return stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
    }
    let above = folder.and_then(Path::parent);
    is_named(folder, BACKUPS)
        && is_named(above, FOLDER)
        && stem.is_some_and(|s| backed_up(s).is_some())
}
