//! The testkit's rules for checkpoint types, on every format of the library.

use crate::common::tries;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::testkit::checkpoint::check_all;
use agent_checkpoint::{Checkpoint, checkpoint_conformance};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A few values of the strategies, always the same ones.
fn some<C: Checkpoint + Arbitrary>() -> Vec<C> {
    let strategy = any::<C>();
    let mut runner = TestRunner::deterministic();
    let mut sample = || strategy.new_tree(&mut runner).unwrap().current();
    (0..4).map(|_| sample()).collect()
}

checkpoint_conformance!(task, TaskCheckpoint, some());
checkpoint_conformance!(agent_session, AgentCheckpoint, some());
checkpoint_conformance!(sitebuilder, SitebuilderCheckpoint, some());
checkpoint_conformance!(story_pipeline, StoryCheckpoint, some());
checkpoint_conformance!(story_pipeline_state, PipelineState, some());
checkpoint_conformance!(build_pipeline, BuildCheckpoint, some());

proptest! {
    #![proptest_config(tries(8))]

    #[test]
    fn the_rules_can_be_a_property(task in any::<TaskCheckpoint>()) {
        check_all(&[task]);
    }
}
