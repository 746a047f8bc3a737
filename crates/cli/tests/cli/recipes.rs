//! Each recipe does what it says, unchanged.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::project::{Project, path_with_ckpt};

/// The separator between the outputs of two blocks.
const END: &str = "= end of a block =\n";

/// The blocks of a page: their language and their text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let pieces = page.split("\n```").collect::<Vec<_>>();
    let pieces = pieces.iter().skip(1).step_by(2);
    pieces
        .map(|piece| piece.split_once('\n').unwrap_or((piece, "")))
        .collect()
}

/// Whether a text equals this one, in which `…` matches anything.
fn fits(text: &str, shown: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

fn follow(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let page = fs::read_to_string(folder.join(name)).unwrap();
    let blocks = blocks(&page);
    let scripts = blocks.iter().filter(|(language, _)| *language == "sh");
    let script: String = scripts
        .map(|(_, text)| format!("{text}\nprintf '{END}'\n"))
        .collect();
    let project = Project::new();
    let output = Command::new("sh")
        .args(["-euc", &script])
        .env("PATH", path_with_ckpt())
        .env("HOME", project.path("."))
        .current_dir(project.path("."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {printed}\n{errors}");
    let mut printed = printed.split_inclusive(END);
    let mut compared = 0;
    let mut last = "";
    for (language, text) in blocks {
        match language {
            "sh" => {
                last = printed
                    .next()
                    .unwrap()
                    .strip_suffix(END)
                    .unwrap_or_default()
            }
            "text" => {
                assert!(
                    fits(last.trim_end(), text.trim_end()),
                    "{name} shows\n{text}\nand this is printed:\n{last}\n{errors}"
                );
                compared += 1;
            }
            _ => {}
        }
    }
    assert!(compared > 0, "{name} shows nothing that could be compared");
}

macro_rules! recipes {
    ($($name:ident $file:literal)*) => {
        $(
            #[test]
            fn $name() {
                follow($file);
            }
        )*

        #[test]
        fn every_recipe_is_followed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
            let pages = fs::read_dir(folder).unwrap();
            let mut pages: Vec<_> = pages.map(|page| page.unwrap().file_name()).collect();
            pages.retain(|page| page != "README.md");
            pages.sort();
            let mut known = [$($file),*];
            known.sort_unstable();
            assert_eq!(pages, known);
        }
    };
}

recipes! {
    two_agents_in_shell "two-agents.md"
    a_supervisor "supervisor.md"
    hooks_of_coding_agents "hooks.md"
    a_pre_commit_check "pre-commit.md"
    from_progress_files_of_ones_own "migrate.md"
}

#[test]
fn three_dots_stand_for_anything() {
    for (text, shown, is_same) in [
        ("a\nb", "a\nb", true),
        ("a\nb\nc", "a\n…", true),
        ("a\nb\nc", "…c", true),
        ("a\nb\nc", "a…b…", true),
        ("a\nb", "a", false),
        ("a\nb", "a…c", false),
        ("b", "a…", false),
    ] {
        assert_eq!(fits(text, shown), is_same, "{text:?} {shown:?}");
    }
}
