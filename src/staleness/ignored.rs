//! The files that the project's own `.gitignore` files exclude.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The `.gitignore` files of a project, each read once.
pub(super) struct Ignored {
    root: PathBuf,
    /// The rules of each folder, by its path in the project; `None` if it has no such file.
    of: HashMap<PathBuf, Option<Gitignore>>,
}

impl Ignored {
    pub(super) fn new(root: &Path) -> Self {
        Ignored {
            root: root.to_path_buf(),
            of: HashMap::new(),
        }
    }

    /// Whether git would ignore a file, or a folder with everything in it. The nearest `.gitignore` with a rule
    /// for the path, or for a folder above it, decides.
    pub(super) fn is_ignored(&mut self, path: &str, is_folder: bool) -> bool {
        let path = Path::new(path);
        // The rules apply within the project; paths that lead out of it are reported elsewhere.
        if path.is_absolute() || path.components().any(|part| part.as_os_str() == "..") {
            return false;
        }
        for folder in path.ancestors().skip(1) {
            let Ok(inside) = path.strip_prefix(folder) else {
                continue;
            };
            let Some(rules) = self.rules(folder) else {
                continue;
            };
            let matched = rules.matched_path_or_any_parents(inside, is_folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        false
    }

    fn rules(&mut self, folder: &Path) -> Option<&Gitignore> {
        let root = &self.root;
        let known = self.of.entry(folder.to_path_buf()).or_insert_with(|| {
            let mut any = false;
            // Paths are matched relative to the folder of the `.gitignore` file, so the builder needs no root.
            let mut builder = GitignoreBuilder::new("");
            let mut files = vec![root.join(folder).join(".gitignore")];
            if folder.as_os_str().is_empty() {
                files.insert(0, root.join(".git/info/exclude"));
            }
            for file in files {
                if file.is_file() {
                    any = true;
                    if let Some(error) = builder.add(&file) {
                        tracing::warn!(path = %file.display(), %error, "a line is no pattern");
                    }
                }
            }
            any.then(|| builder.build().ok()).flatten()
        });
        known.as_ref()
    }
}
