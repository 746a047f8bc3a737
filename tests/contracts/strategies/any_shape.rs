//! `any_shape`: objects around the shape of a type.

use agent_checkpoint::json::{Document, Kind, Node};
use agent_checkpoint::strategies::{Examine, any_shape};
use proptest::arbitrary::Arbitrary;

use super::{assert_share, for_each_type, sample, shrink_all_ways};

/// Asserts that the text is a JSON object that the library reads, without parts that no schema can see.
fn assert_object(text: &str) -> Document {
    let document = Document::from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(document.findings(), [], "{text}");
    document
}

fn is_an_object_that_is_valid_or_not<C: Arbitrary + Examine>() {
    let texts = sample(&any_shape::<C>(), 150);
    let mut valid = 0;
    for text in &texts {
        let document = assert_object(text);
        valid += usize::from(C::examine(&document).is_some_and(|found| found.is_empty()));
    }
    // At least the unchanged ones; at most half, or there is little to distinguish.
    assert!((30..110).contains(&valid), "{valid} are valid");
}
for_each_type!(is_an_object_that_is_valid_or_not);

fn shrinks_through_objects<C: Arbitrary + Examine>() {
    let seen = shrink_all_ways(&any_shape::<C>(), 6, |text| {
        assert_object(&text);
    });
    assert!(seen > 200, "only {seen} steps");
}
for_each_type!(shrinks_through_objects);

fn numbers<'d>(node: Node<'d>, into: &mut Vec<&'d str>) {
    match node.kind() {
        Kind::Number => into.push(node.raw()),
        Kind::Object => node.members().for_each(|(_, member)| numbers(member, into)),
        Kind::Array => node.elements().for_each(|element| numbers(element, into)),
        _ => {}
    }
}

/// A reader that represents numbers as `f64` refuses only a few of the texts.
#[test]
fn few_texts_have_a_number_beyond_f64() {
    let texts = sample(&any_shape::<super::SitebuilderCheckpoint>(), 400);
    let refused = texts.iter().filter(|text| {
        let document = assert_object(text);
        let mut all = Vec::new();
        numbers(document.root(), &mut all);
        all.iter()
            .any(|number| number.parse::<f64>().is_ok_and(f64::is_infinite))
    });
    assert_share("beyond f64", refused.count(), texts.len(), 0.025);
}
