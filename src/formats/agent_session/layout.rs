//! The files of the protocol: where they lie, and how one is recognised.

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
/// The folder of the backups, inside the folder of the checkpoints.
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

/// The file of an agent: its id in lower case with `-` as `_`, without a leading `agent_`. A character that a file name
/// cannot have is written as `%XX`, so no id leaves the folder. The last character is written so, too, when the id
/// would read like an archive or a backup.
pub(super) fn file_name(key: &Key) -> Result<String> {
    let refused = |reason| {
        let text = key.to_string();
        Error::new(ErrorKind::InvalidKey { text, reason })
    };
    let stem = plain_stem(key.as_str());
    let reads_like_archive = is_archive_or_backup(&stem);
    let stem = Key::new(stem).map_err(|_| refused("no character of it can be in a file name"))?;
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

/// Undoes the encoding of [`file_name`] for a stem that would read like an archive or a backup.
fn plain_of_encoded(stem: &str) -> Option<String> {
    let (start, hex) = stem.rsplit_once('%')?;
    let last = u8::from_str_radix(hex, 16).ok()?;
    let plain = format!("{start}{}", char::from(last));
    let name = file_name(&Key::new(plain.as_str()).ok()?).ok()?;
    (name.strip_suffix(EXTENSION) == Some(stem)).then_some(plain)
}

/// Together with [`ID_IS_EMPTY`], the ids that [`is_agent_id`] accepts, up to [`MAX_ID`] characters: no control
/// character anywhere and no white space at the ends.
#[cfg(feature = "schema")]
pub(super) const ID_PATTERN: &str = concat!(
    "^[^\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]",
    "([^\\u0000-\\u001f\\u007f-\\u009f]*",
    "[^\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000])?$"
);

/// Matches an id that is empty without its leading `agent-`. It is a separate pattern because not every validator has
/// lookarounds.
#[cfg(feature = "schema")]
pub(super) const ID_IS_EMPTY: &str = concat!(
    "^[Aa][Gg][Ee][Nn][Tt][_-]($|",
    "[\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000])"
);

/// The longest id, in characters.
const MAX_ID: usize = Key::MAX_BYTES;

/// Whether a text is a valid agent id: 1 to 200 characters, no control characters, no white space at its ends, also
/// after a leading `agent-` is removed. Whether it fits in a file name is checked elsewhere: that limit counts bytes.
pub(super) fn is_agent_id(text: &str) -> bool {
    let stem = plain_stem(text);
    text.chars().count() <= MAX_ID
        && !text.chars().any(char::is_control)
        && text.trim() == text
        && !stem.is_empty()
        && stem.trim_start() == stem
}

/// Whether two ids are spellings of one agent: `secondary_a` and `Secondary-A` have the same file.
#[must_use]
pub fn same_agent(one: &str, other: &str) -> bool {
    plain_stem(one) == plain_stem(other)
}

/// A backup or archive copied beside the checkpoints must not be read as a second checkpoint of its agent.
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

/// Whether a key names this file, or an archive or a backup of it.
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
        // The file name is no id; the content states which agent it is.
        FileRole::Current(Some(key)) if plain(key.as_str()) => FileRole::Current(None),
        _ if plain_of_encoded(stem).is_some() => FileRole::Current(None),
        _ => FileRole::Foreign,
    }
}

fn plain(stem: &str) -> bool {
    !stem.contains('-') && stem.to_lowercase() == stem
}

/// The stem of the agent that an archived file belongs to: `secondary_a` for `secondary_a_crashed_1768488300`.
fn archived(stem: &str) -> Option<&str> {
    ARCHIVES.iter().find_map(|archive| {
        let (agent, number) = stem.rsplit_once(&format!("_{}_", archive.as_str()))?;
        // A counter is separated by `-`; in a stem every `-` became `_`.
        (!agent.is_empty() && is_unique_number(&number.replacen('_', "-", 1))).then_some(agent)
    })
}

fn backup_stem(stem: &str, now: DateTime<Utc>) -> String {
    format!("{stem}_{}", now.format("%Y%m%d_%H%M%S"))
}

fn is_backup(name: &str, stem: &str) -> bool {
    backup_of(name, stem).is_some()
}

/// When a backup was made, and its number within that second.
pub(super) type BackupTime = (NaiveDateTime, u32);

/// The agent's stem and the time in the name of a backup, given without its extension. The whole name must match:
/// `secondary_a_new_20260115_143000` is no backup of `secondary_a`.
fn backed_up(stem: &str) -> Option<(&str, BackupTime)> {
    // `-` separates the store's own counter; a stem has no `-`.
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

/// The time in the name of a backup, if it is a backup of the agent with this stem.
pub(super) fn backup_of(name: &str, stem: &str) -> Option<BackupTime> {
    let (agent, time) = backed_up(name.strip_suffix(EXTENSION)?)?;
    (agent == stem).then_some(time)
}

/// The id for an agent that takes over into its own file, `{stem}_new.json`.
#[must_use]
pub fn take_over_id(agent_id: &str) -> String {
    format!("{agent_id}-New")
}

/// The agent's id from the content of its file. Some agents wrote their id as `agent_role`, which elsewhere holds a
/// type.
fn id_in(document: &Document) -> Option<Key> {
    let text = |name| document.root().get(name)?.as_str();
    let role = || text("agent_role").filter(|role| !AgentType::from(role.as_ref()).is_known());
    Key::new(text("agent_id").or_else(role)?).ok()
}

/// Members by which the format is recognised when the place does not show it.
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
    // Other formats may have one of these members, and any file may lie in the folder, so one fact alone is not enough.
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
        // Agents also name their files by hand, so any spelling is accepted here.
        return stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
    }
    let above = folder.and_then(Path::parent);
    is_named(folder, BACKUPS)
        && is_named(above, FOLDER)
        && stem.is_some_and(|s| backed_up(s).is_some())
}
