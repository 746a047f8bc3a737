//! Checks that a pipeline's files are in the root of the project and not in a worktree.

use std::path::{Path, PathBuf};

use super::PipelineState;
use crate::checkpoint::{CheckpointFile, Error, Result, read};
use crate::formats::story_pipeline::layout::{FOLDER, STATE_FILE, absolute, root_of};

/// Returns the folder of a pipeline's files: `.pipeline` in the project's root.
///
/// Every story has a git worktree, and its worker runs inside it. A worker with a relative root would write to the
/// worktree's `.pipeline`, which the lead does not read.
///
/// # Errors
///
/// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the root is not absolute.
pub fn pipeline_folder(root: &Path) -> Result<PathBuf> {
    if root.is_absolute() {
        return Ok(root.join(FOLDER));
    }
    Err(Error::refused(
        "the project's root must be an absolute path: from inside a git worktree a relative one \
         leads to another .pipeline",
    )
    .with_path(root))
}

impl PipelineState {
    /// Refuses a root that is not absolute or lies in a story's worktree.
    pub(in crate::formats::story_pipeline) fn check_root(&self, root: &Path) -> Result<()> {
        pipeline_folder(root)?;
        for (story, worktree) in &self.worktree_map {
            if !worktree.is_empty() && root.ancestors().any(|above| above.ends_with(worktree)) {
                return Err(Error::refused(format!(
                    "this is the worktree of {story}; give the root of the project"
                ))
                .with_path(root));
            }
        }
        Ok(())
    }
}

/// Refuses a change to a pipeline's file inside a worktree, where the lead does not look.
pub(in crate::formats::story_pipeline) fn check_place(file: &CheckpointFile<'_>) -> Result<()> {
    let path = file.path;
    let whole = absolute(path)?;
    let Some(root) = root_of(&whole) else {
        return Ok(());
    };
    let git = root.ancestors().map(|above| above.join(".git"));
    let nearest = git.into_iter().find(|git| git.exists());
    // In a worktree `.git` is a file that names a folder under `worktrees`; in a submodule it names another folder.
    let is_worktree = nearest.is_some_and(|git| {
        let text = std::fs::read_to_string(git).unwrap_or_default();
        text.replace('\\', "/").contains("/worktrees/")
    });
    if path.is_relative() && is_worktree {
        let error = Error::refused(
            "the path is relative, and this is a git worktree: its .pipeline is not the one that the lead reads; name \
             the checkpoint by its absolute path",
        );
        return Err(error.with_path(path));
    }
    // An unreadable state says nothing about worktrees here; the caller that needs it reports the error.
    let state = (file.read)(&whole.with_file_name(STATE_FILE));
    if let Ok(Some(document)) = state
        && let Ok(current) = read::<PipelineState>(&document)
    {
        current.reading.value.check_root(root)?;
    }
    Ok(())
}
