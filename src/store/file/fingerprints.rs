//! The fingerprints of a checkpoint's files at its last save, stored beside it.

use std::path::Path;

use super::own_file::{OwnFile, folders, of_slot};
use crate::checkpoint::Revision;
use crate::fsio::FileError;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// `.agent-checkpoint/files/{file}.json`, or for a slot of a host file `{file}@{slot}.json`: a line with the
/// hash of everything after it, a line with the revision of the checkpoint, and the text.
///
/// It is written without a sync, after the checkpoint got its name. If a crash tears it, the hash does not
/// match and it is ignored.
pub(super) struct FingerprintsFile(OwnFile);

impl FingerprintsFile {
    pub(super) fn beside(target: &Path, slot: Option<&str>) -> Self {
        let ending = of_slot(slot, ".json");
        FingerprintsFile(OwnFile::beside(target, folders::FINGERPRINTS, &ending))
    }

    /// Stores a text for the checkpoint of this revision.
    pub(super) fn write(&self, revision: &Revision, text: &str) -> Result<(), FileError> {
        let body = format!("{revision}\n{text}");
        let whole = format!("{}\n{body}", Revision::of(body.as_bytes()));
        // The present text belongs to an earlier revision, which no reader uses any more.
        self.0.write_over(whole.as_bytes())
    }

    /// The text, if it is whole and belongs to this revision.
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

    #[cfg(unix)]
    #[test]
    fn it_is_written_over_unless_it_has_another_name_or_other_permissions() {
        use std::fs::{Permissions, hard_link, metadata, read_to_string, set_permissions};
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.json");
        std::fs::write(&target, "{}").unwrap();
        let file = FingerprintsFile::beside(&target, None);
        let mut number = 0;
        let mut write = |text: &str| {
            number += 1;
            let revision = Revision::of(&[number]);
            file.write(&revision, text).unwrap();
            assert_eq!(file.read(&revision).as_deref(), Some(text));
            metadata(file.0.path()).unwrap()
        };
        let first = write("a text");
        for text in ["a longer text", "short", ""] {
            assert_eq!(write(text).ino(), first.ino(), "{text}");
        }
        let other_name = folder.path().join("other");
        hard_link(file.0.path(), &other_name).unwrap();
        let before = read_to_string(&other_name).unwrap();
        assert_ne!(write("of one name").ino(), first.ino());
        assert_eq!(read_to_string(&other_name).unwrap(), before);
        for mode in [0o600, 0o640] {
            set_permissions(&target, Permissions::from_mode(mode)).unwrap();
            assert_eq!(write("for the same readers").mode() & 0o777, mode);
        }
    }
}
