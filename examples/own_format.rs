//! Your own format: one struct, one `impl`, one line of registration.
//!
//! It gets lenient reading, lossless saving, violations, staleness, the resume prompt and detection, like the library's
//! own formats. `cargo run --example own_format`
#![allow(clippy::print_stdout, reason = "an example speaks to the terminal")]

use std::path::Path;

use agent_checkpoint::formats::{Evidence, Format, Formats, Inspection};
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::ResumeOptions;
use agent_checkpoint::store::FileStore;
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, DoneItem, Handoff, Key, Status, Timestamp};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The checkpoint of a document translator: chapters done, chapters left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Translation {
    book: Option<String>,
    translated: Vec<String>,
    open: Vec<String>,
    saved: Option<Timestamp>,
}

impl Checkpoint for Translation {
    const FORMAT: &'static str = "translation";

    fn updated_at(&self) -> Option<&Timestamp> {
        self.saved.as_ref()
    }

    fn stamp(&mut self, now: DateTime<Utc>) {
        self.saved = Some(Timestamp::like(self.saved.as_ref(), now));
    }

    fn files(&self) -> Vec<&str> {
        self.translated.iter().map(String::as_str).collect()
    }

    fn handoff(&self) -> Handoff {
        let mut handoff = Handoff::default();
        handoff.task.clone_from(&self.book);
        handoff.status = match (self.translated.is_empty(), self.open.is_empty()) {
            (_, true) => Status::Complete,
            (true, false) => Status::NotStarted,
            (false, false) => Status::InProgress,
        };
        handoff.done = self.translated.iter().map(DoneItem::new).collect();
        handoff.pending.clone_from(&self.open);
        handoff
    }

    fn inspect(&self, inspection: &mut Inspection<'_>) {
        inspection.require("book");
        inspection.timestamp("/saved", self.saved.as_ref());
    }

    fn recognise(_: &Path, document: Option<&Document>) -> Option<Evidence> {
        document?.root().get("translated")?;
        Evidence::gather(None, &["translated"])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    // A file that a person wrote: an unknown key, a number in place of a chapter, no book.
    let text = "{\"translated\": [\"one.md\", 2], \"open\": [\"three.md\"], \"mood\": \"good\"}\n";
    std::fs::write(folder.path().join("atlas.json"), text)?;

    let mut formats = Formats::default();
    formats.register(Format::of::<Translation>());
    let detected = formats.detect(Path::new("atlas.json"), Some(&Document::from_text(text)?))?;
    println!("{} ({})", detected.format.name(), detected.evidence.reason);

    let store = FileStore::open(folder.path());
    let books = store.checkpoints::<Translation>();
    let key = Key::new("atlas")?;
    for violation in books.get(&key)?.violations {
        println!("  {violation}");
    }
    books.update(&key, |book| book.open.push("four.md".into()))?;
    print!("{}", store.path(&key).map(std::fs::read_to_string)??);
    let resume = books.resume(&key, &ResumeOptions::new(folder.path()))?;
    println!(
        "{}: {:?}",
        resume.plan.decision.as_str(),
        resume.plan.start_at
    );
    Ok(())
}
