//! Documents that are large.

use crate::checkpoint::ErrorKind;
use crate::json::{Document, MAX_DEPTH};
use crate::store::Put;
use crate::testkit::rule::{Need, Rule, Ruling, Stop, ensure};
use crate::testkit::scene::{Scene, document, present, there};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "a_large_document_comes_back_whole_or_is_refused",
        "A document of any size is kept whole, or refused; it is never cut.",
        &[],
        a_large_document_comes_back_whole_or_is_refused,
    ),
    Rule::new(
        "a_deep_document_comes_back_whole_or_is_refused",
        "A document of any depth that can be read is kept whole, or refused.",
        &[],
        a_deep_document_comes_back_whole_or_is_refused,
    ),
    Rule::new(
        "a_document_over_the_limit_is_refused_and_the_old_one_stays",
        "A document that could not be read again is refused with its size, and nothing is written.",
        &[Need::SizeLimit],
        a_document_over_the_limit_is_refused_and_the_old_one_stays,
    ),
];

/// A document of about this many bytes.
fn of_size(bytes: usize) -> Result<Document, Stop> {
    let word = "lorem ipsum ";
    let texts = vec![format!("\"{}\"", word.repeat(20)); bytes / (word.len() * 20)];
    document(&format!(
        "{{\"n\":1,\"texts\":[{}],\"end\":\"{}\"}}",
        texts.join(","),
        "x".repeat(500)
    ))
}

fn whole_or_refused(scene: &Scene<'_>, large: &Document, what: &str) -> Ruling {
    let before = present(&*scene.store, &scene.key)?.map(|stored| stored.revision);
    let answer = scene.store.put(&scene.key, Put::new(large.clone()));
    let stored = present(&*scene.store, &scene.key)?;
    match answer {
        Ok(_) => {
            let is_whole = stored
                .as_ref()
                .is_some_and(|stored| stored.document.same_value(large));
            ensure!(
                is_whole,
                "{what} was taken, and {:?} bytes are there",
                stored.map(|stored| stored.document.text().len())
            );
        }
        Err(error) => ensure!(
            stored.map(|stored| stored.revision) == before,
            "{what} was refused ({error}), and what was there is not any more"
        ),
    }
    Ok(())
}

fn a_large_document_comes_back_whole_or_is_refused(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    for kilobytes in [3, 70, 1100, 5000] {
        let large = of_size(kilobytes * 1024)?;
        whole_or_refused(scene, &large, &format!("a document of {kilobytes} KB"))?;
    }
    Ok(())
}

fn a_deep_document_comes_back_whole_or_is_refused(scene: &Scene<'_>) -> Ruling {
    scene.put(1)?;
    for depth in [30, 60, 100, MAX_DEPTH - 1] {
        let deep = format!(
            "{{\"n\":1,\"deep\":{}7{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        whole_or_refused(
            scene,
            &document(&deep)?,
            &format!("a document {depth} deep"),
        )?;
    }
    Ok(())
}

fn a_document_over_the_limit_is_refused_and_the_old_one_stays(scene: &Scene<'_>) -> Ruling {
    let most = scene
        .place
        .max_bytes()
        .ok_or(Stop::missing(Need::SizeLimit))?;
    let first = scene.put(1)?;
    let large = of_size(usize::try_from(most).unwrap_or(usize::MAX))?;
    let Err(error) = scene.store.put(&scene.key, Put::new(large.clone())) else {
        return Err(Stop::failed(format!(
            "a document of {} bytes was taken, where {most} is the most",
            large.text().len()
        )));
    };
    ensure!(
        matches!(error.kind(), ErrorKind::WouldBeTooLarge { limit, .. } if *limit == most),
        "it was refused, but as {:?}",
        error.kind()
    );
    let stored = there(&*scene.store, &scene.key)?;
    ensure!(
        stored.revision == first.revision,
        "and what was there is not any more"
    );
    scene.put(2)?;
    Ok(())
}
