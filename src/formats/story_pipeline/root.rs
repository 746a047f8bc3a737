//! Where a pipeline keeps its files.

use std::path::{Path, PathBuf};

use super::PipelineState;
use crate::checkpoint::{Checkpoint, Error, Key, Result};

/// The folder of a pipeline's files, in the project's root.
pub(super) const FOLDER: &str = ".pipeline";

/// Checks that a project's root is absolute.
///
/// Every story has a git worktree, and its worker runs inside: with a relative root it has written to
/// the worktree's `.pipeline`, where no lead looks.
///
/// # Errors
///
/// Refused when it is not.
pub fn require_absolute(root: &Path) -> Result<()> {
    if root.is_absolute() {
        return Ok(());
    }
    Err(Error::refused(
        "the project's root must be an absolute path: from inside a git worktree a relative one \
         leads to another .pipeline",
    )
    .with_path(root))
}

/// The folder of a pipeline's files: `.pipeline` in the project's root.
///
/// # Errors
///
/// Refused when the root is not absolute.
pub fn pipeline_folder(root: &Path) -> Result<PathBuf> {
    require_absolute(root)?;
    Ok(root.join(FOLDER))
}

/// The checkpoint of a story.
///
/// # Errors
///
/// Refused when the root is not absolute, or the id cannot be a file name.
pub fn checkpoint_path(root: &Path, story: &Key) -> Result<PathBuf> {
    let name = (super::StoryCheckpoint::layout().file_name)(story)?;
    Ok(pipeline_folder(root)?.join(name))
}

/// The state of the pipeline.
///
/// # Errors
///
/// Refused when the root is not absolute.
pub fn state_path(root: &Path) -> Result<PathBuf> {
    Ok(pipeline_folder(root)?.join(super::layout::STATE_FILE))
}

impl PipelineState {
    /// Checks that a root is absolute and no story's worktree.
    ///
    /// # Errors
    ///
    /// Refused when it is.
    pub fn check_root(&self, root: &Path) -> Result<()> {
        require_absolute(root)?;
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
