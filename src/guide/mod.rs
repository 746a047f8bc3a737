//! The page to give an agent, for each format.

/// The page to give an agent that keeps checkpoints of this format: when to write what, with examples, how to
/// resume, and what to do when a checkpoint is stale. `None` for a format that is none of the library's.
///
/// The page is Markdown. Its examples are valid, and its commands are those of `ckpt`.
///
/// ```
/// let page = agent_checkpoint::guide("sitebuilder").expect("it is one of the library's");
/// assert!(page.contains("## When to write"));
/// assert_eq!(agent_checkpoint::guide("mine"), None);
/// ```
#[must_use]
pub fn guide(format: &str) -> Option<&'static str> {
    Some(match format {
        "task" => include_str!("task.md"),
        "builder-state" => include_str!("builder-state.md"),
        "agent-session" => include_str!("agent-session.md"),
        "sitebuilder" => include_str!("sitebuilder.md"),
        "story-pipeline" => include_str!("story-pipeline.md"),
        "story-pipeline-state" => include_str!("story-pipeline-state.md"),
        "build-pipeline" => include_str!("build-pipeline.md"),
        _ => return None,
    })
}
