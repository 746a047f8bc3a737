//! From the name of a format to its type.

use agent_checkpoint::Format;
use agent_checkpoint::checkpoint::Layout;

use crate::failure::Failure;

/// Does `$work` with the type `$C` that the checkpoints of a format have; both are results with a
/// [`Failure`].
macro_rules! dispatch {
    ($format:expr, $C:ident => $work:expr) => {{
        use agent_checkpoint::Checkpoint as _;
        use agent_checkpoint::formats::{
            AgentCheckpoint, BuildCheckpoint, SitebuilderCheckpoint, StoryCheckpoint,
            TaskCheckpoint, builder_state,
        };
        match $format {
            TaskCheckpoint::FORMAT | builder_state::FORMAT => {
                type $C = TaskCheckpoint;
                $work
            }
            AgentCheckpoint::FORMAT => {
                type $C = AgentCheckpoint;
                $work
            }
            SitebuilderCheckpoint::FORMAT => {
                type $C = SitebuilderCheckpoint;
                $work
            }
            StoryCheckpoint::FORMAT => {
                type $C = StoryCheckpoint;
                $work
            }
            BuildCheckpoint::FORMAT => {
                type $C = BuildCheckpoint;
                $work
            }
            other => Err($crate::dispatch::no_checkpoint(other)),
        }
    }};
}
pub(crate) use dispatch;

/// What is said of a format whose documents are no checkpoints of a task.
pub(crate) fn no_checkpoint(format: &str) -> Failure {
    Failure::new(format!(
        "a file of the format {format} is no checkpoint of one task; `validate`, `show`, `detect`, `revision` \
         and `set` take it, and this verb takes the checkpoints of its tasks"
    ))
}

/// How a format names its files.
pub(crate) fn layout_of(format: &Format) -> Layout {
    let layout: Result<Layout, Failure> = dispatch!(format.name, C => Ok(C::layout()));
    layout.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_checkpoint::Formats;

    #[test]
    fn every_format_has_its_type() {
        for format in Formats::default().iter() {
            let name: Result<&str, Failure> = dispatch!(format.name, C => Ok(C::FORMAT));
            match format.name {
                "builder-state" => assert_eq!(name.unwrap(), "task"),
                "story-pipeline-state" => assert!(name.is_err()),
                other => assert_eq!(name.unwrap(), other),
            }
        }
    }
}
