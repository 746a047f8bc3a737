//! Planned tasks, from the command line or from files.

use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;
use crate::global::Global;
use crate::{read, stdin};

/// A planned task and its agent.
#[derive(Deserialize)]
pub(super) struct Planned {
    #[serde(rename = "task")]
    pub(super) name: String,
    pub(super) agent: Option<String>,
}

/// An element of a JSON file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Element {
    Word(String),
    Task(Planned),
}

pub(super) fn read(words: &[String], global: &Global) -> Result<Vec<Planned>, Failure> {
    let mut planned = Vec::new();
    for word in words {
        let path = Path::new(word);
        if is_meant_as_file(word, path) {
            planned.extend(of_file(path, global)?);
        } else {
            planned.push(of_word(word));
        }
    }
    Ok(planned)
}

/// Extensions of files with lists. A task name may have a dot in it, but hardly one of these extensions.
const ENDINGS: [&str; 9] = [
    "txt", "json", "md", "list", "lst", "csv", "tsv", "yaml", "yml",
];

/// Whether a word means a file and not a task: an existing file, or a missing one that would otherwise become a task of
/// that name. A folder may have the name of a task.
fn is_meant_as_file(word: &str, path: &Path) -> bool {
    if stdin::is_named(path) {
        return true;
    }
    if let Ok(found) = std::fs::metadata(path)
        && !found.is_dir()
    {
        return true;
    }
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| word.starts_with(start));
    let ending = path.extension().and_then(|ending| ending.to_str());
    let lists = ending.is_some_and(|ending| {
        ENDINGS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(ending))
    });
    is_path || lists
}

fn of_file(path: &Path, global: &Global) -> Result<Vec<Planned>, Failure> {
    let text = read::text(path, global.max_bytes)?;
    if !text.trim_start().starts_with(['[', '{']) {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        return Ok(lines.map(of_word).collect());
    }
    let elements: Vec<Element> = serde_json::from_str(&text).map_err(|error| {
        Failure::new(format!(
            "is not a list of planned tasks ({error}); write [\"T001\", {{\"task\": \"T002\", \"agent\": \"media\"}}], \
             or a line for each"
        ))
        .at(Some(path), None)
    })?;
    let planned = |element| match element {
        Element::Word(word) => of_word(&word),
        Element::Task(task) => task,
    };
    Ok(elements.into_iter().map(planned).collect())
}

fn of_word(word: &str) -> Planned {
    let (name, agent) = match word.rsplit_once('@') {
        Some((task, agent)) if !task.is_empty() && !agent.is_empty() => (task, Some(agent)),
        _ => (word, None),
    };
    Planned {
        name: name.to_owned(),
        agent: agent.map(str::to_owned),
    }
}
