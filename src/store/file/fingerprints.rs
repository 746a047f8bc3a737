//! What was known of a checkpoint's files when it was saved, beside it.

use std::path::Path;

use super::own_file::{OwnFile, folders, of_slot};
use crate::checkpoint::Revision;
use crate::fsio::{Durability, FileError, Present};

/// The largest that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// `.agent-checkpoint/files/{file}.json`, of a host file `{file}@{slot}.json`: a line with the hash of all
/// that follows, a line with the revision of the checkpoint, and the text.
///
/// Written without waiting for the disk, after the checkpoint has its name. What a crash tears does not have
/// its hash, and is none.
pub(super) struct FingerprintsFile(OwnFile);

impl FingerprintsFile {
    pub(super) fn beside(target: &Path, slot: Option<&str>) -> Self {
        let ending = of_slot(slot, ".json");
        FingerprintsFile(OwnFile::beside(target, folders::FINGERPRINTS, &ending))
    }

    /// Keeps a text for the checkpoint of this revision.
    pub(super) fn write(&self, revision: &Revision, text: &str) -> Result<(), FileError> {
        let body = format!("{revision}\n{text}");
        let whole = format!("{}\n{body}", Revision::of(body.as_bytes()));
        let durability = Durability::None;
        self.0
            .write(whole.as_bytes(), Present::Whatever, durability)
    }

    /// The text, if there is a whole one for the checkpoint of this revision.
    pub(super) fn read(&self, revision: &Revision) -> Option<String> {
        let read = self.0.read(MAX_BYTES).ok()??;
        let whole = String::from_utf8(read.bytes).ok()?;
        let (hash, body) = whole.split_once('\n')?;
        if hash != Revision::of(body.as_bytes()).to_string() {
            tracing::debug!(path = %self.0.path().display(), "torn, so not used");
            return None;
        }
        let (of, text) = body.split_once('\n')?;
        (of == revision.to_string()).then(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_text_and_one_of_another_revision_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.json");
        std::fs::write(&target, "{}").unwrap();
        let file = FingerprintsFile::beside(&target, None);
        let [one, other] = [Revision::of(b"1"), Revision::of(b"2")];
        assert_eq!(file.read(&one), None);
        file.write(&one, "text\nof two lines").unwrap();
        assert_eq!(file.read(&one).as_deref(), Some("text\nof two lines"));
        assert_eq!(file.read(&other), None);
        let whole = std::fs::read(file.0.path()).unwrap();
        for length in 0..whole.len() {
            std::fs::write(file.0.path(), &whole[..length]).unwrap();
            assert_eq!(file.read(&one), None, "{length}");
        }
        std::fs::write(file.0.path(), vec![0; whole.len()]).unwrap();
        assert_eq!(file.read(&one), None);
    }
}
