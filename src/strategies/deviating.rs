//! Valid JSON bent the way agents and people bend it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::json::restyled;

/// One way in which real files differ from their format.
#[derive(Clone, Debug)]
enum Deviation {
    /// A member that nobody declared.
    Foreign(&'static str, Value),
    /// A text in another spelling, a sentence, or a word where a time belongs.
    Text(&'static str),
    /// A text in capitals.
    Shouted,
    /// A list where an object belongs, and the other way round.
    OtherContainer,
    /// An element of a list wrapped in an object.
    Wrapped,
    /// A number as a text.
    Quoted,
    /// Nothing where something was.
    Null,
    /// A member that is not there.
    Removed,
    /// An element that stands twice.
    Twice,
}

/// Texts that stood in real files where an id, a status or a time belongs.
const TEXTS: &[&str] = &[
    "N/A",
    "pending",
    "in-progress",
    "COMPLETE",
    "approved",
    "done - all tests green, see the report",
    "2026-03-04",
    "2026-03-04T09:15:42",
    "2026-02-30T00:00:00Z",
    "2026-03-04T09:15:42.1234567+01:00",
    "2031-01-01T00:00:00Z (estimated)",
    "../../elsewhere/x",
    "",
    "👩‍👩‍👧 e\u{301}",
];

fn deviation() -> impl Strategy<Value = Deviation> {
    let foreign = proptest::sample::select(vec![
        ("current_tier", Value::from("T3")),
        ("notes_for_next_agent", Value::from("see the branch")),
        ("_meta", serde_json::json!({"v": 1.5, "deep": [[{}]]})),
        (
            "metrics",
            serde_json::json!({"tokens": 123_456_789_012_u64}),
        ),
        ("", Value::Null),
        ("a/b~c", Value::from(true)),
    ]);
    prop_oneof![
        3 => foreign.prop_map(|(name, value)| Deviation::Foreign(name, value)),
        3 => proptest::sample::select(TEXTS).prop_map(Deviation::Text),
        1 => Just(Deviation::Shouted),
        1 => Just(Deviation::OtherContainer),
        1 => Just(Deviation::Wrapped),
        1 => Just(Deviation::Quoted),
        1 => Just(Deviation::Null),
        1 => Just(Deviation::Removed),
        1 => Just(Deviation::Twice),
    ]
}

/// The text of a JSON object that deviates from its format in 0 to 4 places, in one of the styles of
/// [`restyled`]: still JSON, so a lenient reader must take it.
///
/// Half of the deviations are undeclared members and texts out of place; the rest wrong types, nulls,
/// missing members and repeated elements, each as often. One text in four has a second member of a
/// name at its end, which counts from then on.
pub fn deviating(valid: Value) -> impl Strategy<Value = String> {
    let second = prop_oneof![
        3 => Just(None),
        1 => proptest::sample::select(TEXTS).prop_map(Some),
    ];
    (
        Just(valid),
        vec((deviation(), any::<Index>()), 0..=4),
        second,
        any::<Index>(),
    )
        .prop_flat_map(|(mut value, deviations, second, at)| {
            for (deviation, at) in deviations {
                bend(&mut value, &deviation, at);
            }
            let names: Vec<String> = value
                .as_object()
                .into_iter()
                .flat_map(|members| members.keys().cloned())
                .collect();
            let name = (!names.is_empty()).then(|| at.get(&names).clone());
            let repeated = name.zip(second);
            restyled(value).prop_map(move |text| match &repeated {
                Some((name, second)) => with_second(&text, name, second),
                None => text,
            })
        })
}

/// The text with one more member at its end, of a name that is there already.
fn with_second(text: &str, name: &str, second: &str) -> String {
    let Some(end) = text.rfind('}') else {
        return text.to_owned();
    };
    let member = format!(",{}:{}", Value::from(name), Value::from(second));
    format!("{}{member}{}", &text[..end], &text[end..])
}

/// Bends the value at one of its places.
fn bend(root: &mut Value, deviation: &Deviation, at: Index) {
    let mut pointers = Vec::new();
    collect(root, String::new(), &mut pointers);
    let fitting: Vec<String> = pointers
        .into_iter()
        .filter(|pointer| {
            root.pointer(pointer)
                .is_some_and(|value| fits(deviation, pointer, value))
        })
        .collect();
    if fitting.is_empty() {
        return;
    }
    let pointer = at.get(&fitting).clone();
    if let Deviation::Removed = deviation {
        remove(root, &pointer);
        return;
    }
    let Some(value) = root.pointer_mut(&pointer) else {
        return;
    };
    match (deviation, &mut *value) {
        (Deviation::Foreign(name, foreign), Value::Object(members)) => {
            members.insert((*name).to_owned(), foreign.clone());
        }
        (Deviation::Text(text), value) => *value = Value::from(*text),
        (Deviation::Shouted, Value::String(text)) => *text = text.to_uppercase(),
        (Deviation::OtherContainer, Value::Array(elements)) => {
            let members = std::mem::take(elements).into_iter().enumerate();
            *value = members
                .map(|(n, element)| (format!("{n}"), element))
                .collect();
        }
        (Deviation::OtherContainer, Value::Object(members)) => {
            *value = std::mem::take(members)
                .into_iter()
                .map(|(_, v)| v)
                .collect();
        }
        (Deviation::Wrapped, Value::Array(elements)) => {
            if let Some(first) = elements.first_mut() {
                *first = serde_json::json!({"id": first.take(), "note": "wrapped"});
            }
        }
        (Deviation::Quoted, value) => *value = Value::from(value.to_string()),
        (Deviation::Null, value) => *value = Value::Null,
        (Deviation::Twice, Value::Array(elements)) => {
            elements.extend(elements.first().cloned());
        }
        _ => {}
    }
}

fn fits(deviation: &Deviation, pointer: &str, value: &Value) -> bool {
    // The root stays an object: another one is no document at all.
    let inside = !pointer.is_empty();
    match deviation {
        Deviation::Foreign(..) => value.is_object(),
        Deviation::Text(_) | Deviation::Shouted => value.is_string(),
        Deviation::OtherContainer => inside && (value.is_array() || value.is_object()),
        Deviation::Wrapped | Deviation::Twice => value.is_array(),
        Deviation::Quoted => value.is_number(),
        Deviation::Null | Deviation::Removed => inside,
    }
}

fn collect(value: &Value, pointer: String, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, crate::json::pointer::join(&pointer, name), into);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect(element, format!("{pointer}/{index}"), into);
            }
        }
        _ => {}
    }
    into.push(pointer);
}

fn remove(root: &mut Value, pointer: &str) {
    let Some((parent, token)) = pointer.rsplit_once('/') else {
        return;
    };
    let name = token.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&name);
        }
        Some(Value::Array(elements)) => {
            if let Ok(index) = name.parse::<usize>() {
                elements.remove(index);
            }
        }
        _ => {}
    }
}
