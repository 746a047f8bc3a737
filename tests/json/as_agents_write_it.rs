//! Files as agents really write them: they load, typed, with violations; an unchanged file is written byte for byte;
//! changing one value changes only that value.

use crate::common::{clock, key, time};
use agent_checkpoint::formats::Formats;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::{Document, Kind, Node};
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Outcome, Put};
use agent_checkpoint::strategies::as_agents_write_it;
use agent_checkpoint::{Checkpoint, Checkpoints, Limits, RuleContext};
use proptest::prelude::*;

/// Everything that must hold for one text, in any format.
fn holds<C: Checkpoint>(text: &str) -> Result<(), TestCaseError> {
    let document = Document::from_text(text).unwrap();
    let context = RuleContext::none().with_now(time("2026-03-02T08:00:00Z"));
    let formats = Formats::default();
    let format = formats.get(C::FORMAT).unwrap();
    let violations = format.violations(&document, &context).unwrap();
    for violation in &violations {
        // A pointer leads to a value, or to a missing member of an existing one.
        let parent = violation
            .pointer
            .rsplit_once('/')
            .map_or("", |(parent, _)| parent);
        prop_assert!(document.get(parent).is_some(), "{violation}");
    }

    let store = MemoryStore::new();
    store.put(&key("a"), Put::new(document.clone())).unwrap();
    let checkpoints = Checkpoints::<C>::new(store.clone())
        .with_limits(Limits::unlimited())
        .with_clock(clock("2026-03-02T08:00:00Z"));
    checkpoints.get(&key("a")).unwrap();
    let saved = checkpoints.update(&key("a"), |_| {}).unwrap();
    prop_assert_eq!(saved.outcome, Outcome::Unchanged);
    let options = ResumeOptions::new(std::env::temp_dir());
    checkpoints
        .resume(&key("a"), &options)
        .unwrap()
        .prompt()
        .unwrap();

    // Every single value can be changed without changing anything else.
    let mut scalars = Vec::new();
    collect(document.root(), &mut scalars);
    for (pointer, range) in scalars.into_iter().take(12) {
        let mut changed = document.clone();
        prop_assert!(changed.set(&pointer, &"changed").unwrap());
        let expected = format!("{}\"changed\"{}", &text[..range.start], &text[range.end..]);
        prop_assert_eq!(changed.text(), expected);
    }
    Ok(())
}

/// The effective scalars, with their places.
fn collect(node: Node<'_>, into: &mut Vec<(String, std::ops::Range<usize>)>) {
    match node.kind() {
        Kind::Object => node.members().for_each(|(_, member)| collect(member, into)),
        Kind::Array => node.elements().for_each(|element| collect(element, into)),
        _ => into.push((node.pointer(), node.range())),
    }
}

proptest! {
    #![proptest_config(crate::common::tries(256))]

    #[test]
    fn task(text in as_agents_write_it::<TaskCheckpoint>()) {
        holds::<TaskCheckpoint>(&text)?;
    }

    #[test]
    fn agent_session(text in as_agents_write_it::<AgentCheckpoint>()) {
        holds::<AgentCheckpoint>(&text)?;
    }

    #[test]
    fn sitebuilder(text in as_agents_write_it::<SitebuilderCheckpoint>()) {
        holds::<SitebuilderCheckpoint>(&text)?;
    }

    #[test]
    fn story_pipeline(text in as_agents_write_it::<StoryCheckpoint>()) {
        holds::<StoryCheckpoint>(&text)?;
    }

    #[test]
    fn story_pipeline_state(text in as_agents_write_it::<PipelineState>()) {
        holds::<PipelineState>(&text)?;
    }

    #[test]
    fn build_pipeline(text in as_agents_write_it::<BuildCheckpoint>()) {
        holds::<BuildCheckpoint>(&text)?;
    }

    #[test]
    fn builder_state(text in as_agents_write_it::<BuilderState>()) {
        let document = Document::from_text(text).unwrap();
        let formats = Formats::default();
        let format = formats.get("builder-state").unwrap();
        format.violations(&document, &RuleContext::none()).unwrap();
    }
}
