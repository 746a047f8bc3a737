//! The record of what saves left out: one JSON object a line, beside the checkpoint.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::durable_file::sidecar_name;
use crate::checkpoint::{DropReason, Dropped, Error, ErrorKind, Result};
use crate::fsio::{self, Durability};

/// The largest record that is read, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// One line of the record.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which checkpoint of a host file; absent where the file has one only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slot: Option<String>,
    pointer: String,
    reason: DropReason,
    value: Value,
}

/// The record beside one file: `.agent-checkpoint/overflow/{file}.jsonl`.
pub(in crate::store) struct OverflowFile {
    folder: PathBuf,
    path: PathBuf,
    durability: Durability,
    /// Keeps nothing: the decision is made again under the lock.
    only_asking: bool,
}

impl OverflowFile {
    pub(super) fn beside(target: &Path, durability: Durability) -> Self {
        let folder = fsio::parent_of(target);
        let path = folder
            .join(fsio::OWN_FOLDER)
            .join("overflow")
            .join(sidecar_name(target, ".jsonl"));
        OverflowFile {
            folder: folder.to_path_buf(),
            path,
            durability,
            only_asking: false,
        }
    }

    /// The same, for a decision that will be made again.
    pub(super) fn only_asking(&self) -> Self {
        OverflowFile {
            folder: self.folder.clone(),
            path: self.path.clone(),
            durability: self.durability,
            only_asking: true,
        }
    }

    /// Adds to the record and has it on disk; says where. Called under the file's lock.
    ///
    /// The record comes before the checkpoint, so a crash between them leaves a record of what was
    /// not dropped after all, never the other way round.
    pub(in crate::store) fn keep(
        &self,
        slot: Option<&str>,
        dropped: &[Dropped],
    ) -> Result<Option<String>> {
        if dropped.is_empty() || self.only_asking {
            return Ok(None);
        }
        let mut lines = Vec::new();
        for piece in dropped {
            let line = Line {
                slot: slot.map(str::to_owned),
                pointer: piece.pointer.clone(),
                reason: piece.reason,
                value: piece.value.clone(),
            };
            serde_json::to_writer(&mut lines, &line).map_err(|error| {
                Error::new(ErrorKind::Edit {
                    detail: "what was cut cannot be recorded".to_owned(),
                })
                .with_source(error)
            })?;
            lines.push(b'\n');
        }
        fsio::own_folder(&self.folder)?;
        fsio::append(&self.path, &lines, self.durability)?;
        tracing::info!(path = %self.path.display(), pieces = dropped.len(), "cut to the limits");
        Ok(Some(self.path.display().to_string()))
    }

    /// What was left out, oldest first. A torn line is passed over: what it was to record was not
    /// dropped.
    pub(in crate::store) fn read(&self, slot: Option<&str>) -> Result<Vec<Dropped>> {
        let Some(contents) = fsio::read_limited(&self.path, MAX_BYTES)? else {
            return Ok(Vec::new());
        };
        Ok(contents
            .bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
            .filter(|line| line.slot.as_deref() == slot)
            .map(|line| Dropped::new(line.pointer, line.reason, line.value))
            .collect())
    }
}
