//! The tests that the pages under `docs/` name exist: a page that promises what nothing shows is worse
//! than none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

use std::fs;
use std::path::Path;

/// The texts of all files with this ending below a folder.
fn texts(folder: &Path, ending: &str, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, ending, into);
        } else if path.extension().is_some_and(|found| found == ending) {
            let text = fs::read_to_string(&path).unwrap();
            into.push((path.display().to_string(), text));
        }
    }
}

/// The names in back quotes in the last column of a page's tables.
fn named_tests(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.trim_end().trim_end_matches('|').rsplit('|').next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(|name| name.rsplit("::").next().unwrap_or(name))
        .filter(|name| {
            let is_name = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
            };
            name.len() > 16 && name.contains('_') && name.chars().all(is_name)
        })
}

#[test]
fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = Vec::new();
    for folder in ["src", "tests", "crates"] {
        texts(&root.join(folder), "rs", &mut code);
    }
    let mut pages = Vec::new();
    texts(&root.join("docs/formats"), "md", &mut pages);
    for page in ["docs/field-reports.md", "docs/liveness.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        pages.push((page.to_owned(), text));
    }
    let mut count = 0;
    for (path, page) in &pages {
        for name in named_tests(page) {
            count += 1;
            let function = format!("fn {name}(");
            let exists = code.iter().any(|(_, text)| text.contains(&function));
            assert!(exists, "{path} names the test {name}, which does not exist");
        }
    }
    assert!(count > 100, "only {count} tests are named");
}

/// The page shows tests that run.
#[test]
fn the_example_of_the_page_on_strategies_is_that_of_the_downstream_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/strategies.md")).unwrap();
    let code = fs::read_to_string(root.join("crates/downstream/src/properties.rs")).unwrap();
    let (_, shown) = page.split_once("```rust\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(
        code.ends_with(shown),
        "docs/strategies.md shows other tests"
    );
}
