//! The ledger of a checkpoint: an append-only file of lines beside it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::appended_file::AppendedFile;
use super::known_ledger::KnownLedger;
use super::own_file::{OwnFile, folders, of_slot};
use crate::checkpoint::{Error, ErrorKind, Result};
use crate::fsio::{self, Durability, FileStamp};
use crate::store::{LedgerLines, LedgerMark, is_ledger_line};

/// The ledger beside one file: `.agent-checkpoint/ledger/{file}.jsonl`, or for a slot of a host file
/// `{file}@{slot}.jsonl`.
pub(super) struct Ledger {
    log: AppendedFile,
    /// An empty file in a folder that git tracks. It states that there is a ledger, which git does not track.
    /// It is made before the first line is added, when the file for the lines exists.
    placeholder: OwnFile,
}

/// The name of the ledger in its folder, for a checkpoint's file and the slot of a host file.
pub(crate) fn file_name(file: &OsStr, slot: Option<&str>) -> OsString {
    let mut name = file.to_owned();
    name.push(of_slot(slot, ""));
    name.push(".jsonl");
    name
}

/// The name of the placeholder, which git tracks, for the same.
pub(crate) fn placeholder_name(file: &OsStr, slot: Option<&str>) -> OsString {
    let mut name = file.to_owned();
    name.push(of_slot(slot, ".ledger"));
    name
}

/// The result of syncing the lines of a ledger.
pub(super) enum Synced {
    /// The lines, now on disk.
    Lines(LedgerLines),
    /// A writer removed lines meanwhile because it could not sync them.
    TakenBack,
    /// They could not be synced and must be [written to a new file](Ledger::write_anew).
    Failed,
}

/// A ledger as it was read.
struct Read {
    /// The lines after a mark.
    lines: LedgerLines,
    /// The bytes of all whole lines.
    whole: u64,
    /// The length of the file, in bytes. Bytes after the whole lines were never acknowledged.
    bytes: u64,
    /// The cache entry of the file.
    known: Option<KnownLedger>,
}

impl Ledger {
    pub(super) fn beside(target: &Path, slot: Option<&str>) -> Self {
        let placeholder = of_slot(slot, ".ledger");
        Ledger {
            log: AppendedFile::beside(target, folders::LEDGER, &of_slot(slot, "")),
            placeholder: OwnFile::beside(target, folders::DROPPED_LOG, &placeholder),
        }
    }

    /// The lines after a mark, oldest first.
    pub(super) fn lines(&self, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        Ok(self.read(self.known().as_ref(), mark)?.lines)
    }

