//! Each call to what is beneath the store fails once.

use crate::checkpoint::{ErrorKind, Expect};
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure, told};
use crate::testkit::scene::{Scene, number_of, put, put_over, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "a_call_that_fails_leaves_the_old_or_the_new_document",
        "Whichever call fails, the old document or the new one is there, whole; acknowledged, the new one.",
        &[Need::Faults],
        a_call_that_fails_leaves_the_old_or_the_new_document,
    ),
    Rule::new(
        "a_failed_delete_takes_all_or_nothing",
        "A delete that fails leaves the document, and one that says it is done has taken it.",
        &[Need::Faults],
        a_failed_delete_takes_all_or_nothing,
    ),
    Rule::new(
        "a_read_that_fails_is_an_error",
        "A failure to read is an error, never \"there is none\", and no default is written over what is there.",
        &[Need::Faults],
        a_read_that_fails_is_an_error,
    ),
    Rule::new(
        "after_a_failure_the_next_save_works",
        "A save that failed can be done again: nothing that it left is in the way.",
        &[Need::Faults],
        after_a_failure_the_next_save_works,
    ),
];

/// More calls than any operation of a store makes.
const MANY: usize = 400;

/// Lets each call of `run` fail in turn, until it makes no more; `judge` looks at each answer.
fn each_fails<T>(
    scene: &Scene<'_>,
    mut before: impl FnMut() -> Ruling,
    run: impl Fn() -> Result<T, Stop>,
    mut judge: impl FnMut(usize, T) -> Ruling,
) -> Ruling {
    for number in 0..MANY {
        before()?;
        let mut answer = None;
        let came_there = scene.place.fail(number, &mut || answer = Some(run()));
        let came_there = came_there.ok_or(Stop::missing(Need::Faults))?;
        let answer = answer.ok_or_else(|| Stop::failed("`Place::fail` did not call"))??;
        ensure!(
            came_there || number > 0,
            "the operation makes no call that can fail: the seam is not where the store works"
        );
        judge(number, answer)?;
        if !came_there {
            return Ok(());
        }
    }
    Err(Stop::failed(format!(
        "an operation makes more than {MANY} calls"
    )))
}

fn a_call_that_fails_leaves_the_old_or_the_new_document(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    each_fails(
        scene,
        || scene.put(1).map(drop),
        || put_over(store, &scene.key, 2, Expect::Any),
        |call, answer| {
            let reopened = scene.place.open()?;
            let found = reopened.load(&scene.key)?;
            let number = found.as_ref().and_then(number_of);
            let is_right = match &answer {
                Ok(_) => number == Some(2),
                // Then it is in place, and may not last.
                Err(error) if *error.kind() == ErrorKind::NotDurable => {
                    number == Some(1) || number == Some(2)
                }
                Err(_) => number == Some(1),
            };
            ensure!(
                is_right,
                "call {call} of a put of 2 over 1 failed, the put said {}, and {:?} is there",
                answer.map_or_else(|error| told(&error), |saved| format!("{:?}", saved.outcome)),
                found.map(|found| found.document.into_text())
            );
            Ok(())
        },
    )
}

fn a_failed_delete_takes_all_or_nothing(scene: &Scene<'_>) -> Ruling {
    each_fails(
        scene,
        || scene.put(1).map(drop),
        || Ok(scene.store.delete(&scene.key, &Default::default())),
        |call, answer| {
            let found = scene.place.open()?.load(&scene.key)?;
            let is_there = found.as_ref().and_then(number_of) == Some(1);
            let is_right = match &answer {
                Ok(was_there) => *was_there && found.is_none(),
                Err(error) if *error.kind() == ErrorKind::NotDurable => is_there || found.is_none(),
                Err(_) => is_there,
            };
            ensure!(
                is_right,
                "call {call} of a delete failed, the delete said {answer:?}, and {:?} is there",
                found.map(|found| found.document.into_text())
            );
            Ok(())
        },
    )
}

fn a_read_that_fails_is_an_error(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    each_fails(
        scene,
        || Ok(()),
        || Ok(scene.store.load(&scene.key)),
        |call, answer| {
            // An error, or the document all the same.
            let is_right = match &answer {
                Ok(found) => found.as_ref().and_then(number_of) == Some(1),
                Err(_) => true,
            };
            ensure!(
                is_right,
                "call {call} of a load failed, and the load gave {:?}",
                answer.map(|found| found.map(|found| found.document.into_text()))
            );
            Ok(())
        },
    )?;
    each_fails(
        scene,
        || Ok(()),
        || put_over(&*scene.store, &scene.key, 9, Expect::Absent),
        |call, answer| {
            let found = number_of(&there(&*scene.store, &scene.key)?);
            ensure!(
                answer.is_err() && found == Some(1),
                "call {call} of a put that expects nothing failed, and {found:?} is there"
            );
            Ok(())
        },
    )
}

fn after_a_failure_the_next_save_works(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let last = std::cell::Cell::new(0);
    let next = || {
        last.set(last.get() + 1);
        last.get()
    };
    scene.put(next())?;
    each_fails(
        scene,
        || Ok(()),
        || put_over(store, &scene.key, next(), Expect::Any),
        |call, _| {
            let number = next();
            if let Err(Stop::Failed(why)) = put(store, &scene.key, number) {
                return Err(Stop::failed(format!(
                    "call {call} of a save failed once, and the next save fails too: {why}"
                )));
            }
            let found = number_of(&there(store, &scene.key)?);
            ensure!(
                found == Some(number),
                "call {call} of a save failed once; the next saved {number}, and {found:?} is there"
            );
            Ok(())
        },
    )
}
