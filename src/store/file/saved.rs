//! A note beside the lock with what the last save of a checkpoint wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::own_file::{folders, of_slot, path_beside};
use crate::checkpoint::Revision;
use crate::fsio::{self, Durability, FileError, FileStamp, InPlace, Replaced};

/// The length of a record of the note, in bytes. There are three records: the last save, the save in progress,
/// and the version of the file that could not be synced.
const RECORD: usize = 512;

/// The length of the hash with which a record begins.
const HASH_WIDTH: usize = "sha256:".len() + 64;

/// `.agent-checkpoint/locks/{file}.note`, or for a slot of a host file `{file}@{slot}.note`.
///
/// It is written in place, under the lock and without a sync. Each record begins with the hash of the rest, so
/// a torn record is ignored. A record that a power cut set back to an older version is still true.
pub(super) struct SavedNote {
    target: PathBuf,
    path: PathBuf,
}

/// What a save wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    /// The revision of the checkpoint; `None` if a slot was emptied.
    pub(super) checkpoint: Option<Revision>,
    /// The revision of the whole file.
    pub(super) file: Revision,
    /// The stamp of the file after the save.
    pub(super) stamp: String,
    /// Which parts of it were synced.
    pub(super) synced: Durability,
    /// When it was written.
    pub(super) at: SystemTime,
    /// The identity of the dropped log whose name is on disk.
    pub(super) log: Option<String>,
}

/// The most files that are remembered. Beyond that all are forgotten, and their notes are read again.
const MOST: usize = 4096;

/// What this process knows to be on disk, by the path of the file.
static SYNCED: Mutex<BTreeMap<PathBuf, Saved>> = Mutex::new(BTreeMap::new());

/// Remembers which version of a file is on disk.
fn remember(target: &Path, saved: Saved) {
    let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
    if synced.len() >= MOST {
        synced.clear();
    }
    synced.insert(target.to_path_buf(), saved);
}

/// The contents of a note.
#[derive(Debug, Default)]
pub(in crate::store) struct Noted {
    last: Option<Saved>,
    /// The revision that a save was about to write; the save may have been killed.
    next: Option<Revision>,
    /// The version of the file that could not be synced.
    failed: Option<String>,
}

impl Noted {
    fn of(bytes: &[u8]) -> Noted {
        let mut records = bytes.chunks(RECORD).map(body);
        let mut record = || records.next().flatten();
        Noted {
            last: record().and_then(Saved::parse),
            next: record().and_then(|text| text.parse().ok()),
            failed: record().map(str::to_owned),
        }
    }

    /// What the last save wrote.
    pub(super) fn last(&self) -> Option<&Saved> {
        self.last.as_ref()
    }

    /// The identity of the dropped log whose name is on disk.
    pub(super) fn log(&self) -> Option<String> {
        self.last.as_ref()?.log.clone()
    }

    /// The time of the last save, if it did not write this revision.
    pub(in crate::store) fn changed_without(&self, present: &Revision) -> Option<SystemTime> {
        let last = self.last().filter(|_| !self.is_ours(present));
        last.map(|last| last.at)
    }

    /// Whether a save of ours wrote this revision last, or was about to.
    pub(super) fn is_ours(&self, checkpoint: &Revision) -> bool {
        let last = self.last.as_ref();
        let last = last.and_then(|last| last.checkpoint.as_ref());
        [last, self.next.as_ref()].contains(&Some(checkpoint))
    }
}

impl SavedNote {
    pub(super) fn beside(target: &Path, slot: Option<&str>) -> Self {
        SavedNote {
            target: target.to_path_buf(),
            path: path_beside(target, folders::LOCKS, &of_slot(slot, ".note")),
        }
    }

