//! The dropped log: the items that saves dropped, one JSON object per line, beside the checkpoint.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::appended_file::{Added, AppendedFile};
use super::own_file::{OwnFile, folders};
use crate::checkpoint::{DropReason, Dropped, Error, Result, Revision};
use crate::fsio::{self, Durability, FileError, Present};

/// How many bytes at the end are read first to find the newest items.
const END: u64 = 64 * 1024;

/// One line of the log.
#[derive(Serialize, Deserialize)]
struct Line {
    /// The slot of a host file; absent if the file is the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slot: Option<String>,
    /// The task: the key, or for a host file the task in the slot, which changes over time. It makes a copy of
    /// the log readable on its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    task: Option<String>,
    /// The dropped item. It is absent where a new checkpoint begins, which has none of the items before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    dropped: Option<Piece>,
}

#[derive(Serialize, Deserialize)]
struct Piece {
    pointer: String,
    reason: DropReason,
    /// The whole item as JSON text, if the value holds only a part of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    /// The value; it must be the last member of the line.
    value: Value,
}

/// The checkpoint that lines belong to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct LinesOf<'a> {
    pub(in crate::store) slot: Option<&'a str>,
    pub(in crate::store) task: Option<&'a str>,
}

impl LinesOf<'_> {
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

/// Lines that are ready to be added to the log.
#[derive(Debug, Default)]
pub(in crate::store) struct DroppedLines {
    lines: Vec<u8>,
    /// Whether the first line marks the beginning of a task, so that earlier lines no longer count.
    begins: bool,
}

/// The log beside one file: `.agent-checkpoint/overflow/{file}.jsonl`. Nothing is rotated out of it.
pub(in crate::store) struct DroppedLog {
    pub(super) log: AppendedFile,
    /// An older part: earlier versions of this library moved a full log there.
    older: OwnFile,
    /// The lines that a save that begins a task must add to the log once the new text has its name, with the
    /// revision of that text. If they were in the log before, a save that is killed in between would hide the
    /// dropped items of the task that is still there. If they were added later without this file, a killed save
    /// would leave the old items with the new task.
    begins: OwnFile,
}

impl DroppedLog {
    pub(super) fn beside(target: &Path) -> Self {
        let file = |ending| OwnFile::beside(target, folders::DROPPED_LOG, ending);
        DroppedLog {
            log: AppendedFile::beside(target, folders::DROPPED_LOG, ""),
            older: file(".1.jsonl"),
            begins: file(".begins.jsonl"),
        }
    }

    /// The path of the log, for a person.
    pub(in crate::store) fn place(&self) -> String {
        self.path().display().to_string()
    }

    /// The path of the log of this file, as a checkpoint in the file names it.
    pub(in crate::store) fn place_beside(target: &Path) -> String {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let (own, folder) = (fsio::OWN_FOLDER, folders::DROPPED_LOG);
        format!("{own}/{folder}/{name}.jsonl")
    }

    fn path(&self) -> &Path {
        self.log.path()
    }

    /// The files of the log, oldest first.
    fn files(&self) -> [&OwnFile; 3] {
        [&self.older, &self.log.unsynced, &self.log.file]
    }

    /// The lines that a save adds: the dropped items, and the mark where a checkpoint begins. The log is not
    /// read for this: an item that a killed writer already added is added again, because it is unknown whether
    /// that was synced.
    pub(in crate::store) fn lines(
        &self,
        of: LinesOf<'_>,
        begins: bool,
        dropped: &[Dropped],
    ) -> Result<DroppedLines> {
        let mut lines = Vec::new();
        let add = |lines: &mut Vec<u8>, line: &Line| {
            serde_json::to_writer(&mut *lines, line).map_err(|error| {
                Error::edit(format!("the dropped items cannot be recorded: {error}"))
            })?;
            lines.push(b'\n');
            Ok::<_, Error>(())
        };
        let begins = begins && self.is_there()?;
        if begins {
            add(&mut lines, &of.line(None))?;
        }
        for piece in dropped {
            let start = lines.len();
            let line = |text, value: &Value| {
                of.line(Some(Piece {
                    pointer: piece.pointer.clone(),
                    reason: piece.reason,
                    text,
                    value: value.clone(),
                }))
            };
            add(&mut lines, &line(None, &piece.value))?;
            let value = piece.value.to_string();
            if let Some(text) = &piece.text {
                // The value ends the line; the original text has more digits than a `Value` can hold.
                lines.truncate(lines.len() - value.len() - "}}\n".len());
                lines.extend_from_slice(text.as_bytes());
                lines.extend_from_slice(b"}}\n");
            }
            // If the line cannot be read back, store the text as a string. Keep the value unless it is nested
            // too deeply.
            let text = piece.text.as_ref().unwrap_or(&value);
            for value in [&piece.value, &Value::Null] {
                if serde_json::from_slice::<Line>(&lines[start..]).is_ok() {
                    break;
                }
                lines.truncate(start);
                add(&mut lines, &line(Some(text.clone()), value))?;
            }
        }
        Ok(DroppedLines { lines, begins })
    }

