//! Deliberately broken stores, each a correct store with one fault.

mod claims;
mod store;
mod writes;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Keep, MemoryStore};
use agent_checkpoint::testkit::{MovableClock, Place};
use agent_checkpoint::{Key, Result};

use crate::stores::{Files, InMemory, in_memory};

/// The faults: one for each kind of rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    DefaultForNothing,
    DropsUnknownKeys,
    TransactsOnNothing,
    DeletesOnConflict,
    IgnoresExpectations,
    DeletesAlways,
    OneDocumentForAll,
    ListsBackwards,
    PagesWithoutEnd,
    GivesAnotherDocument,
    VersionsAreRevisions,
    ListsNoLedgers,
    CountsRevisions,
    ForgetsDroppedItems,
    TextOfAnyRevision,
    BeatsInTheDocument,
    OlderLoses,
    CutsLargeTexts,
    HasNoLimit,
    WritesLater,
    ChecksThenWrites,
    WritesInTwoSteps,
    ExcludesOnlyThreads,
    IgnoresFences,
    GivesClaimsToAll,
    CountsFencesAnew,
    RenewsForEveryone,
    KeepsNoHistory,
    HistoryOldestFirst,
    KeepsAllHistory,
    PrunesEverything,
    GivesAnotherState,
    HeartbeatsAreStates,
    AppendsWithoutTasks,
    CorruptIsNothing,
    WritesOverCorrupt,
    RecoversWithNothing,
    RecoversWhatIsGood,
    ForgetsTheDocument,
    ForgetsNoFile,
    ForgetsNoLedger,
    HidesFailures,
    StaysBroken,
    ReversesLedgers,
    AddsLinesAnywhere,
    AddsLinesLater,
    AddsNoLines,
    BelievesMarks,
    EndsLedgers,
}

use Fault::*;

/// The faults that show only in files, or with several processes.
const IN_FILES: [Fault; 12] = [
    AddsLinesLater,
    WritesLater,
    ExcludesOnlyThreads,
    IgnoresFences,
    CorruptIsNothing,
    WritesOverCorrupt,
    RecoversWithNothing,
    ForgetsTheDocument,
    ForgetsNoFile,
    ForgetsNoLedger,
    HidesFailures,
    StaysBroken,
];

/// A place with this fault. A child takes the fault from the address.
pub(crate) fn broken(fault: Fault) -> BrokenPlace {
    let right: Box<dyn Place> = match fault {
        _ if IN_FILES.contains(&fault) => Box::new(Files::in_a_folder().place()),
        KeepsAllHistory => Box::new(InMemory {
            store: MemoryStore::new().with_history(Keep::newest(1000)),
            clock: MovableClock::new(),
        }),
        _ => Box::new(in_memory()),
    };
    let shared = Shared {
        clock: Mutex::new(right.clock()),
        ..Shared::default()
    };
    BrokenPlace {
        right,
        fault,
        shared: Arc::new(shared),
    }
}

pub(crate) struct BrokenPlace {
    right: Box<dyn Place>,
    fault: Fault,
    shared: Arc<Shared>,
}

/// The state that all openings of a place share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) puts: AtomicU64,
    pub(crate) pruned: AtomicBool,
    pub(crate) beside: Mutex<Option<String>>,
    pub(crate) latest: Mutex<i64>,
    pub(crate) clock: Mutex<Option<MovableClock>>,
}

/// One opening.
pub(crate) struct Broken {
    pub(crate) right: Box<dyn CheckpointStore>,
    pub(crate) fault: Fault,
    pub(crate) shared: Arc<Shared>,
    pub(crate) own: Own,
}

/// The state of one opening.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) waiting: Mutex<Option<(Key, Document)>>,
    pub(crate) lines: Mutex<VecDeque<(Key, String)>>,
    pub(crate) failed: Mutex<bool>,
}

fn opened(right: Box<dyn CheckpointStore>, fault: Fault, shared: Arc<Shared>) -> Box<Broken> {
    Box::new(Broken {
        right,
        fault,
        shared,
        own: Own::default(),
    })
}

impl Place for BrokenPlace {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(opened(
            self.right.open()?,
            self.fault,
            Arc::clone(&self.shared),
        ))
    }

    fn address(&self) -> Option<String> {
        Some(format!("{:?}|{}", self.fault, self.right.address()?))
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let (fault, folder) = address.split_once('|')?;
        let fault = IN_FILES
            .into_iter()
            .find(|known| format!("{known:?}") == fault)?;
        let right = Files::in_a_folder().open(Path::new(folder), Some(MovableClock::new()));
        Some(Ok(opened(Box::new(right), fault, Arc::default())))
    }

    fn keys(&self) -> Vec<Key> {
        self.right.keys()
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        self.right.damage(key)
    }

    fn raw(&self) -> Option<Vec<u8>> {
        self.right.raw()
    }

    fn clock(&self) -> Option<MovableClock> {
        self.right.clock()
    }

    fn keeps(&self) -> Option<usize> {
        Some(Keep::COUNT)
    }

    fn max_bytes(&self) -> Option<u64> {
        match self.fault {
            HasNoLimit => Some(100_000),
            _ => self.right.max_bytes(),
        }
    }

    fn fail(&self, number: usize, run: &mut dyn FnMut()) -> Option<bool> {
        self.right.fail(number, run)
    }
}
