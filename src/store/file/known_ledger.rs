//! The ledger files that this process has read, so that it reads each line once.
//!
//! A cache entry counts only for the exact file that this process last read, or appended to under the lock. The stamp
//! and the last line are compared, because a stamp is only as fine as the system's clock. A file that another process
//! changed is read whole; the entry still counts for it if the file begins with all of its bytes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::checkpoint::{Revision, random_name};
use crate::fsio::FileStamp;
use crate::store::LedgerMark;

/// How many files are cached. Beyond that the one that was not used for the longest time is read whole again.
const MOST: usize = 256;

static KNOWN: Mutex<BTreeMap<PathBuf, KnownLedger>> = Mutex::new(BTreeMap::new());

/// A file as this process last saw it.
#[derive(Clone, Debug)]
pub(super) struct KnownLedger {
    /// The name of these lines and of lines added to them. Another file, or one that another program changed, has
    /// another name.
    name: String,
    pub(super) stamp: FileStamp,
    /// How many whole lines there are.
    pub(super) lines: usize,
    /// Their length in bytes.
    pub(super) whole: u64,
    /// Where the last of them begins.
    pub(super) last: u64,
    /// Its digest.
    last_line: Revision,
    /// The hasher of all of these bytes.
    hasher: DefaultHasher,
    /// When it was last used.
    used: Instant,
}

impl KnownLedger {
    /// The entry of this path.
    pub(super) fn of(path: &Path) -> Option<KnownLedger> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get_mut(path)?;
        found.used = Instant::now();
        Some(found.clone())
    }

    /// The entry of a file that was read whole; `whole` has the bytes of all its lines.
    pub(super) fn read(stamp: FileStamp, lines: usize, whole: &[u8]) -> KnownLedger {
        let before_end = &whole[..whole.len().saturating_sub(1)];
        let end = before_end.iter().rposition(|byte| *byte == b'\n');
        let last = end.map_or(0, |end| end + 1);
        let mut hasher = DefaultHasher::new();
        hasher.write(whole);
        KnownLedger {
            name: random_name(),
            stamp,
            lines,
            whole: whole.len() as u64,
            last: last as u64,
            last_line: Revision::of(&whole[last..]),
            hasher,
            used: Instant::now(),
        }
    }

    /// The same with one more line, with its line end.
    pub(super) fn with_line(mut self, stamp: FileStamp, line: &[u8]) -> KnownLedger {
        self.hasher.write(line);
        KnownLedger {
            stamp,
            lines: self.lines + 1,
            last: self.whole,
            whole: self.whole + line.len() as u64,
            last_line: Revision::of(line),
            ..self
        }
    }

    pub(super) fn remember(self, path: &Path) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path.to_owned(), self);
        if known.len() > MOST {
            let least = known.iter().min_by_key(|(_, known)| known.used);
            let least = least.map(|(path, _)| path.clone());
            least.and_then(|path| known.remove(&path));
        }
    }

    pub(super) fn forget(path: &Path) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(path);
    }

    /// Whether a file begins with all of its bytes, so that its lines are the first ones there.
    pub(super) fn is_beginning_of(&self, bytes: &[u8]) -> bool {
        let whole = usize::try_from(self.whole).unwrap_or(usize::MAX);
        bytes.get(..whole).is_some_and(|beginning| {
            let mut hasher = DefaultHasher::new();
            hasher.write(beginning);
            hasher.finish() == self.hasher.finish()
        })
    }

    /// The same name for a file that begins with all of its bytes.
    pub(super) fn named(mut self, before: &KnownLedger) -> KnownLedger {
        self.name.clone_from(&before.name);
        self
    }

    /// Whether this is the last line, with its line end.
    pub(super) fn ends_with(&self, line: &[u8]) -> bool {
        self.last_line == Revision::of(line)
    }

    pub(super) fn mark(&self) -> LedgerMark {
        LedgerMark::new(self.lines, format!("{}-{}", self.name, self.whole))
    }

    /// How many lines and bytes a mark identifies; 0 if it is not a mark of these lines.
    pub(super) fn before(&self, mark: Option<&LedgerMark>) -> (usize, u64) {
        let of_these = mark.and_then(|mark| {
            let bytes = mark.token().strip_prefix(&*self.name)?.strip_prefix('-')?;
            Some((mark.lines(), bytes.parse().ok()?))
        });
        of_these
            .filter(|(lines, bytes)| *lines <= self.lines && *bytes <= self.whole)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_only_the_file_that_was_used_least_recently_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let found = crate::fsio::look(folder.path()).unwrap().unwrap();
        let stamp = FileStamp::of(&found);
        let path = |number: usize| folder.path().join(number.to_string());
        let remember = |number| KnownLedger::read(stamp.clone(), 0, b"").remember(&path(number));
        let is_there = |number| KnownLedger::of(&path(number)).is_some();
        (0..MOST).for_each(remember);
        assert!(is_there(0));
        remember(MOST);
        assert!(is_there(0) && !is_there(1));
        // Other tests of this process add a few.
        let there = (0..=MOST).filter(|number| is_there(*number)).count();
        assert!(there > MOST / 2, "{there}");
        (0..=MOST).for_each(|number| KnownLedger::forget(&path(number)));
    }
}
