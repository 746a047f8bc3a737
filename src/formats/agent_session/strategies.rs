//! Generates agents' checkpoints for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{AgentCheckpoint, AgentStatus, AgentType, CoordinationState};
use crate::checkpoint::{Timestamp, arbitrary};

fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}",
        1 => "[a-zA-Z]\\PC{0,20}",
    ]
}

fn stamp() -> impl Strategy<Value = Option<Timestamp>> {
    any::<Timestamp>().prop_map(Some)
}

/// A status with its blockers.
fn status() -> impl Strategy<Value = (AgentStatus, Vec<String>)> {
    use AgentStatus::{Blocked, Complete, InProgress, Waiting};
    prop_oneof![
        4 => (
            select(vec![InProgress, InProgress, Waiting, Complete]),
            prop_oneof![4 => Just(Vec::new()), 1 => vec(phrase(), 1..3)],
        ),
        1 => (Just(Blocked), vec(phrase(), 1..4)),
    ]
}

prop_compose! {
    fn coordination_state()(
        last_inbox_check in stamp(),
        unread in 0..50_u8,
        last_epic_readme_update in stamp(),
        last_status_update in stamp(),
    ) -> CoordinationState {
        CoordinationState {
            last_inbox_check,
            unread_messages: Some(unread.into()),
            last_epic_readme_update,
            last_status_update,
        }
    }
}

prop_compose! {
    fn agent_checkpoint()(
        id in prop_oneof![1 => Just("Agent-Primary".to_owned()), 4 => "Secondary-[A-Z](-New)?"],
        session_id in "[0-9a-f]{4,12}".prop_map(Some),
        feature in "feature_[0-9]{2}_[a-z]{2,8}".prop_map(Some),
        (stage, phase) in select(vec![
            ("S2.P1", "Research Phase"),
            ("S2.P2", "Specification"),
            ("S2.P3", "Refinement"),
        ]),
        (status, blockers) in status(),
        last_checkpoint in stamp(),
        next_checkpoint_expected in stamp(),
        can_resume in any::<bool>().prop_map(Some),
        current_step in option::weighted(0.75, phrase()),
        completed_steps in vec(phrase(), 0..6),
        next_steps in vec(phrase(), 0..6),
        files_modified in vec("feature_[0-9]{2}/[a-z]{2,8}\\.md", 0..6),
        coordination_state in option::weighted(0.75, coordination_state()),
        taken_over in option::weighted(0.25, ("Secondary-[A-Z]", phrase())),
        recovery_instructions in option::weighted(0.75, phrase()),
    ) -> AgentCheckpoint {
        let (previous_agent, recovery_notes) = taken_over.unzip();
        AgentCheckpoint {
            agent_type: Some(AgentType::of(&id)),
            agent_id: Some(id),
            session_id,
            feature,
            stage: Some(stage.to_owned()),
            phase: Some(phase.to_owned()),
            last_checkpoint,
            next_checkpoint_expected,
            status: Some(status),
            can_resume,
            blockers,
            files_modified,
            recovery_instructions,
            current_step,
            completed_steps,
            next_steps,
            coordination_state,
            previous_agent,
            recovery_notes,
        }
    }
}

arbitrary! {
    /// Primary 1 of 5. In progress 2 of 5; waiting, complete and blocked 1 of 5 each. A blocked agent has 1 to 3
    /// blockers, 1 of 5 others has 1 or 2. 0 to 5 files, finished steps and next steps. A current step and the state of
    /// coordination 3 of 4 each; 1 of 4 took over.
    AgentCheckpoint => agent_checkpoint();
}