    /// The lines, synced before they are returned: the process that wrote the last one may have died before its
    /// sync.
    pub(super) fn synced_lines(
        &self,
        mark: Option<&LedgerMark>,
        durability: Durability,
    ) -> Result<Synced> {
        let found = self.read(self.known().as_ref(), mark)?;
        if found.whole == 0 || durability == Durability::None {
            return Ok(Synced::Lines(found.lines));
        }
        match fsio::ensure_end_synced(self.log.path(), durability) {
            Ok(end) if end >= found.whole => Ok(Synced::Lines(found.lines)),
            Ok(_) => Ok(Synced::TakenBack),
            Err(error) if error.is_of_a_sync() => Ok(Synced::Failed),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a sync of the present lines failed, so that they must be written to a new file.
    pub(super) fn is_unsynced(&self) -> Result<bool> {
        Ok(self.log.unsynced.is_there()?)
    }

    /// Copies lines that could not be synced to a new file. Called under the lock.
    pub(super) fn write_anew(&self, durability: Durability) -> Result<()> {
        if !self.is_unsynced()? {
            self.log.set_unsynced();
        }
        Ok(self.log.write_unsynced_anew(durability)?)
    }

    /// Adds a line if there are exactly `at` lines; it is on disk when this returns. Called under the lock.
    pub(super) fn append(&self, line: &str, at: usize, durability: Durability) -> Result<bool> {
        self.log.write_unsynced_anew(durability)?;
        // If the file is cached, only its last line is read.
        let known = self.known();
        let last = known.as_ref().map(KnownLedger::mark);
        let found = self.read(known.as_ref(), last.as_ref())?;
        if found.lines.before + found.lines.lines.len() != at {
            return Ok(false);
        }
        let is_torn = found.whole < found.bytes;
        if is_torn {
            fsio::cut_back(self.log.path(), found.whole, u64::MAX)?;
        }
        // The process that wrote the last line may have died before its sync. That line must not be lost while
        // the new one stays.
        if is_torn || !fsio::look(self.log.path())?.is_some_and(|found| fsio::ends_synced(&found)) {
            self.log.append(b"", durability)?;
        }
        if !self.placeholder.is_there()? {
            let like = Some(self.placeholder.target());
            fsio::append(self.placeholder.path(), b"", durability, like)?;
        }
        let line = format!("{line}\n");
        match self.log.append(line.as_bytes(), durability) {
            Ok(_) => {
                if let Ok(Some(now)) = fsio::look(self.log.path()) {
                    if durability != Durability::None {
                        fsio::note_end(&now);
                    }
                    if let Some(known) = found.known
                        && now.len() == found.whole + line.len() as u64
                    {
                        let stamp = FileStamp::of(&now);
                        let known = known.with_line(stamp, line.as_bytes());
                        known.remember(self.log.path());
                    }
                }
                Ok(true)
            }
            // The line was removed again, but a power cut may bring it back.
            Err(error) if error.is_of_a_sync() => {
                let why = "the line was removed again, but a loss of power may bring it back; read the ledger before you repeat it";
                let unknown = Error::other("outcome-unknown", why);
                Err(unknown
                    .with_path(self.log.path())
                    .with_source(std::io::Error::other(error)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The cache entry of the file.
    fn known(&self) -> Option<KnownLedger> {
        KnownLedger::of(self.log.path())
    }

    /// The lines after a mark; `known` is the cache entry of the file.
    fn read(&self, known: Option<&KnownLedger>, mark: Option<&LedgerMark>) -> Result<Read> {
        if let Some(read) = self.read_known(known, mark)? {
            return Ok(read);
        }
        let mut is_second_look = false;
        loop {
            // If there is a placeholder, the file existed before.
            let has_placeholder = self.placeholder.is_there()?;
            if let Some(found) = self.log.file.read(u64::MAX)? {
                return self.read_whole(&found.bytes, found.stamp, known, mark);
            }
            KnownLedger::forget(self.log.path());
            match self.log.bytes()? {
                Some(bytes) => return self.read_unknown(&bytes),
                None if !has_placeholder => return self.read_unknown(b""),
                None if is_second_look => return Err(self.elsewhere()),
                // The file may just be about to get its name, or may have been forgotten; look again.
                None => is_second_look = true,
            }
        }
    }

    /// The lines after a mark, of a file that is exactly as this process last saw it. It reads the last line, and the
    /// known lines after the mark.
    fn read_known(
        &self,
        known: Option<&KnownLedger>,
        mark: Option<&LedgerMark>,
    ) -> Result<Option<Read>> {
        let Some(known) = known.filter(|known| known.lines > 0) else {
            return Ok(None);
        };
        let (before, at) = known.before(mark);
        let from = at.min(known.last);
        let bytes = fsio::read_part(self.log.path(), from..known.whole, &known.stamp)?;
        let line = usize::try_from(known.last - from).unwrap_or(usize::MAX);
        let is_known = |bytes: &Vec<u8>| {
            let last = bytes.get(line..);
            last.is_some_and(|last| known.ends_with(last))
        };
        let Some(bytes) = bytes.filter(is_known) else {
            return Ok(None);
        };
        let behind = usize::try_from(at - from).unwrap_or(usize::MAX);
        let lines = self.lines_of(bytes.get(behind..).unwrap_or_default(), before)?;
        Ok(Some(Read {
            lines: LedgerLines::new(before, lines.0, Some(known.mark())),
            whole: known.whole,
            bytes: known.stamp.size(),
            known: Some(known.clone()),
        }))
    }

    /// The lines after a mark, of a file that was read whole, which is cached. Known lines are not parsed again if the
    /// file still begins with them.
    fn read_whole(
        &self,
        bytes: &[u8],
        stamp: FileStamp,
        before: Option<&KnownLedger>,
        mark: Option<&LedgerMark>,
    ) -> Result<Read> {
        let before = before.filter(|known| known.is_beginning_of(bytes));
        let known = before.map(|known| known.before(mark));
        let (count, from) = known.unwrap_or_default();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let (lines, behind) = self.lines_of(bytes.get(from..).unwrap_or_default(), count)?;
        let whole = from + behind;
        let mut known = KnownLedger::read(stamp, count + lines.len(), &bytes[..whole]);
        if let Some(before) = before {
            known = known.named(before);
        }
        known.clone().remember(self.log.path());
        Ok(Read {
            lines: LedgerLines::new(count, lines, Some(known.mark())),
            whole: whole as u64,
            bytes: bytes.len() as u64,
            known: Some(known),
        })
    }

    /// All lines of bytes that cannot be cached.
    fn read_unknown(&self, bytes: &[u8]) -> Result<Read> {
        let (lines, whole) = self.lines_of(bytes, 0)?;
        Ok(Read {
            lines: LedgerLines::new(0, lines, None),
            whole: whole as u64,
            bytes: bytes.len() as u64,
            known: None,
        })
    }

    /// The lines and their length in bytes; `before` is the number of lines before them. The last line counts only if
    /// it is whole: one without its line end, or with zeros in it, was never acknowledged. Any other line was written
    /// whole, so damage to it happened later.
    fn lines_of(&self, bytes: &[u8], before: usize) -> Result<(Vec<String>, usize)> {
        let (mut lines, mut whole) = (Vec::new(), 0);
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        let mut rest = &bytes[..end.map_or(0, |end| end + 1)];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            match std::str::from_utf8(line) {
                Ok(line) if is_ledger_line(line) => lines.push(line.to_owned()),
                // Pages of the line that never reached the disk are zeros.
                _ if after.is_empty() && line.contains(&0) => break,
                _ => return Err(self.damaged(before + lines.len() + 1)),
            }
            whole += end + 1;
            rest = after;
        }
        Ok((lines, whole))
    }

    fn damaged(&self, line: usize) -> Error {
        let detail = format!(
            "line {line} of the ledger is damaged, so it is unknown which effects were begun or done; restore the \
             file from a copy, or replace the line by what is known of that effect, with a line end"
        );
        Error::new(ErrorKind::Unreadable { detail }).with_path(self.log.path())
    }

    fn elsewhere(&self) -> Error {
        let [log, placeholder] = [self.log.path(), self.placeholder.path()].map(Path::display);
        let detail = format!(
            "its ledger is not here (git does not take it along), so it is unknown which effects were begun or done; bring {log} \
             from the machine where its agent worked, or, where none of them can be repeated, remove {placeholder}"
        );
        Error::new(ErrorKind::Unreadable { detail })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;
    use std::rc::Rc;

    use super::*;
    use crate::fsio::Operation;
    use crate::fsio::seam::{Call, Watch, watched};

    /// Records the writes and syncs of a file.
    struct Calls(PathBuf, Vec<Operation>);

    impl Watch for Calls {
        fn after(&mut self, call: &Call<'_>) {
            let counts = matches!(call.operation, Operation::Write | Operation::Sync);
            if counts && call.path == self.0 {
                self.1.push(call.operation);
            }
        }
    }

    #[test]
    fn what_another_process_wrote_last_is_on_disk_before_the_next_line_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::beside(&folder.path().join("a.json"), None);
        let path = ledger.log.path();
        let add = |at| {
            let calls = Rc::new(RefCell::new(Calls(path.to_path_buf(), Vec::new())));
            let watch = Rc::clone(&calls) as Rc<RefCell<dyn Watch>>;
            let added = watched(watch, || ledger.append("{}", at, Durability::Full));
            assert!(added.unwrap());
            std::mem::take(&mut calls.borrow_mut().1)
        };
        add(0);
        assert_eq!(add(1), [Operation::Write, Operation::Sync]);
        // A file of which this process has synced nothing.
        let other = path.with_extension("other");
        std::fs::copy(path, &other).unwrap();
        std::fs::rename(other, path).unwrap();
        let synced_first = [Operation::Sync, Operation::Write, Operation::Sync];
        assert_eq!(add(2), synced_first);
        assert_eq!(add(3), [Operation::Write, Operation::Sync]);
        // A line of a process that was killed before its sync, after a line that this process synced.
        let mut bytes = std::fs::read(path).unwrap();
        bytes.extend(b"{}\n");
        std::fs::write(path, bytes).unwrap();
        assert_eq!(add(5), synced_first);
        assert_eq!(add(6), [Operation::Write, Operation::Sync]);
    }
}
