//! Approvals: what a person approved is used once, by the owner of the task.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::CheckpointStoreExt;
use crate::checkpoint::{ClaimRequest, ErrorKind, Key};
use crate::ledger::{Approval, ApprovalDecision, ApprovalStatus, Ledger};
use crate::store::CheckpointStore;
use crate::testkit::fixture::{Fixture, is_claimed, is_fenced, refused};
use crate::testkit::{Place, Skipped};

/// How many use one approval at the same time.
const USERS: usize = 8;

/// How often they do.
const ROUNDS: usize = 12;

fn approval() -> Approval {
    Approval::new("pay", &("ann", 50)).unwrap()
}

/// Asks for an approval, and has it approved through another opening.
#[track_caller]
fn approve(ledger: &Ledger, place: &dyn Place, key: &Key) {
    let asked = ledger.ask(&approval()).unwrap();
    let person = Ledger::new(place.open().unwrap().into(), key, "desk");
    let approved = person.decide(&asked, &ApprovalDecision::Approved, "Ann");
    assert_eq!(approved.unwrap().status, ApprovalStatus::Approved);
}

/// Of several that use an approval at the same time, each through an opening of its own, one gets it; the others are
/// refused. Asked anew, it is used once more.
pub fn one_of_many_threads_uses_an_approval(place: &dyn Place) {
    let fixture = Fixture::new(place);
    let key = &fixture.key;
    let ledgers = [(); USERS].map(|()| {
        let store: Arc<dyn CheckpointStore> = place.open().unwrap().into();
        Ledger::new(store, key, "agent")
    });
    for round in 0..ROUNDS {
        approve(&ledgers[0], place, key);
        let start = Barrier::new(USERS);
        let used: usize = thread::scope(|scope| {
            let users = ledgers.each_ref().map(|ledger| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    match ledger.consume(&approval()) {
                        Ok(_) => 1,
                        Err(error) => {
                            let answer = Err::<(), _>(error);
                            refused("a second use", answer, |kind| {
                                matches!(kind, ErrorKind::Refused { .. })
                            });
                            0
                        }
                    }
                })
            });
            users.map(|user| user.join().unwrap()).iter().sum()
        });
        assert_eq!(used, 1, "the uses of one approval in round {round}");
    }
}

/// While a claim is held, an approval is asked for and used only with its fence; a person decides without it.
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
