//! Whatever is saved of damaged bytes is theirs, and what is not saved is told.

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
    assert_eq!(saved.left_out.is_empty(), read.is_ok());
    assert_eq!(saved.cause, read.err());
    // The document is the bytes without the pieces, and commas and brackets.
    let text = saved.document.text();
    let mut kept = text.as_bytes();
    let mut at = 0;
    for piece in &saved.left_out {
        let good = bytes
            .get(at..piece.offset)
            .expect("the pieces are in order");
        kept = without(kept, good);
        at = piece.offset + piece.bytes;
    }
    kept = without(kept, bytes.get(at..).expect("they lie in the bytes"));
    assert!(kept.iter().all(|byte| b",]}".contains(byte)));
    let again = Document::parse(text.as_bytes()).expect("what is saved is a document");
    assert_eq!(again, saved.document);
    let twice = json::salvage(text.as_bytes()).expect("it is a document");
    assert_eq!((twice.document, twice.left_out), (again, Vec::new()));
}

/// What follows `good` in `kept`, where commas and brackets may stand in between.
fn without<'k>(mut kept: &'k [u8], good: &[u8]) -> &'k [u8] {
    for wanted in good {
        while kept.first() != Some(wanted) {
            let (added, rest) = kept.split_first().expect("what is kept is there");
            assert!(b",]}".contains(added));
            kept = rest;
        }
        kept = &kept[1..];
    }
    kept
}
