//! Revisions, and the conflicts that they tell.

use crate::checkpoint::{ErrorKind, Expect, Revision};
use crate::store::{DeleteOptions, Outcome, Put};
use crate::testkit::rule::{Rule, Ruling, ensure};
use crate::testkit::scene::{Scene, document, is_conflict, numbered, put_over, refused, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "a_revision_is_that_of_the_bytes",
        "The revision of a document is that of its bytes, whoever wrote it and however often.",
        &[],
        a_revision_is_that_of_the_bytes,
    ),
    Rule::new(
        "the_same_bytes_again_are_no_write",
        "A put of the bytes that are there already writes nothing and says that it is unchanged.",
        &[],
        the_same_bytes_again_are_no_write,
    ),
    Rule::new(
        "what_is_said_to_be_unchanged_is_unchanged",
        "A put of any other bytes is written, however alike they are, and says what it replaced.",
        &[],
        what_is_said_to_be_unchanged_is_unchanged,
    ),
    Rule::new(
        "a_put_with_another_expectation_is_a_conflict",
        "A put goes through only over what it expects; the conflict tells what was expected and what is there.",
        &[],
        a_put_with_another_expectation_is_a_conflict,
    ),
    Rule::new(
        "a_delete_with_another_expectation_is_a_conflict",
        "A delete goes through only over what it expects.",
        &[],
        a_delete_with_another_expectation_is_a_conflict,
    ),
];

fn a_revision_is_that_of_the_bytes(scene: &Scene<'_>) -> Ruling {
    for number in [1, 2, 1, 3, 1] {
        let saved = scene.put(number)?;
        let stored = there(&*scene.store, &scene.key)?;
        let of_bytes = Revision::of(stored.document.text().as_bytes());
        ensure!(
            stored.revision == of_bytes && saved.revision == of_bytes,
            "the bytes have the revision {of_bytes}, the save told {} and the load {}",
            saved.revision,
            stored.revision
        );
    }
    Ok(())
}

fn the_same_bytes_again_are_no_write(scene: &Scene<'_>) -> Ruling {
    let first = scene.put(1)?;
    let before = there(&*scene.store, &scene.key)?;
    for expect in [Expect::Any, Expect::Revision(first.revision.clone())] {
        let again = scene.store.put(
            &scene.key,
            Put::new(before.document.clone()).with_expect(expect),
        )?;
        ensure!(
            again.outcome == Outcome::Unchanged,
            "a put of the same bytes says that it {:?}",
            again.outcome
        );
        ensure!(
            again.revision == first.revision,
            "and it tells another revision"
        );
        let after = there(&*scene.store, &scene.key)?;
        ensure!(
            after.modified == before.modified && after.document == before.document,
            "and it was written all the same"
        );
    }
    Ok(())
}

fn what_is_said_to_be_unchanged_is_unchanged(scene: &Scene<'_>) -> Ruling {
    let mut previous = None;
    // As long, the same value, the same words: only the bytes tell them apart.
    for text in [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":1.0}"#, r#"{"n":1.00}"#] {
        let saved = scene.store.put(&scene.key, Put::new(document(text)?))?;
        let expected = match previous {
            None => Outcome::Created,
            Some(_) => Outcome::Replaced,
        };
        ensure!(
            saved.outcome == expected && saved.previous == previous,
            "a put of {text} says {:?} of {:?}, where it is {expected:?} of {previous:?}",
            saved.outcome,
            saved.previous
        );
        let stored = there(&*scene.store, &scene.key)?;
        ensure!(
            stored.document.same_value(&document(text)?),
            "{text} was put, and {} is there",
            stored.document
        );
        previous = Some(saved.revision);
    }
    Ok(())
}

fn a_put_with_another_expectation_is_a_conflict(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let conflict = |expect: Expect, found: Option<Revision>| {
        let answer = put_over(store, &scene.key, 9, expect.clone())?;
        let error = refused(&format!("a put that expects {expect}"), answer, is_conflict)?;
        ensure!(
            error.key() == Some(&scene.key),
            "the conflict does not name its key: {error}"
        );
        let told = ErrorKind::Conflict {
            expected: expect,
            found,
        };
        ensure!(
            *error.kind() == told,
            "the conflict tells {:?}, not {told:?}",
            error.kind()
        );
        Ok(())
    };
    let never = Expect::Revision(Revision::of(b"never there"));
    conflict(never.clone(), None)?;
    let one = put_over(store, &scene.key, 1, Expect::Absent)??.revision;
    conflict(Expect::Absent, Some(one.clone()))?;
    conflict(never, Some(one.clone()))?;
    let two = put_over(store, &scene.key, 2, Expect::Revision(one.clone()))??.revision;
    conflict(Expect::Revision(one.clone()), Some(two.clone()))?;
    // Also for the bytes that are there: who expects another state is told that there is none such.
    let answer = store.put(
        &scene.key,
        Put::new(numbered(2)?).with_expect(Expect::Revision(one)),
    );
    refused(
        "a put of the same bytes that expects others",
        answer,
        is_conflict,
    )?;
    scene.delete()?;
    conflict(Expect::Revision(two), None)
}

fn a_delete_with_another_expectation_is_a_conflict(scene: &Scene<'_>) -> Ruling {
    let store = &*scene.store;
    let one = scene.put(1)?.revision;
    let two = scene.put(2)?.revision;
    for expect in [Expect::Revision(one), Expect::Absent] {
        let options = DeleteOptions::new().with_expect(expect.clone());
        let answer = store.delete(&scene.key, &options);
        refused(
            &format!("a delete that expects {expect}"),
            answer,
            is_conflict,
        )?;
        ensure!(scene.number()? == Some(2), "and the document is gone");
    }
    let options = DeleteOptions::new().with_expect(Expect::Revision(two));
    ensure!(
        store.delete(&scene.key, &options)?,
        "a delete over what it expects says that there was no document"
    );
    Ok(())
}
