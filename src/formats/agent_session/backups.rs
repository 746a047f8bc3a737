//! Finds the newest backup of an agent's checkpoint.
//!
//! A backup's name does not give its age: the protocol's own script stamps names with local time and this library with
//! UTC, so the older of two backups can have the greater name. The age is taken from the backup's `last_checkpoint`, or
//! else from the modification time of its file.

use std::fmt;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::{AgentCheckpoint, layout};
use crate::checkpoint::{Checkpoint, Error, ErrorKind, Key, Result, read, stamp};
use crate::fsio;
use crate::json::Document;

/// The largest backup that is read, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// A file in the folder `backups`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// The name of the file.
    pub name: String,
    /// The parsed content; `None` when the file cannot be read or is no JSON document.
    pub document: Option<Document>,
    /// The modification time of the file, if known.
    pub modified: Option<DateTime<Utc>>,
}

impl Backup {
    /// A backup with this content and no modification time.
    pub fn new(name: impl Into<String>, document: Option<Document>) -> Self {
        Backup {
            name: name.into(),
            document,
            modified: None,
        }
    }

    /// Sets the modification time of the file.
    #[must_use]
    pub fn with_modified(mut self, modified: DateTime<Utc>) -> Self {
        self.modified = Some(modified);
        self
    }
}

/// How the age of a backup was determined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackupAge {
    /// By the `last_checkpoint` in the backup.
    Content(DateTime<Utc>),
    /// By the modification time of its file, since the backup has no `last_checkpoint`.
    File(DateTime<Utc>),
    /// By its name alone, which may be in any local time zone.
    Name,
}

/// The newest backup that can be restored, and how it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewestBackup {
    /// The file name, in the folder `backups`.
    pub name: String,
    /// How its age was determined.
    pub age: BackupAge,
    /// The agent's other backups that cannot be used, each with the reason.
    pub passed_over: Vec<(String, String)>,
}

impl fmt::Display for NewestBackup {
    /// `backups/{name} (the newest by its last_checkpoint, …)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backups/{} (", self.name)?;
        match &self.age {
            BackupAge::Content(at) => {
                write!(f, "the newest by its last_checkpoint, {}", stamp(*at))
            }
            BackupAge::File(at) => write!(
                f,
                "the newest by the time of its file, {}, because its content has no time",
                stamp(*at)
            ),
            BackupAge::Name => f.write_str("the newest by its name, because it has no time"),
        }?;
        for (name, why) in &self.passed_over {
            write!(f, "; {name} was skipped: {why}")?;
        }
        f.write_str(")")
    }
}

/// Returns the newest backup of an agent among the files of the folder `backups`: the one with the latest
/// `last_checkpoint`. For a backup without one, the modification time of its file counts.
///
/// Names are compared whole, so another agent's backup is never returned. A backup that is no document, or whose
/// content names another agent, is skipped and listed in [`NewestBackup::passed_over`].
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`] when no file can be named after the agent.
pub fn newest_backup(
    agent: &Key,
    files: impl IntoIterator<Item = Backup>,
) -> Result<Option<NewestBackup>> {
    let own = layout::stem_of(agent)?;
    let mut passed_over = Vec::new();
    let mut found = Vec::new();
    for backup in files {
        let Some(named) = layout::backup_of(&backup.name, &own) else {
            continue;
        };
        match judge(agent, &backup) {
            Ok(age) => {
                let time = match &age {
                    BackupAge::Content(time) | BackupAge::File(time) => Some(*time),
                    BackupAge::Name => None,
                };
                found.push(((time, backup.modified, named), backup.name, age));
            }
            Err(why) => passed_over.push((backup.name, why)),
        }
    }
    passed_over.sort();
    let newest = found.into_iter().max_by(|one, other| one.0.cmp(&other.0));
    Ok(newest.map(|(_, name, age)| NewestBackup {
        name,
        age,
        passed_over,
    }))
}

/// How the age of a backup is known, or why the backup cannot be used.
fn judge(agent: &Key, backup: &Backup) -> std::result::Result<BackupAge, String> {
    let Some(document) = &backup.document else {
        return Err("it is not a JSON object".to_owned());
    };
    let current = read::<AgentCheckpoint>(document);
    let checkpoint = current.map_err(|error| error.to_string())?.reading.value;
    if let Some(id) = &checkpoint.agent_id
        && !layout::same_agent(id, agent.as_str())
    {
        return Err(format!("it is a checkpoint of {id}"));
    }
    let said = checkpoint.updated_at().and_then(|stamp| stamp.time());
    Ok(match (said, backup.modified) {
        (Some(said), _) => BackupAge::Content(said.to_utc()),
        (None, Some(modified)) => BackupAge::File(modified),
        (None, None) => BackupAge::Name,
    })
}

/// Lists the backups of an agent in the folder of the checkpoints, readable or not. The list is empty when there is no
/// folder `backups`.
///
/// # Errors
///
/// [`ErrorKind::InvalidKey`] when no file can be named after the agent; [`ErrorKind::Io`] when the folder
/// cannot be read. A file that cannot be read is listed without a document.
pub fn backups_in(checkpoints: &Path, agent: &Key) -> Result<Vec<Backup>> {
    let own = layout::stem_of(agent)?;
    let folder = checkpoints.join(layout::BACKUPS);
    let failed = |error| {
        Error::new(ErrorKind::Io)
            .with_path(&folder)
            .with_source(error)
    };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut backups = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if layout::backup_of(&name, &own).is_none() {
            continue;
        }
        let contents = fsio::read_limited(&entry.path(), MOST_BYTES).ok().flatten();
        let mut backup = Backup::new(name, None);
        if let Some(contents) = contents {
            backup.document = Document::parse(&contents.bytes).ok();
            backup.modified = contents.modified.map(DateTime::from);
        }
        backups.push(backup);
    }
    Ok(backups)
}
