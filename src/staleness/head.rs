//! The commit that a project is at.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The largest file of git that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The head of a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub(crate) struct Head {
    /// The branch; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// The commit; `None` before the first commit, and if git stores it in a form that this module does not read.
    pub commit: Option<String>,
}

impl Head {
    /// The head of the repository that contains `folder`; `None` if there is none or it cannot be read.
    ///
    /// It reads git's own files and runs no program. Worktrees and packed refs are supported.
    #[must_use]
    pub(crate) fn of(folder: &Path) -> Option<Head> {
        let git = match git_folder(folder) {
            Some(git) => git,
            None => fs::canonicalize(folder)
                .ok()?
                .ancestors()
                .skip(1)
                .find_map(git_folder)?,
        };
        let head = text(&git.join("HEAD"))?;
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return Some(Head {
                branch: None,
                commit: commit(&head),
            });
        };
        // A repository with another ref storage marks itself with this invalid branch name.
        if name == "refs/heads/.invalid" {
            return None;
        }
        let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
        let common = text(&git.join("commondir")).map(|path| git.join(path));
        let common = common.unwrap_or_else(|| git.clone());
        Some(Head {
            branch: Some(branch),
            commit: resolve(&git, name).or_else(|| resolve(&common, name)),
        })
    }
}

/// The checkout of a repository that a folder is in.
#[derive(Clone, Debug)]
pub(crate) struct Checkout {
    /// The top folder of this checkout.
    pub(crate) top: PathBuf,
    /// The git folder that all checkouts of the repository share.
    pub(crate) common: PathBuf,
}

impl Checkout {
    /// The checkout that contains a folder; `None` outside of a repository.
    pub(crate) fn of(folder: &Path) -> Option<Checkout> {
        let folder = fs::canonicalize(folder).ok()?;
        let (top, git) = folder
            .ancestors()
            .find_map(|top| Some((top.to_path_buf(), git_folder(top)?)))?;
        let common = match text(&git.join("commondir")) {
            Some(path) => git.join(path),
            None => git,
        };
        let common = fs::canonicalize(common).ok()?;
        Some(Checkout { top, common })
    }
}

/// The git folder of a checkout: its `.git` folder, or the target of its `.git` file.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let found = fs::metadata(&git).ok()?;
    if found.is_dir() {
        return Some(git);
    }
    let to = text(&git)?;
    let to = to.strip_prefix("gitdir:")?.trim();
    Some(folder.join(to))
}

fn resolve(git: &Path, name: &str) -> Option<String> {
    // The name comes from a file, so it must not lead out of the git folder.
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    if let Some(loose) = text(&git.join(name)) {
        return commit(&loose);
    }
    let packed = text(&git.join("packed-refs"))?;
    packed.lines().find_map(|line| {
        let (hash, of) = line.split_once(' ')?;
        (of == name).then(|| commit(hash)).flatten()
    })
}

fn commit(text: &str) -> Option<String> {
    let is_hash =
        matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

fn text(path: &Path) -> Option<String> {
    let read = crate::fsio::read_plain(path, MAX_BYTES).ok()??;
    let text = String::from_utf8(read.bytes).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn head(branch: Option<&str>, commit: Option<&str>) -> Option<Head> {
        Some(Head {
            branch: branch.map(str::to_owned),
            commit: commit.map(str::to_owned),
        })
    }

    #[test]
    fn a_head_is_read_as_git_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(Head::of(root), None);
        write(root, ".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(Head::of(root), head(Some("main"), None));
        let packed =
            format!("# pack-refs with: peeled\n{B} refs/heads/a/b\n{A} refs/heads/main\n^{B}\n");
        write(root, ".git/packed-refs", &packed);
        assert_eq!(Head::of(root), head(Some("main"), Some(A)));
        write(root, ".git/refs/heads/main", &format!("{B}\n"));
        assert_eq!(
            Head::of(root),
            head(Some("main"), Some(B)),
            "a loose ref is newer"
        );
        write(root, ".git/HEAD", &format!("{A}\n"));
        assert_eq!(Head::of(root), head(None, Some(A)));
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        assert_eq!(Head::of(&root.join("sub/deep")), head(None, Some(A)));
    }

    #[test]
    fn a_worktree_has_its_own_head_and_the_refs_of_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "repo/.git/HEAD", "ref: refs/heads/main\n");
        write(root, "repo/.git/refs/heads/side", A);
        write(root, "repo/.git/worktrees/w/HEAD", "ref: refs/heads/side\n");
        write(root, "repo/.git/worktrees/w/commondir", "../..\n");
        write(root, "w/.git", "gitdir: ../repo/.git/worktrees/w\n");
        assert_eq!(Head::of(&root.join("w")), head(Some("side"), Some(A)));
    }

    #[test]
    fn what_is_no_repository_has_no_head() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, ".git/HEAD", "ref: refs/heads/.invalid\n");
        assert_eq!(Head::of(root), None);
        write(root, ".git/HEAD", "ref: ../../secret\n");
        write(root, "secret", A);
        assert_eq!(Head::of(root), head(Some("../../secret"), None));
    }
}
