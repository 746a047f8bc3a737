//! The ledger of a key: one object, which outlives the documents of the key.

use std::collections::BTreeMap;
use std::time::Instant;

use agent_checkpoint::store::{LedgerLines, LedgerMark, ListedLedger, Page, check_ledger_line};
use agent_checkpoint::{Error, ErrorKind, Fence, Key, Result};
use object_store::path::Path;
use object_store::{ObjectMeta, PutMode, UpdateVersion};

use crate::failure::{Failure, outcome_unknown};
use crate::head::new_id;
use crate::keys::name_of;
use crate::remote::{Got, Time, Wait};
use crate::store::ObjectCheckpointStore;

/// The name of the object.
const LEDGER: &str = "ledger";

/// A ledger as it was read. Each line of the object begins with the name of the write that added it, and a space.
#[derive(Default)]
struct Ledger {
    text: String,
    version: Option<UpdateVersion>,
}

impl Ledger {
    /// The lines as (name of the write, line).
    fn lines(&self) -> Result<Vec<(&str, &str)>> {
        let lines = self.text.lines().map(|line| line.split_once(' '));
        lines.collect::<Option<_>>().ok_or_else(unreadable)
    }
}

fn unreadable() -> Error {
    let detail = "the object of its ledger is not what the store writes there, so it is unknown which effects were begun or done; \
                  bring an earlier version of the object back"
        .to_owned();
    Error::new(ErrorKind::Unreadable { detail })
}

/// Whether a line can be added at its position.
enum Looked {
    /// It cannot. `true` if this write has added it already.
    Over(bool),
    /// It would be the next line of this ledger.
    Free(Ledger),
}

impl ObjectCheckpointStore {
    /// The lines behind those of a mark. The object is read whole, since it is put whole.
    pub(crate) fn lines_of_ledger(
        &self,
        key: &Key,
        mark: Option<&LedgerMark>,
    ) -> Result<LedgerLines> {
        let path = self.place.beside(&name_of(key.as_str()), LEDGER)?;
        let ledger = self.read_ledger(&path, self.time());
        let lines = ledger.and_then(|ledger| {
            let lines = ledger.lines()?;
            LedgerLines::since(mark, |from| {
                let lines = lines.iter().skip(from);
                Ok(lines.map(|(_, line)| (*line).to_owned()).collect())
            })
        });
        lines.map_err(|error| error.with_path(path.as_ref()).with_key(key))
    }

    /// Adds to each key of a page the version of its ledger, with one listing of the objects beside all keys.
    pub(crate) fn tell_ledgers(&self, page: &mut Page, time: Time) -> Result<()> {
        let (Some(first), Some(_)) = (page.entries.first(), page.entries.last()) else {
            return Ok(());
        };
        let start = self.place.beside(&name_of(first.key.as_str()), "")?;
        let paths = page.entries.iter().map(|listed| {
            let ledger = self.place.beside(&name_of(listed.key.as_str()), LEDGER);
            ledger.map(|path| path.to_string())
        });
        let paths: Vec<String> = paths.collect::<Result<_>>()?;
        // If one name is the beginning of another, the order of the paths differs from the order of the names.
        let last = paths.iter().max().cloned().unwrap_or_default();
        let take = move |_, object: &ObjectMeta| object.location.as_ref() <= last.as_str();
        let folder = self.place.beside("", "")?;
        let listed = self.remote.list(&folder, Some(start), take, time);
        let listed = listed.map_err(Failure::into_error)?;
        let found: BTreeMap<&str, &ObjectMeta> =
            listed.iter().map(|it| (it.location.as_ref(), it)).collect();
        for (listed, path) in page.entries.iter_mut().zip(&paths) {
            listed.ledger = match found.get(path.as_str()).map(|object| &object.e_tag) {
                Some(Some(e_tag)) => ListedLedger::Version(e_tag.clone()),
                Some(None) => ListedLedger::Unknown,
                None => ListedLedger::Empty,
            };
        }
        Ok(())
    }

