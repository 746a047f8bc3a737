//! `with_unknown_fields`: valid, and with members that the type does not declare.

use std::collections::BTreeSet;

use agent_checkpoint::json::{Document, Kind, Node, pointer};
use agent_checkpoint::strategies::{Examine, with_unknown_fields};
use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;

use crate::common::cases;

use super::{assert_share, for_each_type, sample, shrink_all_ways};

/// The pointers of the members of a document that are in no document of the type.
fn unknown<C: Examine>(text: &str) -> Vec<String> {
    let document = Document::from_text(text).unwrap();
    assert_eq!(document.findings(), [], "{text}");
    let violations = C::examine(&document).unwrap();
    assert!(violations.is_empty(), "{violations:?}\n{text}");
    let value: C = document.read().unwrap().value;
    let known = Document::new(&value).unwrap();
    let mut found = Vec::new();
    gather(document.root(), known.root(), &mut found);
    found
}

fn gather(node: Node<'_>, known: Node<'_>, into: &mut Vec<String>) {
    match node.kind() {
        Kind::Object => {
            for (name, member) in node.members() {
                match known.get(&name) {
                    Some(known) => gather(member, known, into),
                    None => into.push(pointer::join(&node.pointer(), &name)),
                }
            }
        }
        Kind::Array => {
            for (element, known) in node.elements().zip(known.elements()) {
                gather(element, known, into);
            }
        }
        _ => {}
    }
}

fn has_undeclared_members<C: Arbitrary + Examine>() {
    for text in sample(&with_unknown_fields::<C>(), cases(60) as usize) {
        let found = unknown::<C>(&text);
        assert!(!found.is_empty(), "{text}");
    }
}
for_each_type!(has_undeclared_members);

fn keeps_one_when_it_shrinks<C: Arbitrary + Examine>() {
    let seen = shrink_all_ways(&with_unknown_fields::<C>(), 2, |text| {
        assert!(!unknown::<C>(&text).is_empty(), "{text}");
    });
    assert!(seen > 60, "only {seen} steps");
}
for_each_type!(keeps_one_when_it_shrinks);

#[test]
fn the_shares_are_those_of_the_page() {
    let texts = sample(&with_unknown_fields::<super::TaskCheckpoint>(), 200);
    let all: Vec<_> = texts
        .iter()
        .map(|text| unknown::<super::TaskCheckpoint>(text))
        .collect();
    let at_root = all
        .iter()
        .filter(|found| found.iter().any(|pointer| pointer.rfind('/') == Some(0)));
    // Half by the first member, a fourth of the rest by every object, and some by chance: 0.717 of 3,000.
    assert_share("one at the root", at_root.count(), all.len(), 0.72);
    let inside = all
        .iter()
        .filter(|found| found.iter().any(|pointer| pointer.matches('/').count() > 1));
    assert_share("one inside", inside.count(), all.len(), 0.85);
    let names: Vec<_> = all
        .iter()
        .flatten()
        .filter_map(|found| found.rsplit('/').next())
        .collect();
    let escaped = names.iter().filter(|name| name.contains('~'));
    assert!(escaped.count() > 20);
    let declared: BTreeSet<_> = ["PHASE", "METADATA", "COMPLETEDSTEPS", "PENDINGSTEPS"].into();
    assert!(names.iter().any(|name| declared.contains(name)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::common::cases(64)))]

    #[test]
    fn an_edit_keeps_them(text in with_unknown_fields::<super::TaskCheckpoint>()) {
        let before = unknown::<super::TaskCheckpoint>(&text);
        let mut document = Document::from_text(text).unwrap();
        document.set("/pendingSteps", &["one step"]).unwrap();
        let after = unknown::<super::TaskCheckpoint>(document.text());
        prop_assert_eq!(before, after);
    }
}
