//! Properties of every document, every edit and every type.

use std::collections::BTreeMap;

use agent_checkpoint::json::{
    CorruptCode, Document, Identity, Kind, LeftOut, MAX_DEPTH, Node, Rewrite, RewriteError,
    pointer, salvage,
};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

// ---------------------------------------------------------------------------------------------------------------------
// Texts in every style

#[derive(Clone, Debug)]
struct Style {
    newline: &'static str,
    /// None for everything on one line.
    unit: Option<&'static str>,
    colon: &'static str,
    /// Between values on one line.
    comma: &'static str,
    /// Arrays without containers in them on one line.
    flat_lists: bool,
    bom: bool,
    /// Non-ASCII characters as escapes.
    ascii: bool,
    end: &'static str,
}

fn style() -> impl Strategy<Value = Style> {
    let unit = prop_oneof![
        Just(None),
        Just(Some("  ")),
        Just(Some("    ")),
        Just(Some("\t"))
    ];
    (
        prop_oneof![Just("\n"), Just("\r\n")],
        unit,
        prop_oneof![Just(": "), Just(":"), Just(" : ")],
        prop_oneof![Just(","), Just(", ")],
        any::<[bool; 4]>(),
    )
        .prop_map(
            |(newline, unit, colon, comma, [flat_lists, bom, ascii, end])| Style {
                newline,
                unit,
                colon,
                comma,
                flat_lists,
                bom,
                ascii,
                end: match (end, unit) {
                    (true, Some(_)) => newline,
                    _ => "",
                },
            },
        )
}

impl Style {
    fn render(&self, value: &Value) -> String {
        let mut out = String::new();
        if self.bom {
            out.push('\u{feff}');
        }
        self.write(&mut out, value, 0);
        out.push_str(self.end);
        out
    }

    fn string(&self, text: &str) -> String {
        let quoted = serde_json::to_string(text).unwrap();
        if !self.ascii {
            return quoted;
        }
        let mut out = String::new();
        for char in quoted.chars() {
            if char.is_ascii() {
                out.push(char);
            } else {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
        out
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) {
        let pieces: Vec<(Option<&str>, &Value)> = match value {
            Value::Array(elements) => elements.iter().map(|e| (None, e)).collect(),
            Value::Object(members) => members.iter().map(|(k, v)| (Some(k.as_str()), v)).collect(),
            Value::String(text) => return out.push_str(&self.string(text)),
            scalar => return out.push_str(&scalar.to_string()),
        };
        let (open, close) = if value.is_array() {
            ('[', ']')
        } else {
            ('{', '}')
        };
        out.push(open);
        let plain = value.is_array() && !pieces.iter().any(|(_, v)| v.is_array() || v.is_object());
        let unit = self
            .unit
            .filter(|_| !pieces.is_empty())
            .filter(|_| !plain || !self.flat_lists);
        for (position, (name, value)) in pieces.iter().enumerate() {
            if position > 0 {
                out.push_str(if unit.is_some() { "," } else { self.comma });
            }
            if let Some(unit) = unit {
                out.push_str(self.newline);
                out.push_str(&unit.repeat(depth + 1));
            }
            if let Some(name) = name {
                out.push_str(&self.string(name));
                out.push_str(self.colon);
            }
            self.write(out, value, depth + 1);
        }
        if let Some(unit) = unit {
            out.push_str(self.newline);
            out.push_str(&unit.repeat(depth));
        }
        out.push(close);
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        "[a-z/~ \"\\\\\n\u{e9}\u{1f600}]{0,6}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::from),
        ]
    })
}

fn members(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![4 => "[a-e]", 1 => "[a/~\u{e9} ]{0,3}"];
    prop::collection::vec((name, values), 0..5).prop_map(|members| members.into_iter().collect())
}

fn root() -> impl Strategy<Value = Value> {
    members(value()).prop_map(Value::from)
}

/// Every value of a document with its pointer, the root first.
fn all_nodes(document: &Document) -> Vec<Node<'_>> {
    let mut nodes = vec![document.root()];
    let mut at = 0;
    while let Some(node) = nodes.get(at).copied() {
        nodes.extend(node.members().map(|(_, member)| member));
        nodes.extend(node.elements());
        at += 1;
    }
    nodes
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

