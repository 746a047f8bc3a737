//! The same hand-off in another format.

use crate::common;

use crate::common::time;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::StoryCheckpoint;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::formats::{convert, convert_from, members_not_held};
use agent_checkpoint::json::Document;
use agent_checkpoint::{Checkpoint, DoneItem, Handoff};
use proptest::prelude::*;

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_task_holds_what_a_task_had(mut task in any::<TaskCheckpoint>()) {
        // A current step that is not in the plan is added to it, so that it is not lost when it is put back.
        if let Some(step) = &task.current_step {
            let text = step.description.clone().unwrap();
            if !task.pending_steps.contains(&text) {
                task.pending_steps.insert(0, text);
            }
        }
        // List elements are identified by their texts.
        task.completed_steps.dedup_by(|a, b| a.step == b.step);
        let handoff = task.handoff();
        let converted = convert::<TaskCheckpoint>(&handoff, time("2026-03-02T08:00:00Z")).unwrap();
        prop_assert_eq!(converted.checkpoint.handoff().pending, handoff.pending);
        prop_assert_eq!(converted.checkpoint.completed_steps, task.completed_steps);
        prop_assert_eq!(converted.checkpoint.decisions, task.decisions);
    }
}

/// Every format into every other: each item either arrives or is listed as not held.
fn all_is_there_or_listed<C: Checkpoint>(handoff: &Handoff) -> Result<(), TestCaseError> {
    let now = time("2026-03-02T08:00:00Z");
    let converted = convert::<C>(handoff, now).unwrap();
    let held = converted.checkpoint.handoff();
    let listed = converted.not_held.join("\n");
    for item in &handoff.done {
        let arrived = held.done.iter().any(|done| done.text == item.text);
        prop_assert!(
            arrived || listed.contains(&item.text),
            "{}: {item:?}",
            C::FORMAT
        );
    }
    let begun = handoff.in_progress.iter().map(|item| &item.text);
    for text in handoff.pending.iter().chain(&handoff.blockers).chain(begun) {
        let open = held.in_progress.iter().map(|item| &item.text);
        let all = held.pending.iter().chain(&held.blockers).chain(open);
        let arrived = all.into_iter().any(|held| held == text);
        prop_assert!(
            arrived || listed.contains(text.as_str()),
            "{}: {text}",
            C::FORMAT
        );
    }
    // The converted checkpoint is readable by its own format.
    let document = Document::new(&converted.checkpoint).unwrap();
    prop_assert!(!document.read::<C>().unwrap().is_partial());
    Ok(())
}

fn into_every_format(handoff: &Handoff) -> Result<(), TestCaseError> {
    all_is_there_or_listed::<TaskCheckpoint>(handoff)?;
    all_is_there_or_listed::<AgentCheckpoint>(handoff)?;
    all_is_there_or_listed::<SitebuilderCheckpoint>(handoff)?;
    all_is_there_or_listed::<StoryCheckpoint>(handoff)?;
    all_is_there_or_listed::<BuildCheckpoint>(handoff)
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_task_into_every_format(from in any::<TaskCheckpoint>()) {
        into_every_format(&from.handoff())?;
    }

    #[test]
    fn an_agent_session_into_every_format(from in any::<AgentCheckpoint>()) {
        into_every_format(&from.handoff())?;
    }

    #[test]
    fn a_sitebuilder_task_into_every_format(from in any::<SitebuilderCheckpoint>()) {
        into_every_format(&from.handoff())?;
    }

    #[test]
    fn a_story_into_every_format(from in any::<StoryCheckpoint>()) {
        into_every_format(&from.handoff())?;
    }

    #[test]
    fn a_build_into_every_format(from in any::<BuildCheckpoint>()) {
        into_every_format(&from.handoff())?;
    }
}

/// A checkpoint that is converted to its own format is unchanged, whatever the hand-off says.
fn stays_as_it_is<C: Checkpoint>(from: &C) -> Result<(), TestCaseError> {
    let now = time("2026-03-02T08:00:00Z");
    let converted = convert_from::<C, C>(from, now).unwrap();
    prop_assert!(&converted.checkpoint == from);
    prop_assert_eq!(converted.not_held, [""; 0]);
    Ok(())
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn a_checkpoint_stays_as_it_is_in_its_own_format(
        task in any::<TaskCheckpoint>(),
        agent in any::<AgentCheckpoint>(),
        site in any::<SitebuilderCheckpoint>(),
        story in any::<StoryCheckpoint>(),
        build in any::<BuildCheckpoint>(),
    ) {
        stays_as_it_is(&task)?;
        stays_as_it_is(&agent)?;
        stays_as_it_is(&site)?;
        stays_as_it_is(&story)?;
        stays_as_it_is(&build)?;
        let now = time("2026-03-02T08:00:00Z");
        let through = convert::<TaskCheckpoint>(&site.handoff(), now).unwrap();
        prop_assert_eq!(convert_from::<_, TaskCheckpoint>(&site, now).unwrap(), through);
    }
}

#[test]
fn what_the_target_cannot_hold_is_listed() {
    let mut handoff = common::task(&["one"]).handoff();
    handoff.description = Some("Do it".into());
    handoff.instructions.push("Be kind".into());
    let converted = convert::<TaskCheckpoint>(&handoff, time("2026-03-02T08:00:00Z")).unwrap();
    assert_eq!(
        converted.not_held,
        ["description: Do it", "instruction: Be kind"]
    );
}

#[test]
fn what_no_hand_off_tells_is_listed_member_by_member() {
    let source = Document::from_text(
        r#"{"session_id":"s-9","can_resume":false,"n":3,"kept":"Write it","nothing":null,"of_mine":{"x":["y"]}}"#,
    )
    .unwrap();
    let held =
        Document::from_text(r#"{"notes":"To do: Write it","n":3,"resumable":false}"#).unwrap();
    assert_eq!(
        members_not_held(&source, &held, &["agent: s-9".to_owned()]),
        ["/can_resume: false", "/of_mine/x/0: \"y\""]
    );
}

#[test]
fn a_short_text_is_held_only_where_it_stands_as_a_whole() {
    let source = Document::from_text(
        r#"{"priority":"P1","by":"a","build":"1","kept":"b","schemaVersion":1,"metadata":{"reason":"periodic"}}"#,
    )
    .unwrap();
    let held =
        Document::from_text(r#"{"step":"P12 at 10:15, as planned","list":"a2; b"}"#).unwrap();
    assert_eq!(
        members_not_held(&source, &held, &[]),
        ["/priority: \"P1\"", "/by: \"a\"", "/build: \"1\""]
    );
}

#[test]
fn a_stamp_that_a_format_requires_and_nobody_gave_is_announced() {
    let mut handoff = Handoff::default();
    handoff.done = vec![DoneItem::new("one"), DoneItem::new("two")];
    handoff.pending = vec!["three".to_owned()];
    handoff.updated_at = Some(agent_checkpoint::Timestamp::parse("2026-01-02T08:00:00Z"));
    let now = time("2026-03-02T08:00:00Z");
    let task = convert::<TaskCheckpoint>(&handoff, now).unwrap();
    assert_eq!(
        task.made_up,
        ["time of finished steps (of 2): 2026-03-02T08:00:00Z"]
    );
    // A format that does not need one has none.
    handoff.blockers = vec!["No access".to_owned()];
    let site = convert::<SitebuilderCheckpoint>(&handoff, now).unwrap();
    assert_eq!(site.made_up, [""; 0]);
    assert_eq!(site.checkpoint.errors[0].timestamp, None);
}
