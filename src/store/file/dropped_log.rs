//! The dropped log: what saves left out, one JSON object a line, beside the checkpoint.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::appended_file::{Added, AppendedFile};
use super::own_file::{OwnFile, folders};
use crate::checkpoint::{DropReason, Dropped, Error, Result, Revision};
use crate::fsio::{self, Durability, FileError, Present};

/// How many bytes of the end are read at first by those who want the newest pieces.
const END: u64 = 64 * 1024;

/// One line of the log.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which checkpoint of a host file; absent where the file has one only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    slot: Option<String>,
    /// Which task: the key, of a host file the task in the slot, which has one after the other. A copy of the
    /// log can be read alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    task: Option<String>,
    /// What was left out; absent where a checkpoint was created, to which nothing before belongs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    dropped: Option<Piece>,
}

#[derive(Serialize, Deserialize)]
struct Piece {
    pointer: String,
    reason: DropReason,
    /// All of it as JSON text, where the value has only a part of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    /// The last in the line.
    value: Value,
}

/// Of which checkpoint the lines are.
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
    /// Whether the first of them says that a task begins, after which nothing before counts.
    begins: bool,
}

/// The log beside one file: `.agent-checkpoint/overflow/{file}.jsonl`, in which nothing rotates away.
pub(in crate::store) struct DroppedLog {
    pub(super) log: AppendedFile,
    /// What is older: earlier versions of this library moved a full log there.
    older: OwnFile,
    /// What a save that begins a task adds to the log as soon as the new text has its name, and of which text that
    /// is. Were it in the log before, a save that is killed in between would hide what was dropped from the task that
    /// is still there; were it added without this, one that is killed would leave the new task with it.
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

    /// Where it is, for a person.
    pub(in crate::store) fn place(&self) -> String {
        self.path().display().to_string()
    }

    /// Where the log of this file is, as a checkpoint in the file names it.
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

    /// What a save adds: the pieces, and where a checkpoint begins. Nothing is read for that: a piece that a
    /// killed writer added already is added again, since nobody knows whether it was synced.
    pub(in crate::store) fn lines(
        &self,
        of: LinesOf<'_>,
        begins: bool,
        dropped: &[Dropped],
    ) -> Result<DroppedLines> {
        let mut lines = Vec::new();
        let add = |lines: &mut Vec<u8>, line: &Line| {
            serde_json::to_writer(&mut *lines, line).map_err(|error| {
                Error::edit(format!("what was cut cannot be recorded: {error}"))
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
                // The value ends the line, and has more digits there than a `Value` holds.
                lines.truncate(lines.len() - value.len() - "}}\n".len());
                lines.extend_from_slice(text.as_bytes());
                lines.extend_from_slice(b"}}\n");
            }
            // A line that could not be read back has the text as a string, and the value as far as it is one that is not
            // nested too deeply.
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

    /// Adds to the log and has it on disk. Called under the lock, when the new checkpoint, the file `text`, is on
    /// disk and about to take its name: a crash between the two leaves a log of what was not dropped after
    /// all, never the other way round. Where a task begins, [`begun`](Self::begun) does the rest.
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
            return self.log.append(&entries.lines, durability).map(Some);
        }
        let of = Revision::of(text.as_bytes());
        let mut bytes = format!("{of} {}\n", text.len()).into_bytes();
        bytes.extend(&entries.lines);
        // The name of the checkpoint may be on disk at once, whatever the save waits for; so must this be.
        let durability = match durability {
            Durability::Full | Durability::Data => Durability::Full,
            Durability::None => Durability::None,
        };
        self.begins
            .write(&bytes, Present::Whatever, durability)
            .map_err(FileError::of_a_step)?;
        Ok(Some(Added::new_file(self.begins.path())))
    }

    /// The new text has its name. What keeps this from being in the log is no reason to call the save failed:
    /// readers find it where it is, and the next save adds it.
    pub(super) fn begun(&self, entries: &DroppedLines, durability: Durability) {
        if entries.begins
            && let Err(error) = self.settle(durability)
        {
            tracing::warn!(path = %self.path().display(), %error, "that a task began is not in the log yet");
        }
    }

    /// Adds what a save that was killed had still to add, if it came to its end but for that. Called under the lock,
    /// before what it wrote is replaced.
    pub(super) fn settle(&self, durability: Durability) -> Result<(), FileError> {
        if !self.begins.is_there()? {
            return Ok(());
        }
        if let Some(lines) = self.beginning()? {
            self.log.append(&lines, durability)?;
        }
        self.begins.remove(Durability::None)
    }

    /// The lines that are still to be added; `None` where there are none, and where the text that they go with is not
    /// the one that is there.
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

    /// Removes what belongs to tasks that ended, and of the rest the oldest beyond so many bytes: on request, for
    /// nothing goes by itself.
    pub(super) fn shorten(&self, bytes: Option<u64>, durability: Durability) -> Result<()> {
        self.settle(durability)?;
        let mut all: Vec<u8> = Vec::new();
        for file in self.files() {
            all.extend(fsio::read_end(file.path(), u64::MAX)?.unwrap_or_default());
            all.push(b'\n');
        }
        // From the end, for a line goes with any later beginning in its place.
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

    /// What was left out since the checkpoint was created, oldest first.
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
            // A save that took it into the log meanwhile may have added to that.
            if self.begins.is_there()? {
                return Ok(found.pieces);
            }
        }
    }

    /// The newest `most` of these. Reads the end of the log, and more of it only as far as it has to.
    pub(in crate::store) fn newest(&self, of: LinesOf<'_>, most: usize) -> Result<Vec<Dropped>> {
        // From most nothing was ever dropped: one look tells.
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

/// A line without the zeros that a lost line leaves before it.
fn without_zeros(line: &[u8]) -> &[u8] {
    let lost = line.iter().take_while(|byte| **byte == 0).count();
    line.get(lost..).unwrap_or_default()
}

/// What was found in a log.
#[derive(Default)]
struct Found {
    pieces: Vec<Dropped>,
    /// The lines they are in: one that stands there twice was added by a writer that was killed and by the one
    /// after it.
    known: HashSet<Vec<u8>>,
    /// Whether the line was found with which the checkpoint begins.
    began: bool,
}

impl Found {
    /// A torn line is passed over: what it was to record was not dropped.
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
        // Of a task that ended, and one that no later line ends.
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
