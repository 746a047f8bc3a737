//! Stores that are broken on purpose, each in one way: a right store behind one fault.

mod claims;
mod store;
mod writes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use agent_checkpoint::json::Document;
use agent_checkpoint::store::{CheckpointStore, Keep, MemoryStore, Stored};
use agent_checkpoint::testkit::{Harness, MovableClock, Place};
use agent_checkpoint::{Dropped, Key, Result};

use crate::stores::{Files, FilesPlace, InMemory};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    DefaultForNothing,
    EndsEveryText,
    Reserializes,
    WritesOnlyWhatItKnows,
    TransactsOnNothing,
    DeletesOnConflict,
    DeletesAlways,
    OneDocumentForAll,
    ListsBackwards,
    CountsRevisions,
    WritesTheSameAgain,
    ComparesLengths,
    ForgetsExpect,
    DeletesWhatever,
    ForgetsCuts,
    CompanionOfAnyRevision,
    HasMoreThanItSays,
    BeatsInTheDocument,
    ChecksAbsenceThenWrites,
    ChecksRevisionThenWrites,
    TransactsWithoutLooking,
    CachesReads,
    LocksItsOpening,
    TransactsUnderItsOpening,
    WritesInTwoSteps,
    LocksItsProcess,
    TransactsUnderItsProcess,
    ForgetsFencesOfOthers,
    WritesLater,
    WritesWhenDropped,
    WritesWithoutFence,
    GivesClaimsToAll,
    TakesOldFences,
    CountsFencesAnew,
    RenewsForAnybody,
    ReleasesOnlyOnce,
    ClaimsInTwoSteps,
    KeepsNoHistory,
    HistoryOldestFirst,
    GivesAnotherState,
    RotatesOnFailure,
    KeepsAllHistory,
    PrunesWhatIsPinned,
    PrunesWhatWasDeleted,
    SignsOfLifeAreStates,
    CorruptIsNothing,
    WritesOverCorrupt,
    RecoversWithNothing,
    RecoversForAnybody,
    RecoversWhatIsRight,
    RecoversNothing,
    KeepsCutsInMemory,
    NamesFilesNaively,
    ListsNames,
    PagesLeaveOneOut,
    PagesWithoutEnd,
    PagesInCircles,
    WritesInTwoStepsAndReadsLate,
    NewestStampWins,
    NewestClockWins,
    FencesOfTheClock,
    ClaimsForEver,
    CutsLargeTexts,
    CutsDeepTexts,
    HasNoLimit,
    DeletesThenWrites,
    SaysEveryDeleteIsDone,
    FailedReadIsNothing,
    StaysBroken,
}

use Fault::*;

/// Those that show in files, or in several processes.
const IN_FILES: [Fault; 12] = [
    LocksItsProcess,
    TransactsUnderItsProcess,
    ForgetsFencesOfOthers,
    WritesLater,
    CorruptIsNothing,
    WritesOverCorrupt,
    RecoversWithNothing,
    RecoversForAnybody,
    DeletesThenWrites,
    SaysEveryDeleteIsDone,
    FailedReadIsNothing,
    StaysBroken,
];

/// The kind of store with this fault; as the harness of a child, whatever fault its address tells.
pub(crate) struct WithFault(pub(crate) Option<Fault>);

struct BrokenPlace {
    right: Box<dyn Place>,
    fault: Fault,
    shared: Arc<Shared>,
}

/// What all openings of a place have in common.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) puts: AtomicU64,
    pub(crate) companion: Mutex<Option<String>>,
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

/// What one opening has for itself.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) lock: Mutex<()>,
    pub(crate) read: Mutex<BTreeMap<Key, Option<Stored>>>,
    pub(crate) waiting: Mutex<Option<(Key, Document)>>,
    pub(crate) cut: Mutex<Vec<Dropped>>,
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

impl Harness for WithFault {
    fn place(&self) -> Result<Box<dyn Place>> {
        let fault = self.0.unwrap();
        let right: Box<dyn Place> = match fault {
            _ if IN_FILES.contains(&fault) => Box::new(FilesPlace::new(Files::in_a_folder())),
            KeepsAllHistory => Box::new(Hoarder(Arc::new(
                MemoryStore::new().with_history(Keep::newest(1000)),
            ))),
            _ => InMemory.place()?,
        };
        let shared = Shared {
            clock: Mutex::new(right.clock()),
            ..Shared::default()
        };
        Ok(Box::new(BrokenPlace {
            right,
            fault,
            shared: Arc::new(shared),
        }))
    }

    fn connect(&self, address: &str) -> Option<Result<Box<dyn CheckpointStore>>> {
        let (fault, folder) = address.split_once('|')?;
        let fault = IN_FILES
            .into_iter()
            .find(|known| format!("{known:?}") == fault)?;
        let right = Files::in_a_folder().open(Path::new(folder), Some(MovableClock::new()));
        Some(Ok(opened(Box::new(right), fault, Arc::default())))
    }
}

impl Place for BrokenPlace {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        if self.fault == WritesLater {
            // In the process that is killed; whoever looks afterwards does it right.
            return self.right.open();
        }
        Ok(opened(
            self.right.open()?,
            self.fault,
            Arc::clone(&self.shared),
        ))
    }

    fn address(&self) -> Option<String> {
        Some(format!("{:?}|{}", self.fault, self.right.address()?))
    }

    fn keys(&self) -> Vec<Key> {
        self.right.keys()
    }

    fn damage(&self, key: &Key) -> Result<bool> {
        self.right.damage(key)
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

/// A store in memory that keeps everything.
struct Hoarder(Arc<MemoryStore>);

impl Place for Hoarder {
    fn open(&self) -> Result<Box<dyn CheckpointStore>> {
        Ok(Box::new(Arc::clone(&self.0)))
    }
}
