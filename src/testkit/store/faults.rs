//! The rules for failures: each call of the store to the layer below fails once.

use std::cell::Cell;

use crate::checkpoint::{ErrorKind, Expect};
use crate::testkit::fixture::{Fixture, number_at, number_of, put_over};
use crate::testkit::{Place, Skipped};

/// More calls than any operation of a store makes.
const MANY: usize = 400;

/// Whichever call fails, the old or the new document is there, complete. After a put that succeeded it is the new one.
pub fn a_failed_put_leaves_the_old_or_the_new_document(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    each_call_fails(
        place,
        || drop(fixture.put(1)),
        || put_over(store, key, 2, Expect::Any),
        |call, answer| {
            let reopened = place.open().unwrap();
            let found = number_at(&*reopened, key);
            let is_right = match &answer {
                Ok(_) => found == Some(2),
                Err(error) => {
                    found == Some(1) || found == Some(2) && *error.kind() == ErrorKind::NotDurable
                }
            };
            let answer = answer.map(|saved| saved.outcome);
            assert!(
                is_right,
                "call {call} of a put of 2 over 1 failed: the put returned {answer:?}, and {found:?} is there"
            );
        },
    )
}

/// A failed delete leaves the document; a delete that succeeds has removed it.
pub fn a_failed_delete_is_complete_or_does_nothing(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    each_call_fails(
        place,
        || drop(fixture.put(1)),
        || store.delete(key, &Default::default()),
        |call, answer| {
            let reopened = place.open().unwrap();
            let found = reopened.load(key).unwrap();
            let is_there = found.as_ref().and_then(number_of) == Some(1);
            let is_right = match &answer {
                Ok(was_there) => *was_there && found.is_none(),
                Err(error) => is_there || found.is_none() && *error.kind() == ErrorKind::NotDurable,
            };
            assert!(
                is_right,
                "call {call} of a delete failed: the delete returned {answer:?}, and {found:?} is there"
            );
        },
    )
}

/// A failed read is an error, never "no document", and nothing is written over the document.
pub fn a_failed_read_is_an_error(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    fixture.put(1);
    each_call_fails(
        place,
        || (),
        || store.load(key),
        |call, answer| {
            let found = answer.map(|found| found.as_ref().and_then(number_of));
            assert!(
                matches!(found, Err(_) | Ok(Some(1))),
                "call {call} of a load failed: the load returned {found:?}"
            );
        },
    )?;
    each_call_fails(
        place,
        || (),
        || put_over(store, key, 9, Expect::Absent),
        |call, answer| {
            let found = number_at(store, key);
            assert!(
                answer.is_err() && found == Some(1),
                "call {call} of a put that expects no document failed, and {found:?} is there"
            );
        },
    )
}

/// A failed put can be repeated: nothing that it left behind prevents the next one.
pub fn a_put_works_after_a_failed_one(place: &dyn Place) -> Result<(), Skipped> {
    let fixture = Fixture::new(place);
    let (store, key) = fixture.parts();
    let last = Cell::new(0);
    let next = || {
        last.set(last.get() + 1);
        last.get()
    };
    fixture.put(next());
    each_call_fails(
        place,
        || (),
        || put_over(store, key, next(), Expect::Any),
        |call, _| {
            let again = put_over(store, key, next(), Expect::Any);
            assert!(again.is_ok(), "the put after call {call} failed: {again:?}");
            fixture.assert_number(last.get(), &format!("the put after call {call} failed"));
        },
    )
}

/// Runs an operation repeatedly, each time with the next of its calls failing, until it makes no more calls.
#[track_caller]
pub(super) fn each_call_fails<T>(
    place: &dyn Place,
    prepare: impl Fn(),
    run: impl Fn() -> T,
    judge: impl Fn(usize, T),
) -> Result<(), Skipped> {
    for call in 0..MANY {
        prepare();
        let mut answer = None;
        let Some(was_made) = place.fail(call, &mut || answer = Some(run())) else {
            return Err(Skipped("the place cannot make calls fail"));
        };
        assert!(
            was_made || call > 0,
            "the operation makes no call that `Place::fail` can make fail"
        );
        judge(call, answer.unwrap());
        if !was_made {
            return Ok(());
        }
    }
    panic!("an operation makes more than {MANY} calls");
}
