//! An edit changes the place that it names, and nothing else.

use agent_checkpoint::json::{Document, Kind, pointer};

use crate::damage::{Choices, deviating, value_of};

/// Parse, one value set, added or removed anywhere, reparse.
pub(crate) fn editing(bytes: &[u8]) {
    let (base, edit) = bytes.split_at(bytes.len() / 2);
    let document = Document::parse(bytes).ok().or_else(|| deviating(base));
    if let Some(document) = document {
        set(&document, edit);
        add_and_remove(&document, edit);
    }
}

fn set(document: &Document, edit: &[u8]) {
    let mut choices = Choices::new(edit);
    let node = choices.node(document);
    let at = node.pointer();
    // Where names differ only by half of a surrogate pair, a pointer may lead elsewhere.
    let range = document
        .get(&at)
        .expect("every value has a pointer")
        .range();
    if at.is_empty() || range != node.range() {
        return;
    }
    let other = deviating(edit).unwrap_or_else(|| document.clone());
    let value = value_of(choices.node(&other));

    let mut edited = document.clone();
    let Ok(changed) = edited.set(&at, &value) else {
        return; // Too deep, as the only reason.
    };
    let (before, after) = (document.text(), edited.text());
    assert_eq!(changed, before != after);
    assert_eq!(after[..range.start], before[..range.start]);
    assert!(after.ends_with(&before[range.end..]), "{at}: {after}");
    same_when_read_again(&edited);
    let placed = edited.get(&at).expect("it was set");
    assert_eq!(value_of(placed), value);
    assert!(
        !edited.set(&at, &value).expect("as before"),
        "{at}: set twice"
    );
}

fn add_and_remove(document: &Document, edit: &[u8]) {
    let mut choices = Choices::new(edit);
    let node = choices.node(document);
    let at = match node.kind() {
        Kind::Object => pointer::join(&node.pointer(), "a name that nobody has"),
        Kind::Array => {
            let length = node.elements().count();
            pointer::join(&node.pointer(), &choices.below(length + 1).to_string())
        }
        _ => return,
    };
    let value = value_of(choices.node(document));
    let mut edited = document.clone();
    if edited.insert(&at, &value).is_err() {
        assert_eq!(edited, *document);
        return;
    }
    same_when_read_again(&edited);
    for (name, member) in node.members() {
        let kept = edited.get(&pointer::join(&node.pointer(), &name));
        assert!(kept.is_some_and(|kept| kept.same_value(&member)), "{at}");
    }
    assert!(edited.remove(&at).expect("it was added"));
    same_when_read_again(&edited);
    assert!(edited.same_value(document), "{at}\n{document}\n{edited}");
}

fn same_when_read_again(document: &Document) {
    let again = Document::parse(document.text().as_bytes()).expect("an edit leaves a document");
    assert_eq!(again, *document);
    assert!(again.same_value(document));
}
