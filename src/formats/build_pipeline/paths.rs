//! Decides which texts of an artifact are paths of files.
//!
//! Agents write paths, paths with a remark, and prose into the same lists. A sentence taken for a file would be missing
//! for ever and make its build stale for ever, so a doubtful text is no path.

/// File names without an extension that are recognised.
const KNOWN: &[&str] = &[
    "Brewfile",
    "CODEOWNERS",
    "Containerfile",
    "Dockerfile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "LICENSE",
    "Makefile",
    "Procfile",
    "README",
    "Rakefile",
    "Vagrantfile",
    "justfile",
    "makefile",
];

/// The path in an item of a list of files: `src/a.rs`, `bin/run`, `src/a.rs (new)`.
pub(super) fn path_in(text: &str) -> Option<&str> {
    let path = without_remark(text.trim());
    let certain = has_extension(path) || KNOWN.contains(&file_name(path));
    // `N/A` is too short; folders end with a slash.
    let likely = path.len() > 3 && path.contains('/') && !file_name(path).is_empty();
    (is_one_path(path) && (certain || likely)).then_some(path)
}

/// The path in a text that may be anything. It needs an extension, since `feature/labels` may be a branch.
pub(super) fn certain_path_in(text: &str) -> Option<&str> {
    let certain = |path: &&str| has_extension(path) || KNOWN.contains(&file_name(path));
    path_in(text).filter(certain)
}

/// Whether a path matches several files: `*.test.ts`, `src/{a,b}.ts`.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '{', '}'])
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// `a.rs` and `.env`; neither `v1.2` nor `done.`.
fn has_extension(path: &str) -> bool {
    file_name(path).rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=12).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// Whether a text is one path or pattern, and no URL or sentence. A path may contain spaces, but not in its first
/// folder, and not if the part before the space is a path by itself.
fn is_one_path(path: &str) -> bool {
    let foreign = |letter: char| letter.is_control() || matches!(letter, '"' | '`');
    if path.is_empty() || path.contains("://") || path.contains(foreign) {
        return false;
    }
    match path.split_once(char::is_whitespace) {
        None => is_pattern(path) || !path.contains(','),
        Some((head, _)) if head.contains(',') => false,
        Some((head, _)) => head.contains('/') && !has_extension(head) && has_extension(path),
    }
}

/// A path without a trailing remark: `src/a.rs (new)`, `src/a.rs - the router`.
fn without_remark(text: &str) -> &str {
    let Some((head, rest)) = text.split_once(char::is_whitespace) else {
        return text;
    };
    let begins = |letter: char| matches!(letter, '(' | '[' | '-' | '–' | '—' | '#' | ':');
    let path = head.trim_end_matches(':');
    let is_remark = path.len() < head.len() || rest.trim_start().starts_with(begins);
    if is_remark && has_extension(path) {
        path
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{certain_path_in, is_pattern, path_in};

    #[test]
    fn paths_are_told_from_prose() {
        for path in [
            "a.rs",
            "src/app/[id]/page.tsx",
            ".env",
            ".github/CODEOWNERS",
            "Makefile",
            "bin/run",
            "web\\a.ts",
            "docs/My Plan.md",
            "*.test.ts",
            "src/{a,b}.ts",
        ] {
            assert_eq!(path_in(path), Some(path));
        }
        for (text, path) in [
            (" src/a.rs ", "src/a.rs"),
            ("src/a.rs (new)", "src/a.rs"),
            ("src/a.rs - the router", "src/a.rs"),
            ("src/a.rs: the router", "src/a.rs"),
        ] {
            assert_eq!(path_in(text), Some(path), "{text}");
        }
        for prose in [
            "",
            "done",
            "done.",
            "v1.2",
            "N/A",
            "Implemented the service layer",
            "Added src/a.rs and src/b.rs",
            "src/a.rs and src/b.rs",
            "src/a.rs, src/b.rs",
            "All tests pass in CI/CD",
            "https://example.org/a.html",
            "src/keys/",
            "a\nb.rs",
        ] {
            assert_eq!(path_in(prose), None, "{prose}");
        }
        assert!(is_pattern("*.test.ts") && !is_pattern("src/app/[id]/page.tsx"));
        assert_eq!(certain_path_in("feature/labels"), None);
        assert_eq!(certain_path_in("src/labels.ts"), Some("src/labels.ts"));
    }
}
