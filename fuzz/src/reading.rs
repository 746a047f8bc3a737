//! Any bytes are read in every format, or refused with a place; what was read and not changed is written as it was.

use agent_checkpoint::RuleContext;
use agent_checkpoint::formats::Formats;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::builder_state::BuilderState;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::{Document, Rewrite};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::damage::{damaged, deviating};

/// Parse, typed reads for every format, unchanged write.
pub(crate) fn reading(bytes: &[u8]) {
    read(bytes);
    read(&damaged(bytes));
    if let Some(document) = deviating(bytes) {
        read(document.text().as_bytes());
    }
}

fn read(bytes: &[u8]) {
    let document = match Document::parse(bytes) {
        Ok(document) => document,
        Err(corrupt) => {
            assert!(corrupt.offset <= bytes.len(), "{corrupt}");
            assert!(corrupt.line > 0 && corrupt.column > 0, "{corrupt}");
            return;
        }
    };
    assert_eq!(document.text().as_bytes(), bytes);
    for format in Formats::default().iter() {
        let _unreadable = format.violations(&document, &RuleContext::none());
        let _unreadable = format.inspect(&document, &RuleContext::none());
    }
    unchanged::<TaskCheckpoint>(&document);
    unchanged::<BuilderState>(&document);
    unchanged::<AgentCheckpoint>(&document);
    unchanged::<SitebuilderCheckpoint>(&document);
    unchanged::<StoryCheckpoint>(&document);
    unchanged::<PipelineState>(&document);
    unchanged::<BuildCheckpoint>(&document);
}

fn unchanged<T: Serialize + DeserializeOwned + PartialEq>(document: &Document) {
    let Ok(reading) = document.read::<T>() else {
        return;
    };
    let written = document
        .rewrite(&reading, &reading.value, &Rewrite::new())
        .expect("what was read can be written");
    assert!(!written.changed, "{document}");
    assert_eq!(written.document, *document);
}
