//! The tests that the pages under `docs/` name must exist: a promise that no test proves is worse than no promise.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use agent_checkpoint::Checkpoint;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;

/// The texts of all files with this extension below a folder.
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
    // A rule of a format is a file of cases.
    texts(&root.join("tests/rules"), "txt", &mut code);
    let mut pages = Vec::new();
    texts(&root.join("docs/formats"), "md", &mut pages);
    for page in ["docs/field-reports.md", "docs/liveness.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        pages.push((page.to_owned(), text));
    }
    let tests: HashSet<&str> = code
        .iter()
        .flat_map(|(path, text)| {
            let functions = text.split("fn ").skip(1);
            let functions = functions.filter_map(|rest| Some(rest.split_once('(')?.0));
            functions.chain(Path::new(path).file_stem().and_then(|name| name.to_str()))
        })
        .collect();
    let mut count = 0;
    for (path, page) in &pages {
        for name in named_tests(page) {
            count += 1;
            let exists = tests.contains(name);
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

/// All Rust code on the pages is compiled: as a doc test, or because it is the text of a compiled file.
#[test]
fn the_rust_code_of_every_page_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let mut pages = Vec::new();
    texts(&root.join("docs"), "md", &mut pages);
    texts(&root.join("src"), "md", &mut pages);
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    pages.push((root.join("README.md").display().to_string(), readme));
    let mut count = 0;
    for (path, page) in pages {
        let blocks = page.lines().filter(|line| line.starts_with("```rust"));
        let blocks: Vec<_> = blocks.collect();
        assert!(
            blocks
                .iter()
                .all(|block| ["```rust", "```rust,no_run"].contains(block)),
            "{path}: {blocks:?}"
        );
        let name = Path::new(&path)
            .strip_prefix(root)
            .unwrap()
            .display()
            .to_string();
        let is_shown_code = name.ends_with("strategies.md");
        let included = format!("include_str!(\"../{}\")", name.replace('\\', "/"));
        assert!(
            blocks.is_empty() || is_shown_code || library.contains(&included),
            "{name} has code that nothing compiles"
        );
        count += blocks.len();
    }
    assert!(count >= 12, "{count}");
}

/// Links from one page to another, and to files, have a target.
#[test]
fn every_link_of_a_page_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    texts(&root.join("docs"), "md", &mut pages);
    for page in ["README.md", "CHANGELOG.md", "fuzz/README.md"] {
        let path = root.join(page);
        pages.push((
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        ));
    }
    let mut count = 0;
    for (path, page) in pages {
        let folder = Path::new(&path).parent().unwrap();
        for link in page
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
        {
            let target = link.0.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            assert!(folder.join(target).exists(), "{path}: {target}");
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// `scripts/public-api` compares the public API with a record, which needs a special tool. This test only checks that
/// the record exists and names the items that every program uses.
#[test]
fn the_record_of_the_public_api_has_what_every_program_uses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let record = fs::read_to_string(root.join("docs/public-api.txt")).unwrap();
    for item in [
        "pub trait agent_checkpoint::Checkpoint:",
        "pub trait agent_checkpoint::store::CheckpointStore:",
        "pub struct agent_checkpoint::Key(",
        "pub mod agent_checkpoint::schema",
        "pub mod agent_checkpoint::strategies",
        "pub mod agent_checkpoint::testkit",
        "pub macro agent_checkpoint::store_conformance!",
    ] {
        assert!(record.lines().any(|line| line.starts_with(item)), "{item}");
    }
}

/// The table of calls and formats on the page of the recorder matches the formats.
#[test]
fn the_page_on_the_recorder_says_which_format_takes_what() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/recorder.md")).unwrap();
    let formats = [
        TaskCheckpoint::OPERATIONS,
        AgentCheckpoint::OPERATIONS,
        SitebuilderCheckpoint::OPERATIONS,
        StoryCheckpoint::OPERATIONS,
        PipelineState::OPERATIONS,
        BuildCheckpoint::OPERATIONS,
    ];
    let mut told = vec![Vec::new(); formats.len()];
    let table = page.split("## Which format takes what").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for (format, told) in told.iter_mut().enumerate() {
            if cells[3 + format] == "yes" {
                told.push(cells[2]);
            }
        }
    }
    for (told, takes) in told.iter_mut().zip(formats) {
        let mut takes = takes.to_vec();
        takes.sort_unstable();
        told.sort_unstable();
        assert_eq!(*told, takes);
    }
}
