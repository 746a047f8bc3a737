//! How broken stores put and transact.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    CheckpointStore, DeleteOptions, Keep, Outcome, Put, RecoverOptions, Recovery, Saved, Stored,
};
use agent_checkpoint::{Clock, Error, ErrorKind, Expect, Key, Result, Revision};

use super::Broken;
use super::Fault::*;
use super::store::as_if_done;

/// Long enough for another to come between.
pub(super) const MOMENT: Duration = Duration::from_millis(5);

/// What keeps the threads of one process apart, and no others.
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
        self.own.read.lock().unwrap().remove(key);
        let mut document = put.document().clone();
        let fence = self.fence(key, put.fence());
        let mut put = put.with_fence(fence);
        let any = Put::new;
        match self.fault {
            EndsEveryText => document = text(format!("{}\n", document.text().trim_end())),
            Reserializes => {
                // In the order of the names, whatever serde_json does of itself.
                type Members = std::collections::BTreeMap<String, serde_json::Value>;
                if let Ok(members) = serde_json::from_str::<Members>(document.text()) {
                    document = text(serde_json::to_string(&members).unwrap());
                }
            }
            WritesOnlyWhatItKnows => {
                let known = document.read::<TaskCheckpoint>().unwrap().value;
                document = Document::new(&known).unwrap();
            }
            CountsRevisions => {
                let mut saved = self.right.put(key, any(document.clone()))?;
                let count = self.shared.puts.fetch_add(1, Ordering::Relaxed) + 1;
                saved.revision = Revision::of(count.to_string().as_bytes());
                return Ok(saved);
            }
            WritesTheSameAgain => {
                let mut saved = self
                    .right
                    .put(key, put.clone().with_document(document.clone()))?;
                saved.outcome = Outcome::Replaced;
                return Ok(saved);
            }
            ComparesLengths => {
                let present = self.right.load(key)?;
                let is_as_long =
                    |stored: &Stored| stored.document.text().len() == document.text().len();
                if present.as_ref().is_some_and(is_as_long) {
                    return Saved::unchanged(key, present.as_ref());
                }
            }
            ForgetsExpect => put = put.with_expect(Expect::Any),
            ForgetsCuts => put = put.with_dropped(Vec::new()),
            KeepsCutsInMemory => {
                let mut cut = self.own.cut.lock().unwrap();
                cut.extend(put.dropped().iter().cloned());
                put = put.with_dropped(Vec::new());
            }
            CompanionOfAnyRevision => {
                *self.shared.companion.lock().unwrap() = put.fingerprints().map(str::to_owned);
            }
            KeepsNoHistory => put = put.skip_history(),
            SignsOfLifeAreStates => {
                put = Put::new(document.clone())
                    .with_expect(put.expect().clone())
                    .with_fence(put.fence());
            }
            ChecksAbsenceThenWrites if *put.expect() == Expect::Absent => {
                return self.check_then_write(key, document, put.expect());
            }
            ChecksRevisionThenWrites if *put.expect() != Expect::Absent => {
                return self.check_then_write(key, document, put.expect());
            }
            LocksItsOpening => {
                let _locked = self.own.lock.lock().unwrap();
                return self.check_then_write(key, document, put.expect());
            }
            LocksItsProcess => {
                let _locked = PROCESS.lock().unwrap();
                return self.check_then_write(key, document, put.expect());
            }
            WritesInTwoSteps | WritesInTwoStepsAndReadsLate => {
                let first = self.right.put(key, put.with_document(text("{}")))?;
                std::thread::sleep(MOMENT);
                let mut saved = self.right.put(key, any(document.clone()))?;
                saved.previous = first.previous;
                return Ok(saved);
            }
            WritesLater | WritesWhenDropped => {
                self.write_waiting()?;
                let present = self.right.load(key)?;
                let saved = as_if_done(present.as_ref(), &document, Outcome::Replaced);
                *self.own.waiting.lock().unwrap() = Some((key.clone(), document));
                return Ok(saved);
            }
            NewestStampWins | NewestClockWins if self.is_older(key, &document)? => {
                let present = self.right.load(key)?;
                return Ok(as_if_done(present.as_ref(), &document, Outcome::Replaced));
            }
            CutsLargeTexts if document.text().len() > 65_536 => document = text("{\"n\":1}"),
            CutsDeepTexts if document.text().matches('[').count() > 64 => {
                document = text("{\"n\":1}");
            }
            DeletesThenWrites => {
                self.right.delete(key, &DeleteOptions::new())?;
            }
            StaysBroken if *self.own.failed.lock().unwrap() => {
                return Err(Error::refused("a save failed before"));
            }
            _ => {}
        }
        let saved = self.right.put(key, put.with_document(document.clone()));
        let Err(error) = saved else { return saved };
        match self.fault {
            DeletesOnConflict => {
                self.right.delete(key, &DeleteOptions::new())?;
            }
            RotatesOnFailure => {
                self.right.prune(key, &Keep::newest(1))?;
            }
            WritesOverCorrupt if matches!(error.kind(), ErrorKind::Corrupt(_)) => {
                self.right
                    .recover(key, &RecoverOptions::new(Recovery::Fresh))?;
                return self.right.put(key, any(document.clone()));
            }
            StaysBroken => *self.own.failed.lock().unwrap() = true,
            _ => {}
        }
        Err(error)
    }

    /// Lets others come between the check and the write.
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
        if self.fault == NewestClockWins {
            let clock = self.shared.clock.lock().unwrap().clone().unwrap();
            let (mut latest, now) = (self.shared.latest.lock().unwrap(), clock.now().timestamp());
            let is_older = now < *latest;
            *latest = now.max(*latest);
            return Ok(is_older);
        }
        let stamp = |document: &Document| {
            let node = document.get("/updatedAt")?;
            Some(node.as_str()?.into_owned())
        };
        let present = self.right.load(key)?;
        let before = present.and_then(|stored| stamp(&stored.document));
        Ok(stamp(document).is_some_and(|now| before.is_some_and(|before| now < before)))
    }

    pub(super) fn transact_wrongly(
        &self,
        key: &Key,
        change: &mut dyn FnMut(Option<&Stored>) -> Result<Option<Put>>,
    ) -> Result<Saved> {
        let _locked = match self.fault {
            TransactsUnderItsOpening => Some(self.own.lock.lock().unwrap()),
            TransactsUnderItsProcess => Some(PROCESS.lock().unwrap()),
            _ => None,
        };
        loop {
            let stored = self.load(key)?;
            let seen = stored.as_ref().filter(|_| self.fault != TransactsOnNothing);
            let put = match change(seen)? {
                None => return Saved::unchanged(key, stored.as_ref()),
                Some(put) => put,
            };
            let is_blind = matches!(
                self.fault,
                TransactsWithoutLooking | TransactsUnderItsOpening | TransactsUnderItsProcess
            );
            let expect = match &stored {
                _ if is_blind => Expect::Any,
                Some(stored) => Expect::Revision(stored.revision.clone()),
                None => Expect::Absent,
            };
            if is_blind {
                std::thread::sleep(MOMENT);
            }
            match self.put(key, put.with_expect(expect)) {
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                result => return result,
            }
        }
    }
}
