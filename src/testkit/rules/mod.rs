//! The rules, each group in a file of its own.

mod beside;
mod clock;
mod contention;
mod contract;
mod faults;
mod fencing;
mod history;
mod keys;
mod limits;
mod processes;
mod recovery;
mod reopening;
mod revisions;

use super::rule::Rule;

/// All rules, in the order of a report.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let groups: [&[Rule]; 13] = [
        contract::RULES,
        revisions::RULES,
        beside::RULES,
        contention::RULES,
        processes::RULES,
        fencing::RULES,
        history::RULES,
        recovery::RULES,
        reopening::RULES,
        keys::RULES,
        clock::RULES,
        limits::RULES,
        faults::RULES,
    ];
    groups.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The macro has the names, this registry has all the rest.
    #[test]
    fn every_rule_is_a_test_and_every_test_is_a_rule() {
        let names: Vec<&str> = super::rules().map(|rule| rule.name).collect();
        assert_eq!(names, crate::__store_rules!(names));
        let once: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(once.len(), names.len(), "two rules have one name");
    }
}
