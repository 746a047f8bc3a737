//! From the name of a format to its type.

use std::path::Path;

use crate::failure::Failure;

/// Does `$work` with the type `$C` that the checkpoints of a format have.
///
/// A format whose documents are no checkpoints of a task gives `$other`; with the path of a file, a
/// [`Failure`] that says so.
macro_rules! dispatch {
    ($format:expr, $path:expr, $C:ident => $work:expr) => {
        dispatch!($format, $C => $work, else Err($crate::dispatch::no_checkpoint($format, $path)))
    };
    ($format:expr, $C:ident => $work:expr, else $other:expr) => {{
        use agent_checkpoint::Checkpoint as _;
        use agent_checkpoint::formats::builder_state;
        use agent_checkpoint::formats::agent_session::AgentCheckpoint;
        use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
        use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
        use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
        use agent_checkpoint::formats::task::TaskCheckpoint;
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
            PipelineState::FORMAT => {
                type $C = PipelineState;
                $work
            }
            BuildCheckpoint::FORMAT => {
                type $C = BuildCheckpoint;
                $work
            }
            _ => $other,
        }
    }};
}
pub(crate) use dispatch;

/// What is said of a format whose documents are no checkpoints of a task.
pub(crate) fn no_checkpoint(format: &str, path: &Path) -> Failure {
    Failure::new(format!(
        "{}: a file of the format {format} is no checkpoint of one task; `validate`, `show`, `detect`, `revision` \
         and `set` take it, and this verb takes the checkpoints of its tasks",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use agent_checkpoint::formats::Formats;

    #[test]
    fn every_transient_state_is_on_its_formats_page() {
        for format in Formats::default().iter() {
            let transient = format.transient();
            let page = match format.name() {
                "task" => "builder-state",
                "story-pipeline-state" => "story-pipeline",
                own => own,
            };
            let path = format!(
                "{}/../../docs/formats/{page}.md",
                env!("CARGO_MANIFEST_DIR")
            );
            let page = std::fs::read_to_string(&path).unwrap();
            assert!(page.contains("## Transient states"), "{path}");
            for (code, pointer) in transient {
                let is_listed = |line: &str| {
                    line.contains(&format!("| `{code}` |"))
                        && line.contains(&format!("`{pointer}`"))
                };
                assert!(page.lines().any(is_listed), "{path}: {code} at {pointer}");
            }
        }
    }

    #[test]
    fn the_users_reference_lists_the_operations_of_every_format() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        for format in Formats::default().iter() {
            let operations = format.operations().iter();
            let operations: Vec<_> = operations.map(|name| format!("`{name}`")).collect();
            let row = format!("`{}` | {} |", format.name(), operations.join(", "));
            assert!(reference.contains(&row), "{row}");
        }
    }
}
