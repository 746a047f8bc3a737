//! The record of what saves left out: one JSON object a line, beside the checkpoint.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::durable_file::sidecar_name;
use crate::checkpoint::{DropReason, Dropped, Error, ErrorKind, Result};
use crate::fsio::{self, Durability, FileError};

/// How large one file of the record may become. A record is two files: when the newer one is full it takes
/// the place of the older one, so the newest 4 MiB at least can be found again, and never more than 8 are
/// kept. A single save may go over, so that nothing is torn apart.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// One line of the record.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which checkpoint of a host file; absent where the file has one only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slot: Option<String>,
    /// Which task of that slot: a slot has one after the other.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    task: Option<String>,
    /// What was left out; absent where a checkpoint was created, to which nothing before belongs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    dropped: Option<Piece>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Piece {
    pointer: String,
    reason: DropReason,
    value: Value,
}

/// Whose pieces they are.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Owner<'a> {
    pub(in crate::store) slot: Option<&'a str>,
    pub(in crate::store) task: Option<&'a str>,
}

impl Owner<'_> {
    fn has(self, line: &Line) -> bool {
        let same_task = match (self.task, &line.task) {
            (Some(task), Some(of)) => task == of,
            _ => true,
        };
        self.slot == line.slot.as_deref() && same_task
    }

    fn line(self, dropped: Option<Piece>) -> Line {
        Line {
            slot: self.slot.map(str::to_owned),
            task: self.task.map(str::to_owned),
            dropped,
        }
    }
}

/// Lines that are ready to be added to the record.
#[derive(Debug, Default)]
pub(in crate::store) struct Entries {
    lines: Vec<u8>,
    /// Whether something is cut, be it in the record already.
    cuts: bool,
}

/// The record beside one file: `.agent-checkpoint/overflow/{file}.jsonl`, and what is older in
/// `{file}.1.jsonl`.
pub(in crate::store) struct OverflowFile {
    target: PathBuf,
    path: PathBuf,
    older: PathBuf,
}

impl OverflowFile {
    pub(super) fn beside(target: &Path) -> Self {
        let folder = fsio::parent_of(target)
            .join(fsio::OWN_FOLDER)
            .join("overflow");
        OverflowFile {
            target: target.to_path_buf(),
            path: folder.join(sidecar_name(target, ".jsonl")),
            older: folder.join(sidecar_name(target, ".1.jsonl")),
        }
    }

    /// Where it is, for a person.
    pub(in crate::store) fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// What a save adds: the pieces that are not in it yet, and where a checkpoint begins.
    pub(in crate::store) fn entries(
        &self,
        owner: Owner<'_>,
        begins: bool,
        dropped: &[Dropped],
    ) -> Result<Entries> {
        let has_record = || {
            Ok::<_, Error>(
                fsio::look(&self.path)?
                    .or(fsio::look(&self.older)?)
                    .is_some(),
            )
        };
        if dropped.is_empty() && !(begins && has_record()?) {
            return Ok(Entries::default());
        }
        let known = if begins {
            Vec::new()
        } else {
            self.pieces(owner)?
        };
        let mut lines = Vec::new();
        let mut add = |line: &Line| {
            serde_json::to_writer(&mut lines, line).map_err(|error| {
                Error::new(ErrorKind::Edit {
                    detail: format!("what was cut cannot be recorded: {error}"),
                })
            })?;
            lines.push(b'\n');
            Ok::<_, Error>(())
        };
        if begins {
            add(&owner.line(None))?;
        }
        for piece in dropped {
            let piece = Piece {
                pointer: piece.pointer.clone(),
                reason: piece.reason,
                value: piece.value.clone(),
            };
            if !known.contains(&piece) {
                add(&owner.line(Some(piece)))?;
            }
        }
        Ok(Entries {
            lines,
            cuts: !dropped.is_empty(),
        })
    }

    /// Adds to the record and has it on disk. Called under the lock, when the new checkpoint is on disk
    /// and about to take its name: a crash between the two leaves a record of what was not dropped after
    /// all, never the other way round.
    pub(super) fn add(&self, entries: &Entries, durability: Durability) -> Result<(), FileError> {
        // A piece that a killed writer recorded may not be on disk: then nothing is added, and waited all the
        // same.
        if entries.lines.is_empty() && !entries.cuts {
            return Ok(());
        }
        fsio::own_folder(fsio::parent_of(&self.target))?;
        tracing::info!(path = %self.path.display(), "cut to the limits");
        let size = fsio::look(&self.path)?.map_or(0, |found| found.len());
        if size > 0 && size.saturating_add(entries.lines.len() as u64) > MAX_BYTES {
            if fsio::look(&self.older)?.is_some() {
                fsio::remove(&self.older, durability)?;
            }
            fsio::rename_new(&self.path, &self.older, durability)?;
        }
        fsio::append(&self.path, &entries.lines, durability, Some(&self.target))
    }

    /// What was left out since the checkpoint was created, oldest first.
    pub(in crate::store) fn read(&self, owner: Owner<'_>) -> Result<Vec<Dropped>> {
        let pieces = self.pieces(owner)?.into_iter();
        Ok(pieces
            .map(|piece| Dropped::new(piece.pointer, piece.reason, piece.value))
            .collect())
    }

    /// A torn line is passed over: what it was to record was not dropped.
    fn pieces(&self, owner: Owner<'_>) -> Result<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut bytes = fsio::read_end(&self.older, MAX_BYTES)?.unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend(fsio::read_end(&self.path, MAX_BYTES)?.unwrap_or_default());
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Line>(line) {
                Ok(line) if !owner.has(&line) => {}
                Ok(Line { dropped: None, .. }) => pieces.clear(),
                Ok(Line {
                    dropped: Some(piece),
                    ..
                }) => pieces.push(piece),
                Err(_) if line.is_empty() => {}
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), %error, "a line of the record is unreadable");
                }
            }
        }
        Ok(pieces)
    }
}
