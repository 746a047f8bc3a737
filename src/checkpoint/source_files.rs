//! Which files a step records and a verdict judges.

use std::collections::HashSet;

use serde::Serialize;

/// Separates source files, which a step records, from generated files, which it does not.
///
/// A path is no source file if one of its folders or its ending is listed here. Skipped files are returned to
/// the caller, so that none goes missing silently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceFiles {
    /// Names of folders whose files are not recorded.
    pub left_out_folders: Vec<String>,
    /// Endings of file names that are not recorded, such as `.log`.
    pub left_out_endings: Vec<String>,
}

impl Default for SourceFiles {
    fn default() -> Self {
        let folders = [
            ".git",
            "node_modules",
            "bower_components",
            "target",
            "dist",
            "build",
            "out",
            "coverage",
            "test-results",
            "playwright-report",
            "__pycache__",
            ".venv",
            ".mypy_cache",
            ".pytest_cache",
            ".gradle",
            ".next",
            ".turbo",
            ".cache",
        ];
        SourceFiles {
            left_out_folders: folders.map(str::to_owned).to_vec(),
            left_out_endings: vec![".log".to_owned()],
        }
    }
}

impl SourceFiles {
    /// Accepts every file.
    #[must_use]
    pub fn all() -> Self {
        SourceFiles {
            left_out_folders: Vec::new(),
            left_out_endings: Vec::new(),
        }
    }

    /// Whether `path` is a source file.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        let mut endings = self.left_out_endings.iter();
        if endings.any(|ending| path.ends_with(ending.as_str())) {
            return false;
        }
        let Some((folders, _)) = path.rsplit_once(['/', '\\']) else {
            return true;
        };
        let left_out = &self.left_out_folders;
        let is_left_out = |part: &str| left_out.iter().any(|folder| folder == part);
        left_out.is_empty() || !folders.split(['/', '\\']).any(is_left_out)
    }

    /// Splits `paths` into source files, each once, and the rest.
    #[must_use]
    pub fn sort<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> (Vec<String>, Vec<String>) {
        sort_by(paths, |path| self.takes(path))
    }
}

/// Splits `paths` into those that `takes` accepts, each once, and the rest.
pub(crate) fn sort_by<'p>(
    paths: impl IntoIterator<Item = &'p str>,
    mut takes: impl FnMut(&str) -> bool,
) -> (Vec<String>, Vec<String>) {
    let mut taken = Vec::new();
    let mut rest = Vec::new();
    let mut seen = HashSet::new();
    for path in paths.into_iter().filter(|path| seen.insert(*path)) {
        let side = if takes(path) { &mut taken } else { &mut rest };
        side.push(path.to_owned());
    }
    (taken, rest)
}

/// What the caller of a save should know about the files that the checkpoint names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SavedFiles {
    /// Files that changed since they were recorded and that this save did not name. The save reported work, so
    /// the changes count as its own, and the files are recorded as they are now.
    pub taken_over: Vec<String>,
    /// Files that this save named and that do not exist.
    pub missing: Vec<String>,
    /// Files that this save named and that lie outside the project's folder, where nothing is read.
    pub outside: Vec<String>,
}

impl SavedFiles {
    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken_over.is_empty() && self.missing.is_empty() && self.outside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::SourceFiles;

    #[test]
    fn what_tools_make_is_left_out_and_handed_back() {
        let (taken, rest) = SourceFiles::default().sort([
            "src/a.rs",
            "node_modules/x/index.js",
            "web\\node_modules\\y.js",
            "src/a.rs",
            "build",
            "src/build.rs",
            "test-results/a.json",
            "playwright-report/index.html",
            "out/main.js",
            "logs/run.log",
            "src/out.rs",
        ]);
        assert_eq!(taken, ["src/a.rs", "build", "src/build.rs", "src/out.rs"]);
        let tools = [
            "node_modules/x/index.js",
            "web\\node_modules\\y.js",
            "test-results/a.json",
            "playwright-report/index.html",
            "out/main.js",
            "logs/run.log",
        ];
        assert_eq!(rest, tools);
        assert!(SourceFiles::all().takes("node_modules/x"));
    }
}