    fn is_there(&self) -> Result<bool, FileError> {
        for file in self.files() {
            if file.is_there()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds lines to the log and syncs it. It is called under the lock, when the new checkpoint, the file
    /// `text`, is on disk and about to get its name. So a crash in between can leave items in the log that were
    /// not dropped, but never the reverse. If a task begins, [`begun`](Self::begun) completes this.
    pub(super) fn add(
        &self,
        entries: &DroppedLines,
        text: &str,
        durability: Durability,
    ) -> Result<Option<Added>, FileError> {
        if entries.lines.is_empty() {
            return Ok(None);
        }
        if !entries.begins {
            tracing::info!(path = %self.path().display(), "moved out to keep within the limits");
            return self.append(&entries.lines, durability).map(Some);
        }
        let of = Revision::of(text.as_bytes());
        let mut bytes = format!("{of} {}\n", text.len()).into_bytes();
        bytes.extend(&entries.lines);
        // The name of the checkpoint may reach the disk at any time, whatever the save waits for; so this file
        // must be there first.
        let durability = match durability {
            Durability::Full | Durability::Data => Durability::Full,
            Durability::None => Durability::None,
        };
        self.begins
            .write(&bytes, Present::Whatever, durability)
            .map_err(FileError::of_a_step)?;
        Ok(Some(Added::new_file(self.begins.path())))
    }

    fn append(&self, lines: &[u8], durability: Durability) -> Result<Added, FileError> {
        self.log.write_unsynced_anew(durability)?;
        self.log.append(lines, durability)
    }

    /// Completes the log after the new text got its name. A failure here does not make the save fail: readers
    /// also read the file of pending lines, and the next save adds them.
    pub(super) fn begun(&self, entries: &DroppedLines, durability: Durability) {
        if entries.begins
            && let Err(error) = self.settle(durability)
        {
            tracing::warn!(path = %self.path().display(), %error, "that a task began is not in the log yet");
        }
    }

    /// Adds the pending lines of a save that was killed after its text got its name. It is called under the
    /// lock, before that text is replaced.
    pub(super) fn settle(&self, durability: Durability) -> Result<(), FileError> {
        if !self.begins.is_there()? {
            return Ok(());
        }
        if let Some(lines) = self.beginning()? {
            self.append(&lines, durability)?;
        }
        self.begins.remove(Durability::None)
    }

    /// The pending lines; `None` if there are none, or if they belong to another text than the present one.
    fn beginning(&self) -> Result<Option<Vec<u8>>, FileError> {
        let Some(mut bytes) = fsio::read_end(self.begins.path(), u64::MAX)? else {
            return Ok(None);
        };
        let Some(head) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let lines = bytes.split_off(head + 1);
        let head = std::str::from_utf8(&bytes).unwrap_or_default().trim_end();
        let Some((of, length)) = head.split_once(' ') else {
            return Ok(None);
        };
        let Ok(length) = length.parse() else {
            return Ok(None);
        };
        match fsio::read_limited(self.begins.target(), length) {
            Ok(Some(read)) if Revision::of(&read.bytes).to_string() == of => Ok(Some(lines)),
            Ok(_) | Err(FileError::TooLarge { .. } | FileError::NotAFile { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the items of ended tasks, and of the rest the oldest beyond `bytes`. It runs only on request;
    /// nothing is ever removed automatically.
    pub(super) fn shorten(&self, bytes: Option<u64>, durability: Durability) -> Result<()> {
        self.settle(durability)?;
        let mut all: Vec<u8> = Vec::new();
        for file in self.files() {
            all.extend(fsio::read_end(file.path(), u64::MAX)?.unwrap_or_default());
            all.push(b'\n');
        }
        // Read from the end, because any later beginning of the same task removes a line.
        let mut begun: HashMap<Option<String>, HashSet<Option<String>>> = HashMap::new();
        let mut stay: Vec<&[u8]> = Vec::new();
        for line in all.rsplit(|byte| *byte == b'\n').map(without_zeros) {
            match serde_json::from_slice::<Line>(line) {
                Ok(Line {
                    slot,
                    task,
                    dropped: None,
                }) => {
                    let task = slot.as_ref().and(task);
                    begun.entry(slot).or_default().insert(task);
                }
                Ok(Line { slot, task, .. }) => {
                    let ended = begun.get(&slot).is_some_and(|tasks| {
                        task.is_none() || tasks.contains(&None) || tasks.contains(&task)
                    });
                    if !ended {
                        stay.push(line);
                    }
                }
                Err(_) if !line.is_empty() => stay.push(line),
                Err(_) => {}
            }
        }
        stay.reverse();
        let mut known = HashSet::new();
        stay.retain(|line| known.insert(*line));
        let mut size: u64 = stay.iter().map(|line| line.len() as u64 + 1).sum();
        let mut first = 0;
        while bytes.is_some_and(|bytes| size > bytes) && first < stay.len() {
            size -= stay[first].len() as u64 + 1;
            first += 1;
        }
        let lines = stay.iter().skip(first);
        let text = lines.fold(Vec::new(), |mut text, line| {
            text.extend_from_slice(line);
            text.push(b'\n');
            text
        });
        let before = all.len() - self.files().len();
        if text.len() == before {
            return Ok(());
        }
        self.log
            .file
            .write(&text, Present::Whatever, durability)
            .map_err(FileError::of_a_step)?;
        for other in [&self.older, &self.log.unsynced] {
            if other.is_there()? {
                other.remove(Durability::None)?;
            }
        }
        Ok(())
    }

    /// The items that were dropped since the checkpoint was created, oldest first.
    pub(in crate::store) fn read(&self, of: LinesOf<'_>) -> Result<Vec<Dropped>> {
        loop {
            let beginning = self.beginning()?;
            let mut found = Found::default();
            for file in self.files() {
                let bytes = fsio::read_end(file.path(), u64::MAX)?.unwrap_or_default();
                found.take(&bytes, of, file.path());
            }
            let Some(lines) = beginning else {
                return Ok(found.pieces);
            };
            found.take(&lines, of, self.begins.path());
            // A save that added the pending lines meanwhile may have added more lines after them.
            if self.begins.is_there()? {
                return Ok(found.pieces);
            }
        }
    }

    /// The newest `most` of these items. It reads the end of the log first, and more only if necessary.
    pub(in crate::store) fn newest(&self, of: LinesOf<'_>, most: usize) -> Result<Vec<Dropped>> {
        // Most checkpoints have no dropped items, which one system call shows.
        if fsio::look(fsio::parent_of(self.path()))?.is_none() {
            return Ok(Vec::new());
        }
        let mut size = END;
        let mut pieces = loop {
            let length = fsio::look(self.path())?.map_or(0, |found| found.len());
            if length < size || self.begins.is_there()? {
                break self.read(of)?;
            }
            let bytes = fsio::read_end(self.path(), size)?.unwrap_or_default();
            // The first line may have lost its beginning.
            let whole = bytes.iter().position(|byte| *byte == b'\n');
            let mut found = Found::default();
            found.take(&bytes[whole.unwrap_or(bytes.len())..], of, self.path());
            if found.began || found.pieces.len() >= most {
                break found.pieces;
            }
            size = size.saturating_mul(4);
        };
        pieces.drain(..pieces.len().saturating_sub(most));
        Ok(pieces)
    }
}

/// A line without the zero bytes that a lost line leaves before it.
fn without_zeros(line: &[u8]) -> &[u8] {
    let lost = line.iter().take_while(|byte| **byte == 0).count();
    line.get(lost..).unwrap_or_default()
}

/// The items found in a log.
#[derive(Default)]
struct Found {
    pieces: Vec<Dropped>,
    /// The lines already seen. A line occurs twice if a killed writer added it and the next writer added it again.
    known: HashSet<Vec<u8>>,
    /// Whether the line was found with which the checkpoint begins.
    began: bool,
}

impl Found {
    /// Skips a torn line: the item that it should record was not dropped.
    fn take(&mut self, bytes: &[u8], of: LinesOf<'_>, path: &Path) {
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = without_zeros(line);
            match serde_json::from_slice::<Line>(line) {
                Ok(found) if !of.has(&found) => {}
                Ok(Line { dropped: None, .. }) => {
                    *self = Found {
                        began: true,
                        ..Found::default()
                    };
                }
                Ok(Line {
                    dropped: Some(piece),
                    ..
                }) => {
                    if self.known.insert(line.to_vec()) {
                        let mut dropped = Dropped::new(piece.pointer, piece.reason, piece.value);
                        dropped.text = piece.text;
                        self.pieces.push(dropped);
                    }
                }
                Err(_) if line.is_empty() => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a line of the dropped log is unreadable");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_many_tasks_is_shortened_in_time_that_grows_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = DroppedLog::beside(&folder.path().join("a.json"));
        std::fs::create_dir_all(fsio::parent_of(log.path())).unwrap();
        let piece = r#""dropped":{"pointer":"/x","reason":{"elements":1},"value":1}"#;
        let line = |slot, task| {
            LinesOf {
                slot: Some(slot),
                task,
            }
            .line(None)
        };
        let begin = |slot, task| serde_json::to_string(&line(slot, task)).unwrap();
        let dropped = |slot, n: usize| format!("{{\"slot\":\"{slot}\",\"task\":\"T{n}\",{piece}}}");
        assert!(
            serde_json::from_str::<Line>(&dropped("top", 1))
                .unwrap()
                .dropped
                .is_some()
        );
        let many = 100_000;
        let mut text = String::new();
        for n in 0..many {
            text += &format!("{}\n{}\n", dropped("top", n), begin("active", Some("T")));
        }
        // An item of a task that ended, and one that no later line ends.
        text += &format!("{}\n{}\n", dropped("top", many), begin("top", Some("T7")));
        std::fs::write(log.path(), text).unwrap();
        let began = std::time::Instant::now();
        log.shorten(None, Durability::None).unwrap();
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
        let left = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(left.lines().count(), many);
        assert!(!left.contains(&dropped("top", 7)) && left.contains(&dropped("top", 8)));
    }
}
