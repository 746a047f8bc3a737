//! Dropped items and fingerprints. Each is in separate objects beside the document.

use std::collections::BTreeSet;
use std::path::PathBuf;

use agent_checkpoint::store::{Beside, LedgerLines, LedgerMark};
use agent_checkpoint::{Dropped, Fence, Key, Result, Revision};

use crate::failure::Failure;
use crate::head::{item_of_line, line_of_item};
use crate::keys::name_of;
use crate::remote::{Got, Object, Time};
use crate::store::{Next, ObjectCheckpointStore};

/// The name of the object with the fingerprints.
const FINGERPRINTS: &str = "fingerprints";

/// An object of dropped items smaller than this is rewritten together with new items; a larger one stays as it is.
const ENOUGH: usize = 64 << 10;

impl Beside for ObjectCheckpointStore {
    fn dropped(&self, key: &Key) -> Result<Vec<Dropped>> {
        let time = self.time();
        let mut head = self.head(key, time)?;
        let objects = loop {
            match self.parts(key, &head.header.dropped, time) {
                Ok(objects) => break objects,
                Err(error) => {
                    // A newer write may have removed objects that it no longer needs.
                    let now = self.head(key, time)?;
                    if now.is_still(&head) {
                        return Err(error.with_key(key));
                    }
                    head = now;
                }
            }
        };
        let (mut seen, mut items) = (BTreeSet::new(), Vec::new());
        for object in &objects {
            for line in lines(object) {
                if seen.insert(line) {
                    items.push(item_of_line(line).map_err(|error| error.with_key(key))?);
                }
            }
        }
        Ok(items)
    }

    fn newest_dropped(&self, key: &Key, most: usize) -> Result<Vec<Dropped>> {
        let mut all = self.dropped(key)?;
        Ok(all.split_off(all.len().saturating_sub(most)))
    }

    fn dropped_log(&self, _: &Key) -> Result<Option<String>> {
        Ok(None)
    }

    fn fingerprints(&self, key: &Key, revision: &Revision) -> Result<Option<String>> {
        let time = self.time();
        let head = self.head(key, time)?;
        if !head.is_there() || Revision::of(&head.text) != *revision {
            return Ok(None);
        }
        let path = self.place.beside(&name_of(key.as_str()), FINGERPRINTS)?;
        match self.remote.get(&path, self.max_bytes, time) {
            Ok(Got::Whole(object)) => Ok(String::from_utf8(object.bytes).ok().and_then(|text| {
                let (save, text) = text.split_once('\n')?;
                (save == head.header.save).then(|| text.to_owned())
            })),
            Ok(Got::TooLarge(_)) | Err(Failure::Absent) => Ok(None),
            Err(failure) => Err(failure.into_error().with_key(key)),
        }
    }

    fn document_file(&self, _: &Key) -> Option<PathBuf> {
        None
    }

    fn ledger_since(&self, key: &Key, mark: Option<&LedgerMark>) -> Result<LedgerLines> {
        self.lines_of_ledger(key, mark)
    }

    fn append_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        self.add_to_ledger(key, line, at, fence)
    }
}

impl ObjectCheckpointStore {
    /// Reads objects beside the document of a key. All of them must exist.
    fn parts(&self, key: &Key, parts: &[String], time: Time) -> Result<Vec<Object>> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let name = name_of(key.as_str());
        let paths = parts.iter().map(|part| self.place.beside(&name, part));
        let got = self
            .remote
            .get_all(paths.collect::<Result<_>>()?, u64::MAX, time);
        let whole = |got| match got {
            Ok(Got::Whole(object)) => Ok(object),
            Ok(Got::TooLarge(_)) => Err(Failure::Absent.into_error()),
            Err(failure) => Err(Failure::into_error(failure)),
        };
        let got = got.map_err(Failure::into_error)?;
        got.into_iter().map(whole).collect()
    }

    /// Adds dropped items to those of the key. They take effect when the object of the key is written, which names
    /// them.
    pub(crate) fn add_dropped(
        &self,
        key: &Key,
        next: &mut Next,
        items: &[Dropped],
        time: Time,
    ) -> Result<()> {
        let header = &mut next.head.header;
        let last: Vec<String> = header.dropped.last().cloned().into_iter().collect();
        let last = self.parts(key, &last, time)?.pop();
        let small = last.filter(|object| object.bytes.len() < ENOUGH);
        let mut text = String::new();
        if let Some(small) = &small {
            text = lines(small).map(|line| format!("{line}\n")).collect();
            header.gone.extend(header.dropped.pop());
        }
        let mut seen: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        for item in items {
            let line = line_of_item(item)?;
            if seen.insert(line.clone()) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        let part = next.add("dropped", text.into_bytes());
        next.head.header.dropped.push(part);
        Ok(())
    }
}

/// The lines of an object with dropped items.
fn lines(object: &Object) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(&object.bytes).unwrap_or_default();
    text.lines()
}

impl Next {
    /// Marks the dropped items for removal: they belong to a task that ended.
    pub(crate) fn clear_dropped(&mut self) {
        let header = &mut self.head.header;
        header.gone.append(&mut header.dropped);
    }

    /// Writes the fingerprints of the present text. A faster writer may overwrite them with fingerprints of another
    /// save, which is named with them.
    pub(crate) fn add_fingerprints(&mut self, fingerprints: &str) {
        let text = [self.head.header.save.as_str(), fingerprints].join("\n");
        self.set(FINGERPRINTS, text.into_bytes());
    }
}
