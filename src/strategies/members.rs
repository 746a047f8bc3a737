//! The members that a type has, as its values show them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::arbitrary::Arbitrary;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::examine::Examine;
use super::tree::Tree;
use super::valid::valid;

/// How many values are looked at.
const VALUES: usize = 64;

/// In how many of them a member has to be: what is in one only is a key of a map, not a member.
const IN_AT_LEAST: usize = 2;

/// How many values of each member are kept.
const VALUES_KEPT: usize = 8;

/// Members with values that they had: of 64 valid values, the same on every run.
pub(super) fn members<C: Arbitrary + Examine>() -> Vec<(String, Tree)> {
    let mut seen = BTreeMap::new();
    let mut runner = TestRunner::deterministic();
    let strategy = valid::<C>();
    for _ in 0..VALUES {
        if let Ok(value) = strategy.new_tree(&mut runner) {
            let mut inside = BTreeMap::new();
            gather(&Tree::of(&value.current()), &mut inside);
            for (name, values) in inside {
                let (count, kept): &mut (usize, BTreeSet<_>) = seen.entry(name).or_default();
                *count += 1;
                kept.extend(values);
            }
        }
    }
    let common = seen
        .into_iter()
        .filter(|(_, (count, _))| *count >= IN_AT_LEAST);
    common
        .flat_map(|(name, (_, values))| {
            let kept = values.into_iter().take(VALUES_KEPT);
            kept.map(move |value| (name.clone(), value))
        })
        .collect()
}

fn gather(tree: &Tree, into: &mut BTreeMap<String, BTreeSet<Tree>>) {
    match tree {
        Tree::List(elements) => elements.iter().for_each(|element| gather(element, into)),
        Tree::Object(members) => {
            for (name, member) in members {
                into.entry(name.clone()).or_default().insert(member.clone());
                gather(member, into);
            }
        }
        _ => {}
    }
}
