//! Agents' checkpoints.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::arbitrary::arbitrary;
use crate::checkpoint::Timestamp;
use crate::formats::agent_session::{AgentCheckpoint, AgentStatus, AgentType, CoordinationState};

fn phrase() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}",
        1 => "[a-zA-Z]\\PC{0,20}",
    ]
}

fn agent_checkpoint() -> impl Strategy<Value = AgentCheckpoint> {
    let id = prop_oneof![
        1 => Just("Agent-Primary".to_owned()),
        4 => "Secondary-[A-Z](-New)?",
    ];
    let who = (id, "[0-9a-f]{4,12}", "feature_[0-9]{2}_[a-z]{2,8}");
    let stage = proptest::sample::select(vec![
        ("S2.P1", "Research Phase"),
        ("S2.P2", "Specification"),
        ("S2.P3", "Refinement"),
    ]);
    let status = prop_oneof![
        4 => (
            proptest::sample::select(vec![
                AgentStatus::InProgress,
                AgentStatus::InProgress,
                AgentStatus::Waiting,
                AgentStatus::Complete,
            ]),
            prop_oneof![4 => Just(Vec::new()), 1 => vec(phrase(), 1..3)],
        ),
        1 => (Just(AgentStatus::Blocked), vec(phrase(), 1..4)),
    ];
    let stamps = (any::<Timestamp>(), any::<Timestamp>(), any::<bool>());
    let steps = (
        option::weighted(0.75, phrase()),
        vec(phrase(), 0..6),
        vec(phrase(), 0..6),
        vec("feature_[0-9]{2}/[a-z]{2,8}\\.md", 0..6),
    );
    let coordination = (
        any::<Timestamp>(),
        0..50_u8,
        any::<Timestamp>(),
        any::<Timestamp>(),
    )
        .prop_map(|(inbox, unread, overview, own)| CoordinationState {
            last_inbox_check: Some(inbox),
            unread_messages: Some(unread.into()),
            last_epic_readme_update: Some(overview),
            last_status_update: Some(own),
        });
    let before = option::weighted(0.25, ("Secondary-[A-Z]", phrase()));
    let rest = (
        option::weighted(0.75, coordination),
        before,
        option::weighted(0.75, phrase()),
    );
    (who, stage, status, stamps, steps, rest).prop_map(
        |(who, stage, status, stamps, steps, rest)| {
            let (agent_id, session_id, feature) = who;
            let (status, blockers) = status;
            let (last, next, can_resume) = stamps;
            let (current_step, completed_steps, next_steps, files_modified) = steps;
            let (coordination_state, before, recovery_instructions) = rest;
            let (previous_agent, recovery_notes) = before.unzip();
            AgentCheckpoint {
                agent_type: Some(AgentType::of(&agent_id)),
                agent_id: Some(agent_id),
                session_id: Some(session_id),
                feature: Some(feature),
                stage: Some(stage.0.to_owned()),
                phase: Some(stage.1.to_owned()),
                last_checkpoint: Some(last),
                next_checkpoint_expected: Some(next),
                status: Some(status),
                can_resume: Some(can_resume),
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
        },
    )
}

arbitrary! {
    /// Primary 1 of 5; in progress 2 of 5, waiting, complete and blocked 1 of 5 each, the last with 1 to 3
    /// blockers, of the others 1 of 5 with 1 or 2; 0 to 5 files, finished and next steps; a current step
    /// and the state of coordination 3 of 4 each; 1 of 4 took over.
    AgentCheckpoint => agent_checkpoint();
}