    /// The contents of the note. A missing or damaged note is empty, and so is one that is a link to another file.
    pub(super) fn read(&self) -> Noted {
        Noted::of(&self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let read = fsio::read_own(&self.path, 3 * RECORD as u64).ok().flatten();
        let read = read.filter(|read| fsio::is_plain(&read.metadata));
        read.map(|read| read.bytes).unwrap_or_default()
    }

    /// The time of the last save, if it did not write this revision.
    pub(super) fn changed_without(&self, present: &Revision) -> Option<SystemTime> {
        let bytes = self.bytes();
        // A whole record with this revision states that nothing changed, and a torn one states nothing. So most
        // notes need no check of the hash.
        let saved = bytes.get(HASH_WIDTH + 1..).unwrap_or_default();
        if saved.starts_with(present.to_string().as_bytes()) {
            return None;
        }
        Noted::of(&bytes).changed_without(present)
    }

    /// The contents for a writer that holds the lock, with the open file for [`begin`](Self::begin).
    pub(super) fn open(&self) -> (Noted, Option<InPlace>) {
        let Ok(Some(file)) = InPlace::open_present(&self.path) else {
            return (self.read(), None);
        };
        match file.read(3 * RECORD) {
            Ok(bytes) => (Noted::of(&bytes), Some(file)),
            Err(_) => (Noted::default(), None),
        }
    }

    /// Whether exactly this version of the file is known to be on disk: this process synced it, or the note
    /// records a sync of it. The age of the file is no evidence.
    pub(super) fn knows(&self, stamp: &FileStamp, file: &Revision, wanted: Durability) -> bool {
        let is_it = |saved: &Saved| saved.is(stamp, file) && covers(saved.synced, wanted);
        if wanted == Durability::None {
            return true;
        }
        let remembered = {
            let synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
            synced.get(&self.target).is_some_and(is_it)
        };
        remembered || {
            let noted = self.read();
            self.recall(&noted, stamp, file);
            noted.last.as_ref().is_some_and(is_it)
        }
    }

    /// Remembers what the note states about exactly this version of the file.
    pub(super) fn recall(&self, noted: &Noted, stamp: &FileStamp, file: &Revision) {
        if let Some(last) = noted.last.as_ref().filter(|last| last.is(stamp, file)) {
            remember(&self.target, last.clone());
        }
    }

    /// Notes that a sync of the present file failed. The system may have dropped the data that it could not
    /// write, so a later sync that succeeds, even in another process, proves nothing.
    pub(super) fn sync_failed(&self) {
        let Ok(Some(found)) = fsio::look(&self.target) else {
            return;
        };
        let failed = record(&FileStamp::of(&found).text());
        let noted = InPlace::open(&self.path, &self.target)
            .and_then(|file| file.write(&failed, 2 * RECORD as u64));
        if let Err(error) = noted {
            tracing::warn!(path = %self.path.display(), %error, "that a sync failed is not noted");
        }
    }

    /// Whether a sync of exactly this version failed.
    pub(super) fn has_failed(&self, stamp: &FileStamp) -> bool {
        self.read()
            .failed
            .is_some_and(|failed| failed == stamp.text())
    }

    /// Remembers that exactly this version is on disk now.
    pub(super) fn synced(&self, stamp: &FileStamp, file: &Revision, synced: Durability) {
        let saved = Saved {
            checkpoint: None,
            file: file.clone(),
            stamp: stamp.text(),
            synced,
            at: UNIX_EPOCH,
            log: None,
        };
        remember(&self.target, saved);
    }

    /// Whether the note proves that the names of our folders are on disk: it lies in them, and was written
    /// after the present file and its name were synced.
    pub(super) fn vouches_for_folders(&self, noted: &Noted) -> Result<bool, FileError> {
        let Some(last) = noted.last().filter(|last| last.synced == Durability::Full) else {
            return Ok(false);
        };
        let found = fsio::look(&self.target)?;
        Ok(found.is_some_and(|found| FileStamp::of(&found).text() == last.stamp))
    }

    /// Notes the revision that is about to be saved, so that a save that is killed before the next note still
    /// counts as ours.
    ///
    /// The note only helps to judge states; no save fails because it cannot be written.
    pub(super) fn begin(self, file: Option<InPlace>, next: Option<&Revision>) -> Noting {
        let file = file.or_else(|| InPlace::open(&self.path, &self.target).ok());
        let noting = Noting {
            target: self.target,
            path: self.path,
            file,
        };
        let next = next.map_or_else(String::new, Revision::to_string);
        noting.write(|file| file.write(&record(&next), RECORD as u64));
        noting
    }
}

/// A note that is being written.
pub(super) struct Noting {
    target: PathBuf,
    path: PathBuf,
    file: Option<InPlace>,
}

impl Noting {
    /// Notes that the save succeeded and which parts are synced.
    pub(super) fn done(
        &self,
        checkpoint: Option<&Revision>,
        file: &Revision,
        replaced: &Replaced,
        synced: Durability,
        log: Option<String>,
    ) {
        let saved = Saved {
            checkpoint: checkpoint.cloned(),
            file: file.clone(),
            stamp: replaced.stamp.text(),
            synced,
            at: replaced.modified.unwrap_or_else(SystemTime::now),
            log,
        };
        let both = [record(&saved.text()), record("")].concat();
        self.write(|file| file.write(&both, 0));
        remember(&self.target, saved);
    }

    /// Notes that the save failed.
    pub(super) fn undone(&self) {
        self.write(|file| file.write(&record(""), RECORD as u64));
    }

    /// Writes to the note. If that fails, the note is removed, because it would describe an earlier save.
    fn write(&self, write: impl FnOnce(&InPlace) -> Result<(), FileError>) {
        let written = self.file.as_ref().map(write);
        if !matches!(written, Some(Ok(()))) {
            tracing::debug!(path = %self.path.display(), "what was saved is not noted");
            let _ = fsio::remove(&self.path, Durability::None);
        }
    }
}

impl Saved {
    fn text(&self) -> String {
        let since = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let checkpoint = self.checkpoint.as_ref();
        let text = format!(
            "{} {} {} {} {}.{} {}",
            checkpoint.map_or_else(|| "-".to_owned(), Revision::to_string),
            self.file,
            self.stamp,
            match self.synced {
                Durability::Full => "full",
                Durability::Data => "data",
                Durability::None => "none",
            },
            since.as_secs(),
            since.subsec_nanos(),
            self.log.as_deref().unwrap_or_default(),
        );
        text.trim_end().to_owned()
    }

