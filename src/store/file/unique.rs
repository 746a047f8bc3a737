//! Unique file names.

use std::path::{Path, PathBuf};

use crate::checkpoint::UNIQUE_SEPARATOR;

/// How many files may be made in one second before the names run out.
const MOST_IN_A_SECOND: u32 = 10_000;

/// The names `{stem}.json`, `{stem}-1.json`, … in a folder.
pub(super) fn unique_names(folder: &Path, stem: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let (folder, stem) = (folder.to_path_buf(), stem.to_owned());
    (0..MOST_IN_A_SECOND).map(move |counter| {
        folder.join(match counter {
            0 => format!("{stem}.json"),
            counter => format!("{stem}{UNIQUE_SEPARATOR}{counter}.json"),
        })
    })
}

/// The counter in a name that [`unique_names`] made of `stem`.
pub(super) fn counter_of(name: &str, stem: &str) -> Option<usize> {
    match name.strip_prefix(stem)?.strip_suffix(".json")? {
        "" => Some(0),
        counter => counter.strip_prefix(UNIQUE_SEPARATOR)?.parse().ok(),
    }
}

/// A name as its words and numbers, for sorting: 10 comes after 9.
pub(super) fn in_order(name: &str) -> Vec<(u128, String)> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    stem.split(|letter: char| !letter.is_ascii_alphanumeric())
        .map(|part| (part.parse().unwrap_or(0), part.to_owned()))
        .collect()
}
