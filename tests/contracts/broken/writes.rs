//! Puts and transactions of broken stores.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, Outcome, Put, RecoverOptions, Recovery, Saved, Stored,
};
use agent_checkpoint::{Clock, Error, ErrorKind, Expect, Key, Result, Revision};

use super::Broken;
use super::Fault::*;
use super::store::as_if_done;

/// Long enough for another writer to come between.
const MOMENT: Duration = Duration::from_millis(5);

/// Excludes only the threads of one process.
static PROCESS: Mutex<()> = Mutex::new(());

fn text(text: impl Into<String>) -> Document {
    Document::from_text(text).unwrap()
}

fn conflict(key: &Key, expect: &Expect, present: Option<&Stored>) -> Error {
    let found = present.map(|stored| stored.revision.clone());
    let expected = expect.clone();
    Error::new(ErrorKind::Conflict { expected, found }).with_key(key)
}

fn fits(expect: &Expect, present: Option<&Stored>) -> bool {
    match (expect, present) {
        (Expect::Any, _) | (Expect::Absent, None) => true,
        (Expect::Revision(wanted), Some(present)) => *wanted == present.revision,
        _ => false,
    }
}

impl Broken {
    pub(super) fn put_wrongly(&self, key: &Key, put: Put) -> Result<Saved> {
        let key = &self.name(key);
        let document = put.document().clone();
        let fence = self.fence(key, put.fence());
        let mut put = put.with_fence(fence);
        match self.fault {
            DropsUnknownKeys => {
                let known = document.read::<TaskCheckpoint>().unwrap().value;
                put = put.with_document(Document::new(&known).unwrap());
            }
            CountsRevisions => {
                let mut saved = self.right.put(key, Put::new(document))?;
                let count = self.shared.puts.fetch_add(1, Ordering::Relaxed) + 1;
                saved.revision = Revision::of(count.to_string().as_bytes());
                return Ok(saved);
            }
            IgnoresExpectations => put = put.with_expect(Expect::Any),
            ForgetsDroppedItems => put = put.with_dropped(Vec::new()),
            TextOfAnyRevision => {
                let mut beside = self.shared.beside.lock().unwrap();
                *beside = put.fingerprints().map(str::to_owned);
            }
            KeepsNoHistory => put = put.skip_history(),
            HeartbeatsAreStates => put = Put::new(document.clone()),
            ChecksThenWrites => return self.check_then_write(key, document, put.expect()),
            ExcludesOnlyThreads => {
                let _locked = PROCESS.lock().unwrap();
                return self.check_then_write(key, document, put.expect());
            }
            WritesInTwoSteps => {
                let first = self.right.put(key, put.with_document(text("{}")))?;
                std::thread::sleep(MOMENT);
                let mut saved = self.right.put(key, Put::new(document))?;
                saved.previous = first.previous;
                return Ok(saved);
            }
            WritesLater => {
                self.write_waiting()?;
                let present = self.right.load(key)?;
                let saved = as_if_done(present.as_ref(), &document, Outcome::Replaced);
                *self.own.waiting.lock().unwrap() = Some((key.clone(), document));
                return Ok(saved);
            }
            OlderLoses if self.is_older(key, &document)? => {
                let present = self.right.load(key)?;
                return Ok(as_if_done(present.as_ref(), &document, Outcome::Replaced));
            }
            CutsLargeTexts if document.text().len() > 65_536 => {
                put = put.with_document(text("{\"n\":1}"));
            }
            StaysBroken if *self.own.failed.lock().unwrap() => {
                return Err(Error::refused("a save failed before"));
            }
            _ => {}
        }
        let saved = self.right.put(key, put);
        let Err(error) = saved else { return saved };
        match self.fault {
            DeletesOnConflict => {
                self.right.delete(key, &DeleteOptions::new())?;
            }
            HidesFailures => {
                let present = self.right.load(key).ok().flatten();
                return Ok(as_if_done(present.as_ref(), &document, Outcome::Replaced));
            }
            WritesOverCorrupt if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
                self.right
                    .recover(key, &RecoverOptions::new(Recovery::Fresh))?;
                return self.right.put(key, Put::new(document));
            }
            StaysBroken => *self.own.failed.lock().unwrap() = true,
            _ => {}
        }
        Err(error)
    }

    /// Lets other writers come between the check and the write.
    fn check_then_write(&self, key: &Key, document: Document, expect: &Expect) -> Result<Saved> {
        let present = self.right.load(key)?;
        if !fits(expect, present.as_ref()) {
            return Err(conflict(key, expect, present.as_ref()));
        }
        std::thread::sleep(MOMENT);
        self.right.put(key, Put::new(document))
    }

    /// Whether a document is older than the last, by its stamp or by the clock.
    fn is_older(&self, key: &Key, document: &Document) -> Result<bool> {
        let stamp = |document: &Document| {
            let node = document.get("/updatedAt")?;
            Some(node.as_str()?.into_owned())
        };
        if let Some(now) = stamp(document) {
            let present = self.right.load(key)?;
            let before = present.and_then(|stored| stamp(&stored.document));
            return Ok(before.is_some_and(|before| now < before));
        }
        let clock = self.shared.clock.lock().unwrap().clone().unwrap();
        let (mut latest, now) = (self.shared.latest.lock().unwrap(), clock.now().timestamp());
        let is_older = now < *latest;
        *latest = now.max(*latest);
        Ok(is_older)
    }

    pub(super) fn transact_wrongly(
        &self,
        key: &Key,
        decide: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        let _locked = (self.fault == ExcludesOnlyThreads).then(|| PROCESS.lock().unwrap());
        loop {
            let stored = self.load(key)?;
            let seen = stored.as_ref().filter(|_| self.fault != TransactsOnNothing);
            let Some(put) = decide(seen)? else {
                return Saved::unchanged(key, stored.as_ref());
            };
            let is_blind = matches!(self.fault, ChecksThenWrites | ExcludesOnlyThreads);
            if is_blind {
                std::thread::sleep(MOMENT);
                return self.right.put(key, put);
            }
            let expect = match &stored {
                Some(stored) => Expect::Revision(stored.revision.clone()),
                None => Expect::Absent,
            };
            match self.put(key, put.with_expect(expect)) {
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                result => return result,
            }
        }
    }
}