    fn parse(text: &str) -> Option<Saved> {
        let mut words = text.split(' ');
        let mut word = || words.next();
        let checkpoint = match word()? {
            "-" => None,
            revision => Some(revision.parse().ok()?),
        };
        let (file, stamp) = (word()?.parse().ok()?, word()?.to_owned());
        let synced = match word()? {
            "full" => Durability::Full,
            "data" => Durability::Data,
            _ => Durability::None,
        };
        let (seconds, nanos) = word()?.split_once('.')?;
        let since = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
        Some(Saved {
            checkpoint,
            file,
            stamp,
            synced,
            at: UNIX_EPOCH.checked_add(since)?,
            log: word().map(str::to_owned),
        })
    }

    /// Whether this is exactly the version that was read.
    pub(super) fn is(&self, stamp: &FileStamp, file: &Revision) -> bool {
        self.file == *file && self.stamp == stamp.text()
    }
}

/// Whether this durability is sufficient.
fn covers(synced: Durability, wanted: Durability) -> bool {
    match wanted {
        Durability::None => true,
        Durability::Data => synced != Durability::None,
        Durability::Full => synced == Durability::Full,
    }
}

/// A record: the hash of the text, the text, and blanks. A text that is too long gives an invalid record.
fn record(text: &str) -> Vec<u8> {
    let mut record = format!("{} {text}", Revision::of(text.as_bytes())).into_bytes();
    record.resize(RECORD, b' ');
    record
}

/// The text of a record, if it is whole and not empty.
fn body(record: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(record.trim_ascii_end()).ok()?;
    let (hash, body) = text.split_once(' ')?;
    (hash == Revision::of(body.as_bytes()).to_string()).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_note_tells_nothing_and_a_save_that_was_begun_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.json");
        let replaced = fsio::replace(&target, b"{}", fsio::Present::Absent).unwrap();
        std::fs::create_dir_all(folder.path().join(".agent-checkpoint/locks")).unwrap();
        let note = || SavedNote::beside(&target, None);
        let [one, other, third] = [b"1", b"2", b"3"].map(|bytes| Revision::of(bytes));
        assert!(!note().read().is_ours(&one), "there is none yet");

        let noting = note().begin(None, Some(&one));
        assert!(note().read().is_ours(&one), "a killed save raises nothing");
        noting.done(Some(&one), &other, &replaced, Durability::Full, None);
        let last = note().read().last.unwrap();
        assert_eq!(last.synced, Durability::Full);
        assert!(last.is(&replaced.stamp, &other) && !last.is(&replaced.stamp, &one));
        assert_eq!(Some(last.at), replaced.modified);

        let noting = note().begin(None, Some(&third));
        assert!(note().read().is_ours(&one) && note().read().is_ours(&third));
        noting.undone();
        assert!(note().read().is_ours(&one) && !note().read().is_ours(&third));

        let whole = std::fs::read(&note().path).unwrap();
        for length in 0..RECORD - 1 {
            std::fs::write(&note().path, &whole[..length]).unwrap();
            let told = note().read().last;
            assert!(told.is_none_or(|told| told == last), "{length}");
        }
        std::fs::write(&note().path, vec![0; whole.len()]).unwrap();
        assert!(note().read().last.is_none());
    }
    #[cfg(unix)]
    #[test]
    fn a_note_that_is_somebodys_file_is_none_and_not_written_into() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.json");
        let replaced = fsio::replace(&target, b"{}", fsio::Present::Absent).unwrap();
        std::fs::create_dir_all(folder.path().join(".agent-checkpoint/locks")).unwrap();
        let note = || SavedNote::beside(&target, None);
        let one = Revision::of(b"1");
        let save = || {
            let noting = note().begin(None, Some(&one));
            noting.done(Some(&one), &one, &replaced, Durability::Full, None);
        };
        save();
        let real = std::fs::read(&note().path).unwrap();
        let victim = folder.path().join("victim");
        let missing = folder.path().join("missing");
        for leads_to in [&victim, &missing] {
            for is_link in [true, false] {
                std::fs::write(&victim, &real).unwrap();
                std::fs::remove_file(&note().path).unwrap();
                if is_link {
                    std::os::unix::fs::symlink(leads_to, &note().path).unwrap();
                } else {
                    std::fs::hard_link(&victim, &note().path).unwrap();
                }
                assert!(note().read().last.is_none());
                let _ = note().begin(None, Some(&Revision::of(b"2")));
                assert_eq!(std::fs::read(&victim).unwrap(), real);
                assert!(!missing.exists());
                save();
                assert_eq!(std::fs::read(&victim).unwrap(), real);
                assert!(note().read().is_ours(&one), "the next note is one of ours");
            }
        }
    }
}
