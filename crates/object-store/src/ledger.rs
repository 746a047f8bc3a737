//! The ledger of a key: one object, which outlives the documents under the key.

use std::time::Instant;

use agent_checkpoint::store::check_ledger_line;
use agent_checkpoint::{Error, ErrorKind, Fence, Key, Result};
use object_store::path::Path;
use object_store::{PutMode, UpdateVersion};

use crate::failure::{Failure, outcome_unknown};
use crate::head::new_id;
use crate::keys::name_of;
use crate::remote::{Got, Time, Wait};
use crate::store::ObjectCheckpointStore;

/// The name of the object.
const LEDGER: &str = "ledger";

/// A ledger as it was read. In the object each line begins with the name of the write that added it, and a space.
#[derive(Default)]
struct Ledger {
    text: String,
    version: Option<UpdateVersion>,
}

impl Ledger {
    /// The lines, each with the name of its write.
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

impl ObjectCheckpointStore {
    pub(crate) fn lines_of_ledger(&self, key: &Key) -> Result<Vec<String>> {
        let path = self.place.beside(&name_of(key.as_str()), LEDGER)?;
        let ledger = self.read_ledger(&path, self.time());
        let lines = ledger.and_then(|ledger| {
            let lines = ledger.lines()?.into_iter();
            Ok(lines.map(|(_, line)| line.to_owned()).collect())
        });
        lines.map_err(|error| error.with_path(path.as_ref()).with_key(key))
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
        let (mut wait, mut cause) = (Wait::default(), None);
        loop {
            let put = self.put_line(key, &path, (&write, line), at, fence, time);
            let error = match put {
                Ok(Some(is_ours)) => return Ok(is_ours),
                Ok(None) => None,
                Err(Failure::Unknown(why)) => {
                    cause = Some(why);
                    None
                }
                Err(failure) => Some(failure.into_error()),
            };
            // The request may still be on its way. It is the same one that is made again, on the same condition: only one of
            // them can be done.
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
                None => error,
            }
            .with_path(path.as_ref()));
        }
    }

    /// Puts a line behind the others, unless it is there already: whether the line at its place is that of this write. `None`
    /// where it has to be looked at again.
    fn put_line(
        &self,
        key: &Key,
        path: &Path,
        (write, line): (&str, &str),
        at: usize,
        fence: Option<Fence>,
        time: Time,
    ) -> Result<Option<bool>, Failure> {
        let refused = Failure::Refused;
        let ledger = self.read_ledger(path, time).map_err(refused)?;
        let lines = ledger.lines().map_err(refused)?;
        match lines.get(at) {
            Some((by, _)) => return Ok(Some(*by == write)),
            None if lines.len() < at => return Ok(Some(false)),
            None => {}
        }
        // The claim is in another object, so it may be taken over before the line is there. Such a line is as one from before:
        // the new owner finds it at the place where its own first line would be.
        let head = self.head(key, time).map_err(refused)?;
        head.refuse_newer().map_err(refused)?;
        self.check_fence(&head, fence).map_err(refused)?;
        let mode = ledger
            .version
            .clone()
            .map_or(PutMode::Create, PutMode::Update);
        let text = format!("{}{write} {line}\n", ledger.text);
        match self.remote.put_once(path, text.into_bytes(), mode, time) {
            Ok(()) => Ok(Some(true)),
            // The driver repeats some requests by itself, so even then it may be this very write that is there.
            Err(Failure::Lost | Failure::Absent) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
