//! Approvals: an action that a person approved is done once, by the owner of the task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, Clock, ErrorKind, Key};
use crate::ledger::{Approval, ApprovalDecision, ApprovalStatus, Ledger};
use crate::store::CheckpointStore;
use crate::testkit::fixture::{Fixture, is_claimed, is_fenced, refused};
use crate::testkit::{Place, Skipped};

/// How many threads use one approval at the same time.
const USERS: usize = 8;

/// How often they use one.
const ROUNDS: usize = 6;

/// How long the fastest thread waits for the others.
const PATIENCE: Duration = Duration::from_secs(2);

/// A clock that makes all users read the ledger before any of them uses the approval. A user first asks for the time
/// after it has read its ledger; the clock answers once all others have read theirs.
#[derive(Clone)]
struct AllHaveRead {
    readers: Arc<AtomicUsize>,
    is_asked: Arc<AtomicBool>,
}

impl Clock for AllHaveRead {
    fn now(&self) -> DateTime<Utc> {
        if !self.is_asked.swap(true, Ordering::SeqCst) {
            self.readers.fetch_add(1, Ordering::SeqCst);
            let began = Instant::now();
            while self.readers.load(Ordering::SeqCst) < USERS && began.elapsed() < PATIENCE {
                thread::sleep(Duration::from_micros(50));
            }
        }
        Utc::now()
    }
}

fn approval() -> Approval {
    Approval::new("pay", &("ann", 50)).unwrap()
}

/// Asks for an approval, and approves it through another opening.
#[track_caller]
fn approve(ledger: &Ledger, place: &dyn Place, key: &Key) {
    let asked = ledger.ask(&approval()).unwrap();
    let person = Ledger::new(place.open().unwrap().into(), key, "desk");
    let approved = person.decide(&asked, &ApprovalDecision::Approved, "Ann");
    assert_eq!(approved.unwrap().status, ApprovalStatus::Approved);
}

/// When several threads use one approval at the same time, each through its own opening, one succeeds and the others
/// are refused. After a new request and approval it can be used once more.
pub fn one_of_many_threads_uses_an_approval(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let key = &fixture.key;
    let ledgers = [(); USERS].map(|()| {
        let store: Arc<dyn CheckpointStore> = place.open().unwrap().into();
        Ledger::new(store, key, "agent")
    });
    for round in 0..ROUNDS {
        approve(&ledgers[0], place, key);
        let readers = Arc::default();
        let used: usize = thread::scope(|scope| {
            let users = ledgers.clone().map(|ledger| {
                let ledger = ledger.with_clock(Arc::new(AllHaveRead {
                    readers: Arc::clone(&readers),
                    is_asked: Arc::default(),
                }));
                scope.spawn(move || match ledger.consume(&approval()) {
                    Ok(_) => 1,
                    Err(error) if matches!(error.kind(), ErrorKind::Refused { .. }) => 0,
                    Err(error) => panic!("a second use is an error, but not refused: {error}"),
                })
            });
            users.map(|user| user.join().unwrap()).iter().sum()
        });
        assert_eq!(used, 1, "the uses of one approval in round {round}");
    }
}

/// While a claim is held, an approval can be requested and used only with its fence. A person decides without a fence.
pub fn an_approval_is_used_with_the_fence(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (key, claims) = (&fixture.key, fixture.claims()?);
    let ledger = |fence| {
        let store = place.open().unwrap().into();
        Ledger::new(store, key, "agent").fenced(fence)
    };
    let hour = |owner: &str| ClaimRequest::new(owner, Duration::from_secs(3600));
    let one = claims.claim(key, &hour("one")).unwrap();
    let answer = ledger(None).ask(&approval());
    refused("asking without the fence", answer, is_claimed);
    approve(&ledger(Some(one.fence)), place, key);
    let answer = ledger(None).consume(&approval());
    refused("a use without the fence", answer, is_claimed);
    let two = claims.claim(key, &hour("two").taking_over()).unwrap();
    let answer = ledger(Some(one.fence)).consume(&approval());
    refused("a use with an old fence", answer, is_fenced);
    let used = ledger(Some(two.fence)).consume(&approval());
    assert_eq!(used.unwrap().status, ApprovalStatus::Consumed);
    Ok(())
}