    fn read_ledger(&self, path: &Path, time: Time) -> Result<Ledger> {
        match self.remote.get(path, u64::MAX, time) {
            Ok(Got::Whole(object)) => Ok(Ledger {
                text: String::from_utf8(object.bytes).map_err(|_| unreadable())?,
                version: Some(object.version),
            }),
            Ok(Got::TooLarge(_)) => Err(unreadable()),
            Err(Failure::Absent) => Ok(Ledger::default()),
            Err(failure) => Err(failure.into_error()),
        }
    }

    pub(crate) fn add_to_ledger(
        &self,
        key: &Key,
        line: &str,
        at: usize,
        fence: Option<Fence>,
    ) -> Result<bool> {
        let added = check_ledger_line(line)
            .and_then(|()| self.check_writable())
            .and_then(|()| self.try_to_add(key, line, at, fence));
        added.map_err(|error| error.with_key(key))
    }

    fn try_to_add(&self, key: &Key, line: &str, at: usize, fence: Option<Fence>) -> Result<bool> {
        let path = self.place.beside(&name_of(key.as_str()), LEDGER)?;
        let (time, write) = (self.time(), new_id());
        let (mut wait, mut cause, mut may_be_there) = (Wait::default(), None, false);
        loop {
            let error = match self.look_at_place(&path, &write, at, time) {
                Ok(Looked::Over(is_ours)) => return Ok(is_ours),
                Ok(Looked::Free(ledger)) => {
                    let put = self.put_line(key, (&path, ledger), (&write, line), fence, time);
                    may_be_there = matches!(put, Err(Failure::Lost | Failure::Absent));
                    match put {
                        Ok(()) => return Ok(true),
                        // The driver retries some requests by itself, so this write may have been made already.
                        Err(Failure::Lost | Failure::Absent) => None,
                        Err(Failure::Unknown(why)) => {
                            cause = Some(why);
                            None
                        }
                        Err(failure) => Some(failure.into_error()),
                    }
                }
                Err(error) => Some(error),
            };
            // The first request may still be on its way. The second is the same request with the same condition, so
            // only one of them can succeed.
            let pause = wait.take();
            let error = match error {
                None if Instant::now() + pause < time.until => {
                    std::thread::sleep(pause);
                    continue;
                }
                None => Error::new(ErrorKind::ChangedMeanwhile),
                Some(error) => error,
            };
            return Err(match cause {
                Some(cause) => outcome_unknown().with_source(cause),
                None if may_be_there => outcome_unknown().with_source(error),
                None => error,
            }
            .with_path(path.as_ref()));
        }
    }

    /// Checks whether a line can be added at its position.
    fn look_at_place(&self, path: &Path, write: &str, at: usize, time: Time) -> Result<Looked> {
        let ledger = self.read_ledger(path, time)?;
        let over = {
            let lines = ledger.lines()?;
            match lines.get(at) {
                Some((by, _)) => Some(*by == write),
                None => (lines.len() < at).then_some(false),
            }
        };
        Ok(match over {
            Some(is_ours) => Looked::Over(is_ours),
            None => Looked::Free(ledger),
        })
    }

    /// Appends a line, on condition that the ledger is still the one that was read.
    fn put_line(
        &self,
        key: &Key,
        (path, ledger): (&Path, Ledger),
        (write, line): (&str, &str),
        fence: Option<Fence>,
        time: Time,
    ) -> Result<(), Failure> {
        let refused = Failure::Refused;
        // The claim is in another object, so another agent may take over before the line is written. Such a line counts
        // as one from before the take-over: the new owner finds it at the position of its own first line.
        let head = self.head(key, time).map_err(refused)?;
        head.refuse_newer().map_err(refused)?;
        self.check_fence(&head, fence).map_err(refused)?;
        let mode = ledger.version.map_or(PutMode::Create, PutMode::Update);
        let text = format!("{}{write} {line}\n", ledger.text);
        self.remote.put_once(path, text.into_bytes(), mode, time)
    }
}
