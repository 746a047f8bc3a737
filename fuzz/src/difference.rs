//! Two documents are told apart exactly when their values are not the same.

use agent_checkpoint::RuleContext;
use agent_checkpoint::difference::Difference;
use agent_checkpoint::formats::Formats;
use agent_checkpoint::json::Document;

use crate::damage::deviating;

/// The bytes, and what their halves make of seeds, against each other in every format.
pub(crate) fn difference(bytes: &[u8]) {
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let one = Document::parse(bytes).ok().or_else(|| deviating(one));
    if let (Some(one), Some(other)) = (one, deviating(other)) {
        compare(&one, &other);
    }
    if let Some(same) = deviating(bytes) {
        compare(&same, &same);
    }
}

fn compare(before: &Document, after: &Document) {
    // Names with half of a surrogate pair can read like others, and then nobody can say which is which.
    let odd = before.text().contains("\\ud") || after.text().contains("\\ud");
    let holds = |difference: Difference| {
        assert!(
            odd || difference.is_empty() == before.same_value(after),
            "{difference}"
        );
        let lines = difference.to_string().lines().count();
        assert_eq!(
            lines,
            difference.changes.len() + usize::from(difference.respelled)
        );
    };
    holds(Difference::between(before, after));
    for format in Formats::default().iter() {
        let open = |document| format.inspect(document, &RuleContext::none());
        if let (Ok(old), Ok(new)) = (open(before), open(after)) {
            holds(Difference::of_handoffs(
                (before, &old.handoff),
                (after, &new.handoff),
            ));
        }
    }
}
