//! The record of what saves left out: one JSON object a line, beside the checkpoint.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::durable_file::{parent, sidecar_name};
use super::io_error;
use crate::checkpoint::{Dropped, Error, ErrorKind, Result};
use crate::fsio::{self, Durability};

/// One line of the record.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which checkpoint of a host file; absent where the file has one only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slot: Option<String>,
    #[serde(flatten)]
    dropped: Dropped,
}

/// The record beside one file: `.agent-checkpoint/overflow/{file}.jsonl`.
pub(in crate::store) struct OverflowFile {
    folder: PathBuf,
    path: PathBuf,
    durability: Durability,
}

impl OverflowFile {
    pub(super) fn beside(target: &Path, durability: Durability) -> Self {
        let folder = parent(target);
        let path = folder
            .join(fsio::OWN_FOLDER)
            .join("overflow")
            .join(sidecar_name(target, ".jsonl"));
        OverflowFile {
            folder: folder.to_path_buf(),
            path,
            durability,
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
        if dropped.is_empty() {
            return Ok(None);
        }
        let own = fsio::own_folder(&self.folder)?;
        let folder = own.join("overflow");
        if !folder.exists() {
            fsio::create_folder_durably(&folder, self.durability)?;
        }
        let mut lines = Vec::new();
        // A torn last line, from a crash, must not swallow the next.
        if self.ends_inside_a_line()? {
            lines.push(b'\n');
        }
        for dropped in dropped {
            let line = Line {
                slot: slot.map(str::to_owned),
                dropped: dropped.clone(),
            };
            serde_json::to_writer(&mut lines, &line).map_err(|error| {
                Error::new(ErrorKind::Edit {
                    detail: "what was cut cannot be recorded".to_owned(),
                })
                .with_source(error)
            })?;
            lines.push(b'\n');
        }
        let is_new = !self.path.exists();
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(|error| io_error(error, &self.path))?;
        file.write_all(&lines)
            .map_err(|error| io_error(error, &self.path))?;
        if self.durability == Durability::Full {
            file.sync_data()
                .map_err(|error| io_error(error, &self.path))?;
            if is_new {
                fsio::sync_folder(&folder)?;
            }
        }
        tracing::info!(path = %self.path.display(), pieces = dropped.len(), "cut to the limits");
        Ok(Some(self.path.display().to_string()))
    }

    fn ends_inside_a_line(&self) -> Result<bool> {
        Ok(self.bytes()?.last().is_some_and(|last| *last != b'\n'))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match fs_err::File::open(&self.path) {
            Ok(mut file) => file
                .read_to_end(&mut bytes)
                .map_err(|error| io_error(error, &self.path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(io_error(error, &self.path)),
        };
        Ok(bytes)
    }

    /// What was left out, oldest first. A torn line is passed over: what it was to record was not
    /// dropped.
    pub(in crate::store) fn read(&self, slot: Option<&str>) -> Result<Vec<Dropped>> {
        let lines = self.bytes()?;
        Ok(lines
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
            .filter(|line| line.slot.as_deref() == slot)
            .map(|line| line.dropped)
            .collect())
    }
}
