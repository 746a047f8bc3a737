//! Whatever is saved of damaged bytes is their beginning and brackets.

use agent_checkpoint::json::{self, Document};

use crate::damage::damaged;

/// Any bytes, saved or not.
pub(crate) fn salvage(bytes: &[u8]) {
    save(bytes);
    save(&damaged(bytes));
}

fn save(bytes: &[u8]) {
    let read = Document::parse(bytes);
    let Some(saved) = json::salvage(bytes) else {
        assert!(read.is_err());
        return;
    };
    let text = saved.document.text();
    let (kept, closers) = text.as_bytes().split_at(saved.kept);
    assert!(bytes.starts_with(kept));
    assert!(closers.iter().all(|byte| matches!(byte, b'}' | b']')));
    assert_eq!(closers.is_empty(), saved.is_whole());
    assert_eq!(saved.left_out.is_none(), read.is_ok());
    let lost = saved.left_out.map_or(0, |left_out| left_out.bytes);
    assert_eq!(kept.len() + lost, bytes.len());
    let again = Document::parse(text.as_bytes()).expect("what is saved is a document");
    assert_eq!(again, saved.document);
    let twice = json::salvage(text.as_bytes()).expect("it is a document");
    assert_eq!((twice.document, twice.left_out), (again, None));
}
