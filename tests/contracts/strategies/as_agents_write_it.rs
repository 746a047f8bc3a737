//! `as_agents_write_it`: JSON objects, mostly with violations.

use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::strategies::{Examine, as_agents_write_it};
use proptest::arbitrary::Arbitrary;

use super::{assert_share, for_each_type, sample, shrink_all_ways};

/// Another reader accepts it too, without the byte order mark.
fn assert_json(text: &str) {
    let value: serde_json::Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
    assert!(value.is_object(), "{text}");
}

fn is_an_object_with_violations<C: Arbitrary + Examine>() {
    let texts = sample(&as_agents_write_it::<C>(), 150);
    let mut violating = 0;
    for text in &texts {
        assert_json(text);
        let document = Document::from_text(text.as_str()).unwrap();
        violating += usize::from(!C::examine(&document).unwrap().is_empty());
    }
    assert!(violating > 90, "only {violating} have violations");
}
for_each_type!(is_an_object_with_violations);

fn shrinks_through_objects<C: Arbitrary + Examine>() {
    let seen = shrink_all_ways(&as_agents_write_it::<C>(), 4, |text| assert_json(&text));
    assert!(seen > 150, "only {seen} steps");
}
for_each_type!(shrinks_through_objects);

#[test]
fn the_shares_are_those_of_the_page() {
    let texts = sample(&as_agents_write_it::<super::StoryCheckpoint>(), 600);
    let share = |what: &str, expected, has: &dyn Fn(&str) -> bool| {
        let count = texts.iter().filter(|text| has(text)).count();
        assert_share(what, count, texts.len(), expected);
    };
    share("byte order mark", 0.5, &|text| text.starts_with('\u{feff}'));
    share("tabs", 0.2, &|text| text.contains("\n\t"));
    // Of the 4 in 5 texts with line ends inside, and of the others those with a final line end.
    share("CRLF", 0.45, &|text| text.contains("\r\n"));
    share("one line", 0.2, &|text| {
        text.trim_end().lines().count() == 1
    });
    share("a second member", 0.25, &|text| {
        let document = Document::from_text(text).unwrap();
        let findings = document.findings();
        findings
            .iter()
            .any(|found| found.code == Code::DUPLICATE_KEY)
    });
}
