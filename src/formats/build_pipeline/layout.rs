//! Where the checkpoints of builds are, and the ids they are named by.

use crate::checkpoint::{Key, Layout};
use crate::json::Document;

/// Where a project keeps the checkpoints of its builds: one file for each document, `{id}.json`.
pub const FOLDER: &str = ".claude/skills/build-pipeline/checkpoints";

#[cfg(feature = "schema")]
pub(super) const ID_PATTERN: &str = "^(PRD-[0-9]{3}|(EXEC|ADR|FIB|GAP|PERF|ISS)-[A-Za-z0-9._-]+)$";

/// Whether a text is the id of a document: `PRD-` and three digits, or another of the prefixes and then
/// letters, digits, `.`, `_` and `-`.
#[must_use]
pub(super) fn is_build_id(text: &str) -> bool {
    let Some((prefix, rest)) = text.split_once('-') else {
        return false;
    };
    match prefix {
        "PRD" => rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_digit()),
        "EXEC" | "ADR" | "FIB" | "GAP" | "PERF" | "ISS" => {
            !rest.is_empty()
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        }
        _ => false,
    }
}

/// `{id}.json`. The protocol puts nothing aside and has no backups, so the library's names serve.
pub(super) fn layout() -> Layout {
    Layout {
        key_in: Some(key_in),
        ..Layout::default()
    }
}

fn key_in(document: &Document) -> Option<Key> {
    let id = document.root().get("prd")?;
    Key::new(id.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::is_build_id;

    #[test]
    fn ids_have_a_prefix_of_the_protocol() {
        for good in ["PRD-041", "EXEC-012", "ADR-7.b_c-d", "ISS-x"] {
            assert!(is_build_id(good), "{good}");
        }
        for bad in [
            "PRD-41",
            "PRD-0411",
            "PRD-04a",
            "prd-041",
            "PRD-",
            "EXEC-",
            "ADR-a/b",
            "XYZ-1",
            "PRD041",
            "FIB-ä",
            " PRD-041",
            "PRD-041\n",
            "PRD-٠٤١",
            "",
        ] {
            assert!(!is_build_id(bad), "{bad:?}");
        }
    }
}
