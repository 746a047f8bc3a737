//! How our files beside a checkpoint are named.

use std::path::Path;

use crate::checkpoint::{Error, Key, Layout};

/// The name of a file of ours that belongs to `target`.
pub(super) fn name_beside(target: &Path, ending: &str) -> std::ffi::OsString {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    name
}

/// A slot as part of a file name.
pub(super) fn encoded(slot: &str) -> String {
    let name = Key::new(slot).and_then(|key| (Layout::default().file_name)(&key));
    name.map_or_else(
        |_: Error| String::from("%"),
        |name| name.strip_suffix(".json").unwrap_or(&name).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_no_separator_in_a_name() {
        assert_eq!(encoded("adhoc:1/x"), "adhoc%3A1%2Fx");
    }
}