/// The same document in the same style: line ends, indents and BOM.
fn assert_style_kept(style: &Style, text: &str) {
    assert_eq!(text.starts_with('\u{feff}'), style.bom);
    match style.unit {
        None => assert!(!text.contains('\n'), "{text}"),
        Some(unit) => {
            let bare = text.replace("\r\n", "");
            assert!(style.newline == "\n" || !bare.contains('\n'), "{text:?}");
            assert!(style.newline == "\r\n" || !text.contains('\r'), "{text:?}");
            for line in text.split(style.newline).skip(1) {
                let content = line.trim_start_matches([' ', '\t']);
                let indent = &line[..line.len() - content.len()];
                assert!(indent.replace(unit, "").is_empty(), "{text}");
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Edits

proptest! {
    #![proptest_config(crate::common::tries(400))]

    #[test]
    fn setting_changes_only_the_value(
        root in root(), style in style(), pick in any::<prop::sample::Index>(), new in value(),
    ) {
        let text = style.render(&root);
        let mut document = Document::from_text(text.as_str()).unwrap();
        let nodes = all_nodes(&document);
        let node = nodes[pick.index(nodes.len())];
        let (range, at) = (node.range(), node.pointer());
        prop_assume!(!at.is_empty());
        prop_assert_eq!(document.get(&at).unwrap().range(), range.clone());
        let changed = document.set(&at, &new).unwrap();

        let mut wanted = root.clone();
        let place = wanted.pointer_mut(&at).unwrap();
        prop_assert_eq!(changed, *place != new);
        *place = new;
        let after = document.text();
        prop_assert_eq!(parsed(after), wanted);
        prop_assert_eq!(&after[..range.start], &text[..range.start]);
        prop_assert!(after.ends_with(&text[range.end..]));
        prop_assert_eq!(changed, after != text);
        assert_style_kept(&style, after);
        // Repeating the edit changes nothing.
        let again = document.get(&at).unwrap().raw().to_owned();
        let same: Value = parsed(&again);
        let mut twice = document.clone();
        prop_assert!(!twice.set(&at, &same).unwrap());
        prop_assert_eq!(twice, document);
    }

    #[test]
    fn coming_and_going_leave_the_rest(
        root in root(), style in style(), pick in any::<prop::sample::Index>(), new in value(), name in "[a-h/~]{1,2}",
        index in any::<prop::sample::Index>(),
    ) {
        let text = style.render(&root);
        let document = Document::from_text(text.as_str()).unwrap();
        let nodes = all_nodes(&document);
        let node = nodes[pick.index(nodes.len())];
        let at = node.pointer();
        let mut wanted = root.clone();
        let (place, length) = match wanted.pointer_mut(&at).unwrap() {
            Value::Object(members) => {
                let expected = !members.contains_key(&name);
                if expected {
                    members.insert(name.clone(), new.clone());
                }
                (pointer::join(&at, &name), usize::from(expected))
            }
            Value::Array(elements) => {
                let position = index.index(elements.len() + 1);
                elements.insert(position, new.clone());
                (pointer::join(&at, &position.to_string()), 1)
            }
            _ => (pointer::join(&at, &name), 0),
        };
        let mut edited = document.clone();
        match edited.insert(&place, &new) {
            Ok(changed) => {
                prop_assert!(changed && length == 1);
                prop_assert_eq!(parsed(edited.text()), wanted);
                let range = node.range();
                prop_assert_eq!(&edited.text()[..=range.start], &text[..=range.start]);
                prop_assert!(edited.text().ends_with(&text[range.end - 1..]));
                if root != json!({}) {
                    assert_style_kept(&style, edited.text());
                }
                // Existing members keep their text.
                for (name, member) in node.members() {
                    let kept = edited.get(&pointer::join(&at, &name)).unwrap();
                    prop_assert_eq!(kept.raw(), member.raw());
                }
                prop_assert!(edited.remove(&place).unwrap());
                prop_assert_eq!(parsed(edited.text()), root);
                prop_assert!(edited.same_value(&document));
            }
            Err(_) => {
                prop_assert_eq!(length, 0);
                prop_assert_eq!(edited.text(), text.as_str());
            }
        }
    }

    #[test]
    fn editing_and_restyling_commute(
        root in root(), one in style(), other in style(), new in value(), name in "[a-e]",
    ) {
        let at = pointer::join("", &name);
        let edit = |style: &Style| {
            let mut document = Document::from_text(style.render(&root)).unwrap();
            document.set(&at, &new).unwrap();
            if root != json!({}) {
                assert_style_kept(style, document.text());
            }
            document
        };
        let (one, other) = (edit(&one), edit(&other));
        prop_assert!(one.same_value(&other), "{}\n{}", one, other);
    }

    #[test]
    fn parts_go_back_where_they_were(
        root in root(), style in style(), pick in any::<prop::sample::Index>(), new in value(), name in "[a-h]",
    ) {
        let mut host = Document::from_text(style.render(&root)).unwrap();
        let nodes = all_nodes(&host);
        let objects: Vec<_> = nodes.into_iter().filter(|n| n.kind() == Kind::Object).collect();
        let at = objects[pick.index(objects.len())].pointer();
        let mut part = host.extract(&at).unwrap();
        prop_assert_eq!(part.text(), host.get(&at).unwrap().raw());
        prop_assert!(!host.clone().graft(&at, &part).unwrap());

        let mut in_place = host.clone();
        let inside = pointer::join("", &name);
        let changed = part.set(&inside, &new).unwrap();
        prop_assert_eq!(in_place.set(&format!("{at}{inside}"), &new).unwrap(), changed);
        prop_assert_eq!(host.graft(&at, &part).unwrap(), changed);
        prop_assert_eq!(host.text(), in_place.text());
    }

    #[test]
    fn a_part_fits_any_host(root in root(), one in style(), other in style(), part in root()) {
        let part = Document::from_text(one.render(&part)).unwrap();
        let mut host = Document::from_text(other.render(&root)).unwrap();
        host.graft("/grafted", &part).unwrap();
        prop_assert!(host.extract("/grafted").unwrap().same_value(&part));
        let mut without = host.clone();
        without.remove("/grafted").unwrap();
        prop_assert_eq!(parsed(without.text()), root.clone());
        if root != json!({}) {
            prop_assert_eq!(host.text().contains('\n'), other.unit.is_some());
            prop_assert!(other.newline == "\r\n" || !host.text().contains('\r'));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Damage

proptest! {
    #![proptest_config(crate::common::tries(400))]

    #[test]
    fn what_is_saved_of_a_cut_text_was_in_it(
        root in root(), style in style(), cut in any::<prop::sample::Index>(), filled in any::<bool>(),
    ) {
        let text = style.render(&root);
        let whole = Document::from_text(text.as_str()).unwrap();
        let cut = cut.index(text.len() + 1);
        let mut bytes = text.as_bytes()[..cut].to_vec();
        if filled {
            bytes.resize(text.len() + 1, 0);
        }
        let Some(salvage) = salvage(&bytes) else {
            return Ok(()); // Whether that is right is asked below.
        };
        let kept = salvage.left_out.first().map_or(bytes.len(), |left_out| left_out.offset);
        prop_assert!(salvage.left_out.len() <= 1 && kept <= cut);
        let closers = salvage.document.text().strip_prefix(&text[..kept]).unwrap();
        prop_assert!(closers.chars().all(|c| c == '}' || c == ']'), "{closers}");
        prop_assert_eq!(closers.is_empty(), whole.root().range().end <= cut);
        let lost = salvage.left_out.iter().map(|left_out| left_out.bytes).sum::<usize>();
        prop_assert_eq!(kept + lost, bytes.len());
        for node in all_nodes(&salvage.document) {
            let original = whole.get(&node.pointer()).unwrap();
            prop_assert_eq!(node.range().start, original.range().start);
            if node.range().end <= kept {
                prop_assert_eq!(node.raw(), original.raw());
            } else {
                prop_assert_eq!(node.kind(), original.kind());
            }
        }
        for LeftOut { at, .. } in &salvage.left_out {
            prop_assert!(whole.get(at).is_some(), "{at}");
        }
    }

    #[test]
    fn whatever_has_its_end_before_the_cut_is_kept(root in root(), style in style(), cut in any::<prop::sample::Index>()) {
        let text = style.render(&root);
        let whole = Document::from_text(text.as_str()).unwrap();
        let cut = cut.index(text.len() + 1);
        let kept = salvage(&text.as_bytes()[..cut]);
        for node in all_nodes(&whole) {
            // A number needs something after it.
            let end = node.range().end + usize::from(node.kind() == Kind::Number);
            let at = node.pointer();
            if end <= cut {
                let kept = kept.as_ref().and_then(|kept| kept.document.get(&at));
                prop_assert_eq!(kept.map(|kept| kept.raw()), Some(node.raw()));
            }
        }
    }

    #[test]
    fn a_document_is_all_saved(root in root(), style in style()) {
        let text = style.render(&root);
        let salvage = salvage(text.as_bytes()).unwrap();
        prop_assert_eq!(salvage.document.text(), text.as_str());
        prop_assert!(salvage.left_out.is_empty() && salvage.cause.is_none());
    }

    #[test]
    fn a_stale_tail_costs_nothing(new in root(), old in root(), style in style()) {
        let (new, old) = (style.render(&new), style.render(&old));
        prop_assume!(new.len() < old.len() && old.is_char_boundary(new.len()));
        // A text that continues with a comma reads like a document with one bracket too many, which loses nothing
        // behind it.
        prop_assume!(!old[new.len()..].trim_start().starts_with(','));
        let bytes = format!("{new}{}", &old[new.len()..]);
        let salvage = salvage(bytes.as_bytes()).unwrap();
        prop_assert_eq!(salvage.document.text().trim_end(), new.trim_end());
    }

    #[test]
    fn every_whole_member_but_the_damaged_one_is_kept(root in root(), style in style(), member in any::<prop::sample::Index>(), slip in slip()) {
        let text = style.render(&root);
        let whole = Document::from_text(text.as_str()).unwrap();
        let members: Vec<(String, Node<'_>)> = whole.root().members().map(|(name, node)| (name.into_owned(), node)).collect();
        // A quarter of the texts have two members and no finding themselves; the others prove nothing.
        if members.len() < 2 || !whole.findings().is_empty() {
            return Ok(());
        }
        let (damaged, node) = &members[member.index(members.len())];
        let mut bytes = text.as_bytes().to_vec();
        bytes.splice(node.range(), slip);
        let salvage = salvage(&bytes).unwrap();
        prop_assert!(!salvage.left_out.is_empty());
        for (name, node) in &members {
            let at = pointer::join("", name);
            let kept = salvage.document.get(&at);
            if name == damaged {
                prop_assert!(kept.is_none(), "{}", salvage.document.text());
            } else {
                prop_assert_eq!(kept.map(|kept| kept.raw()), Some(node.raw()), "{}", &at);
            }
        }
    }

    #[test]
    fn any_bytes_are_saved_or_not(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        "[{\\[\\]},:\"ab\\\\u0-9e. /*#'`\n\0\u{e9}-]{0,40}".prop_map(|text| format!("{{\"a\":0,{text}").into_bytes()),
    ]) {
        match salvage(&bytes) {
            Some(saved) => {
                let again = Document::parse(saved.document.text().as_bytes());
                prop_assert_eq!(again.as_ref(), Ok(&saved.document));
                prop_assert_eq!(saved.left_out.is_empty(), Document::parse(&bytes).is_ok());
                let mut end = 0;
                for piece in &saved.left_out {
                    prop_assert!(end <= piece.offset && piece.offset + piece.bytes <= bytes.len());
                    end = piece.offset + piece.bytes;
                }
            }
            None => prop_assert!(Document::parse(&bytes).is_err()),
        }
    }
}

/// A typical mistake in the place of a value.
fn slip() -> impl Strategy<Value = Vec<u8>> {
    let slips: [&[u8]; 9] = [
        b"NaN",
        b"-Infinity",
        b"None",
        b"\"raw \xe9\"",
        b"\"two\nlines\"",
        b"\"bad \\d\"",
        b"'single'",
        b"\"he said \"yes\" and left\"",
        b"\"a control \x07\"",
    ];
    prop::sample::select(slips.map(<[u8]>::to_vec).to_vec())
}

// ---------------------------------------------------------------------------------------------------------------------
// Types

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Plan {
    a: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Status>,
    c: Vec<Step>,
    d: BTreeMap<String, u8>,
    e: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    f: Option<Box<Plan>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<f64>,
    h: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Step {
    id: u8,
    #[serde(default)]
    a: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pair: Option<(u8, bool)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Status {
    Running,
    Done { at: u8 },
}

const IDENTITIES: &[Identity] = &[Identity {
    list: "c",
    by: &["id"],
}];

fn step() -> impl Strategy<Value = Step> {
    (0u8..5, "[ab]?", proptest::option::of(any::<(u8, bool)>())).prop_map(|(id, a, pair)| Step {
        id,
        a,
        pair,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let leaf = (
        "[a-c]?",
        proptest::option::of(prop_oneof![
            Just(Status::Running),
            any::<u8>().prop_map(|at| Status::Done { at })
        ]),
        prop::collection::vec(step(), 0..4),
        prop::collection::btree_map("[a-d]", any::<u8>(), 0..4),
        prop::collection::vec("[a-c]", 0..5),
        proptest::option::of((-80i32..80).prop_map(|n| f64::from(n) / 16.0)),
        proptest::option::of(value().prop_filter("null is none", |v| !v.is_null())),
    )
        .prop_map(|(a, b, c, d, e, g, h)| Plan {
            a,
            b,
            c,
            d,
            e,
            f: None,
            g,
            h,
        });
    leaf.prop_recursive(2, 6, 1, |inner| {
        (inner.clone(), inner).prop_map(|(mut plan, inside)| {
            plan.f = Some(Box::new(inside));
            plan
        })
    })
}

/// A JSON object near a plan: some values are what the type wants, some are anything, some members are foreign.
fn near_plan() -> impl Strategy<Value = Value> {
    let wild = prop::collection::vec(("[a-h]", value()), 0..3);
    let foreign = prop::collection::vec(("x[a-c]", value()), 0..3);
    let in_lists = prop::collection::vec(value(), 0..3);
    (plan(), wild, foreign, in_lists).prop_map(|(plan, wild, foreign, in_lists)| {
        let mut value = serde_json::to_value(plan).unwrap();
        if let Some(steps) = value["c"].as_array_mut() {
            for (position, element) in in_lists.into_iter().enumerate() {
                steps.insert((position * 2).min(steps.len()), element);
            }
            for step in steps.iter_mut().filter_map(Value::as_object_mut) {
                step.insert("foreign".into(), json!({"kept": [1.0]}));
            }
        }
        for (name, wild) in wild.into_iter().chain(foreign) {
            value[name] = wild;
        }
        value
    })
}

proptest! {
    #![proptest_config(crate::common::tries(600))]

    #[test]
    fn any_text_reads_and_says_what_it_left_out(value in near_plan(), style in style()) {
        let document = Document::from_text(style.render(&value)).unwrap();
        let reading = document.read::<Plan>().unwrap();
        for left_out in reading.left_out() {
            prop_assert!(document.get(left_out).is_some());
            let told = reading.violations.iter().any(|v| v.pointer.starts_with(left_out));
            prop_assert!(told, "{left_out}");
        }
        // Everything read is there: the typed value can be located in the document.
        for (position, step) in reading.value.c.iter().enumerate() {
            let place = reading.locate(&document, &format!("/c/{position}/id"));
            prop_assert_eq!(document.get(&place).unwrap().as_f64(), Some(f64::from(step.id)));
        }
        // Without faults it is what serde_json reads.
        if !reading.is_partial() {
            match serde_json::from_value::<Plan>(value) {
                Ok(plain) => prop_assert_eq!(reading.value, plain),
                // 2.0 is a whole number here, but not for serde_json.
                Err(error) => prop_assert!(error.to_string().contains("floating point"), "{error}"),
            }
        }
    }

    #[test]
    fn any_value_is_written_over_any_text(value in near_plan(), style in style(), wanted in plan()) {
        let text = style.render(&value);
        let document = Document::from_text(text.as_str()).unwrap();
        let reading = document.read::<Plan>().unwrap();
        let options = Rewrite::new().identities(IDENTITIES);

        let same = document.rewrite(&reading, &reading.value, &options).unwrap();
        prop_assert!(!same.changed);
        prop_assert_eq!(same.document.text(), text.as_str());

        let rewritten = document.rewrite(&reading, &wanted, &options.allow_loss(true)).unwrap();
        prop_assert_eq!(&rewritten.reading.value, &wanted);
        prop_assert_eq!(&rewritten.document.read::<Plan>().unwrap().value, &wanted);
        let after = rewritten.document.text();
        for (name, member) in document.root().members().filter(|(name, _)| name.starts_with('x')) {
            let kept = rewritten.document.root().get(&name).unwrap();
            prop_assert_eq!(kept.raw(), member.raw());
        }
        if !value.as_object().unwrap().is_empty() {
            assert_style_kept(&style, after);
        }

        match document.rewrite(&reading, &wanted, &options) {
            Ok(careful) => {
                prop_assert_eq!(careful.document.text(), after);
                prop_assert!(rewritten.lost.is_empty());
                for left_out in reading.left_out() {
                    prop_assert!(after.contains(document.get(left_out).unwrap().raw()));
                }
            }
            Err(RewriteError::Loss { pointers }) => prop_assert_eq!(pointers, rewritten.lost),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }

    #[test]
    fn one_changed_member_leaves_the_others(value in near_plan(), style in style(), new in "[a-z]{1,3}") {
        let document = Document::from_text(style.render(&value)).unwrap();
        let reading = document.read::<Plan>().unwrap();
        prop_assume!(!reading.left_out().contains(&"/a".to_owned()));
        let mut wanted = reading.value.clone();
        wanted.a = new;
        let rewritten = document.rewrite(&reading, &wanted, &Rewrite::new()).unwrap();
        for (name, member) in document.root().members().filter(|(name, _)| name != "a") {
            let kept = rewritten.document.root().get(&name).unwrap();
            prop_assert_eq!(kept.raw(), member.raw());
        }
    }

    #[test]
    fn elements_keep_what_the_type_does_not_know(
        style in style(), ids in prop::collection::btree_set(0u8..20, 1..6), shuffle in any::<u64>(), drop in any::<u8>(),
    ) {
        let element = |id: &u8| json!({"id": id, "note": format!("of {id}"), "z": 1.5});
        let steps: Vec<Value> = ids.iter().map(element).collect();
        let document = Document::from_text(style.render(&json!({"c": steps}))).unwrap();
        let reading = document.read::<Plan>().unwrap();
        let mut wanted = reading.value.clone();
        wanted.c.sort_by_key(|step| shuffle.wrapping_mul(u64::from(step.id) * 2 + 1) % 64);
        wanted.c.retain(|step| step.id % 5 != drop % 5);
        for step in &mut wanted.c {
            step.a = "changed".into();
        }
        wanted.c.push(Step { id: 99, ..Step::default() });
        let options = Rewrite::new().identities(IDENTITIES);
        let rewritten = document.rewrite(&reading, &wanted, &options).unwrap().document;
        for (position, step) in wanted.c.iter().enumerate().filter(|(_, step)| step.id != 99) {
            let note = rewritten.get(&format!("/c/{position}/note")).unwrap();
            prop_assert_eq!(note.as_str().unwrap(), format!("of {}", step.id));
        }
        let fresh = format!("/c/{}/note", wanted.c.len() - 1);
        prop_assert!(rewritten.get(&fresh).is_none());
    }

    #[test]
    fn rewriting_a_part_is_rewriting_in_place(value in near_plan(), style in style(), wanted in plan()) {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        struct Host {
            part: Plan,
        }
        let host = json!({"first": 1, "part": value, "last": [1.0]});
        let document = Document::from_text(style.render(&host)).unwrap();
        let options = Rewrite::new().identities(IDENTITIES).allow_loss(true);
        let reading = document.read::<Host>().unwrap();
        let in_place = document.rewrite(&reading, &Host { part: wanted.clone() }, &options).unwrap();

        let part = document.extract("/part").unwrap();
        let of_part = part.read::<Plan>().unwrap();
        prop_assert_eq!(of_part.left_out(), reading.left_out());
        let rewritten = part.rewrite(&of_part, &wanted, &options).unwrap();
        prop_assert_eq!(&rewritten.lost, &in_place.lost);
        let mut grafted = document.clone();
        grafted.graft("/part", &rewritten.document).unwrap();
        prop_assert_eq!(grafted.text(), in_place.document.text());
    }

    #[test]
    fn replacing_gives_the_value(old in root(), style in style(), new in root()) {
        let document = Document::from_text(style.render(&old)).unwrap();
        let replaced = document.replace_with(&new).unwrap();
        prop_assert_eq!(parsed(replaced.text()), new);
        if old != json!({}) {
            assert_style_kept(&style, replaced.text());
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Types that read in unusual ways

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Odd {
    a: Option<Untagged>,
    #[serde(default)]
    b: Vec<Tagged>,
    #[serde(flatten)]
    inner: OddInner,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OddInner {
    #[serde(default, alias = "h")]
    c: BTreeMap<i8, (u8, char)>,
    #[serde(default)]
    d: Option<[i128; 2]>,
    #[serde(default)]
    e: Vec<Adjacent>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Unit,
    Flag(bool),
    List(Vec<u8>),
    Struct { a: Option<f32>, b: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "a")]
enum Tagged {
    #[serde(rename = "a")]
    One { b: u8 },
    #[serde(rename = "b", alias = "")]
    Two(BTreeMap<String, u8>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "a", content = "b", deny_unknown_fields)]
enum Adjacent {
    #[serde(rename = "a")]
    One,
    #[serde(rename = "b")]
    Two(Box<Status>),
}

proptest! {
    #![proptest_config(crate::common::tries(600))]

    #[test]
    fn unusual_types_are_read_or_refused(value in near_plan(), style in style(), wild in root()) {
        for value in [value, wild] {
            let document = Document::from_text(style.render(&value)).unwrap();
            let findings = document.findings().len();
            match document.read::<Odd>() {
                Ok(reading) => {
                    prop_assert_eq!(reading.is_partial(), reading.violations.len() > findings);
                    let same = document.rewrite(&reading, &reading.value, &Rewrite::new()).unwrap();
                    prop_assert!(!same.changed);
                }
                Err(unreadable) => prop_assert!(!unreadable.violations.is_empty()),
            }
            if let Ok(reading) = document.read::<BTreeMap<String, Tagged>>() {
                prop_assert_eq!(reading.is_partial(), reading.violations.len() > findings);
            }
            prop_assert!(document.read::<Vec<Value>>().is_err());
            let _ = document.read::<Untagged>();
            let _ = document.read::<Tagged>();
            let _ = document.read::<Adjacent>();
            let _ = document.read::<Status>();
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Texts that are no JSON

/// Whether serde_json accepts the text. It accepts lone surrogates and numbers of any size in skipped values.
fn serde_json_takes(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn assert_agreement(bytes: &[u8]) {
    let ours = Document::parse(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        let code = ours.unwrap_err().code;
        assert_eq!(code, CorruptCode::NotUtf8);
        return;
    };
    let theirs = serde_json_takes(text.strip_prefix('\u{feff}').unwrap_or(text));
    match &ours {
        Ok(document) => {
            assert!(theirs, "{text:?}");
            assert_eq!(document.text(), text);
            // If serde_json reads values from it, too, they are the same.
            let stripped = text.trim_start_matches('\u{feff}');
            if let Ok(value) = serde_json::from_str::<Value>(stripped) {
                let reading = document.read::<Value>().unwrap();
                // With `arbitrary_precision` serde_json also makes numbers that no type holds.
                if !reading.is_partial() {
                    assert_same(&value, &reading.value);
                }
            }
        }
        Err(corrupt) => {
            let excused = match corrupt.code {
                CorruptCode::TooDeep => depth(text) > MAX_DEPTH,
                CorruptCode::NotAnObject => true,
                _ => false,
            };
            assert_eq!(theirs, excused, "{text:?}: {corrupt}");
            let before = &text[..corrupt.offset];
            let line = before.matches('\n').count() + 1;
            assert_eq!(corrupt.line, line, "{text:?}: {corrupt}");
            if corrupt.code == CorruptCode::Truncated {
                assert_eq!(corrupt.offset, text.len());
            }
        }
    }
}

/// Asserts equality except for the last digit of numbers, which serde_json does not always get right.
fn assert_same(a: &Value, b: &Value) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| assert_same(a, b));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().for_each(|(name, a)| assert_same(a, &b[name]));
        }
        (Value::Number(a), Value::Number(b)) if !(a.is_u64() && b.is_u64()) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= a.abs() * 1e-15, "{a} {b}");
        }
        (a, b) => assert_eq!(a, b),
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Put(prop::sample::Index, u8),
    Insert(prop::sample::Index, &'static str),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, prop::sample::Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    const BITS: [&str; 32] = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "0", "-", ".", "e",
        "E+", "1e400", "null", "tru", "false", " ", "\n", "\r", "\t", "\0", "\u{1}", "\u{7f}",
        "\u{e9}", "\u{feff}", "/", "'", "01",
    ];
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Put(at, byte)),
        (at(), prop::sample::select(&BITS[..])).prop_map(|(at, bit)| Mutation::Insert(at, bit)),
        at().prop_map(Mutation::Cut),
        (at(), 1usize..4).prop_map(|(at, count)| Mutation::Remove(at, count)),
        (at(), at()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    match mutation {
        Mutation::Put(at, byte) => bytes[at.index(length)] = *byte,
        Mutation::Insert(at, bit) => {
            let at = at.index(length + 1);
            bytes.splice(at..at, bit.bytes());
        }
        Mutation::Cut(at) => bytes.truncate(at.index(length + 1)),
        Mutation::Remove(at, count) => {
            let at = at.index(length);
            bytes.drain(at..(at + count).min(length));
        }
        Mutation::Repeat(from, to) => {
            let (a, b) = (from.index(length), to.index(length));
            let piece = bytes[a.min(b)..a.max(b)].to_vec();
            bytes.splice(b..b, piece);
        }
    }
}

proptest! {
    #![proptest_config(crate::common::tries(8000))]

    #[test]
    fn what_is_json_is_agreed_upon(
        root in root(), style in style(), mutations in prop::collection::vec(mutation(), 0..4),
    ) {
        let mut bytes = style.render(&root).into_bytes();
        for mutation in &mutations {
            mutate(&mut bytes, mutation);
        }
        assert_agreement(&bytes);
    }
}

#[test]
fn deep_texts_are_agreed_upon() {
    for levels in [126, 127, 128, 129, 5000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!(
                "{{\"a\":{}1{}}}",
                open.repeat(levels - 1),
                close.repeat(levels - 1)
            );
            assert_agreement(text.as_bytes());
            let document = Document::from_text(text);
            assert_eq!(document.is_ok(), levels <= MAX_DEPTH);
            let Ok(mut document) = document else { continue };
            // No walk over a document overflows the stack.
            let reading = document.read::<Value>().unwrap();
            let options = Rewrite::new();
            let mut wanted = reading.value.clone();
            assert!(
                !document
                    .rewrite(&reading, &wanted, &options)
                    .unwrap()
                    .changed
            );
            wanted["b"] = wanted["a"].clone();
            let rewritten = document.rewrite(&reading, &wanted, &options).unwrap();
            assert_eq!(rewritten.reading.value, wanted);
            assert!(document.set("/c", &wanted).is_err() || levels < MAX_DEPTH);
        }
    }
}
