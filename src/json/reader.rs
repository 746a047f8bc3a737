//! Reads a document as a type. Values that cannot be read are skipped and reported, never made up.

use serde::de::DeserializeOwned;

use super::de::View;
use super::document::Document;
use super::failure::Failure;
use super::pointer;
use super::tree::{Index, Kind, ROOT, Tree};
use super::violation::{Code, Violation};

/// The most violations of single values. After them, each further one skips a whole member of the root; after as many
/// of those the document is refused. This bounds the time for any document and type.
const MANY: usize = 64;

/// The most values visited in total while looking for values at fault, which bounds the time.
const SEARCH: usize = 4_000_000;

/// A value read from a document, with the violations of the document.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reading<T> {
    /// The value, without the parts that could not be read.
    pub value: T,
    /// The violations: first the [findings](Document::findings) of the document, then the values that could not be
    /// read.
    pub violations: Vec<Violation>,
    left_out: Vec<String>,
    /// The values that were skipped, in the order of the text.
    pub(super) nodes: Vec<Index>,
    /// The length of the text that was read, in bytes, to recognise it.
    pub(super) length: usize,
}

impl<T> Reading<T> {
    /// The pointers, from the root of the file, of the values that could not be read and were skipped.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Whether any value was skipped.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// Converts a pointer into the typed value to a pointer from the root of the file.
    ///
    /// `document` must be the one that was read, and `typed_pointer` starts at its root. The two differ where elements
    /// of an array were skipped, since the indexes of later elements shift. A pointer to a value that the document
    /// lacks is kept.
    ///
    /// ```
    /// use agent_checkpoint::json::Document;
    /// use std::collections::BTreeMap;
    ///
    /// let document = Document::from_text(r#"{"steps": ["a", 1, "b"]}"#)?;
    /// let reading = document.read::<BTreeMap<String, Vec<String>>>()?;
    /// assert_eq!(reading.value["steps"], ["a", "b"]);
    /// assert_eq!(reading.left_out(), ["/steps/1"]);
    /// assert_eq!(reading.locate(&document, "/steps/1"), "/steps/2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn locate(&self, document: &Document, typed_pointer: &str) -> String {
        let tree = &document.tree;
        let mut located = document.at().to_owned();
        let mut here = Some(ROOT);
        for token in pointer::split(typed_pointer) {
            let child = here.and_then(|at| self.typed_step(tree, at, &token));
            match (here, child) {
                (Some(at), Some((position, _))) if tree.kind(at) == Kind::Array => {
                    pointer::push(&mut located, &position.to_string());
                }
                _ => pointer::push(&mut located, &token),
            }
            here = child.map(|(_, index)| index);
        }
        located
    }

    /// The child that a token of a typed pointer names, with its position in the text.
    fn typed_step(&self, tree: &Tree, at: Index, token: &str) -> Option<(usize, Index)> {
        match tree.kind(at) {
            Kind::Object => Some((0, tree.member(at, token)?)),
            Kind::Array => {
                let mut read = tree
                    .children(at)
                    .enumerate()
                    .filter(|(_, child)| !self.is_left_out(*child));
                read.nth(pointer::index(token)?)
            }
            _ => None,
        }
    }

    /// Whether this can be a reading of the document.
    pub(super) fn is_of(&self, document: &Document) -> bool {
        let count = document.tree.spans.len();
        let last = self.nodes.last().copied().unwrap_or_default();
        self.length == document.tree.text.len() && (last as usize) < count
    }

    fn is_left_out(&self, index: Index) -> bool {
        self.nodes.binary_search(&index).is_ok()
    }
}

/// A document that cannot be read as the type, even with all values at fault skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document cannot be read: {}", summary(violations))]
#[non_exhaustive]
pub struct Unreadable {
    /// The violations; the last one concerns the value that cannot be skipped.
    pub violations: Vec<Violation>,
}

fn summary(violations: &[Violation]) -> String {
    match violations.last() {
        Some(last) => last.to_string(),
        None => "no reason given".to_owned(),
    }
}

impl Document {
    /// Reads the document as a value of a type.
    ///
    /// A value that does not fit its place in the type is skipped, with a violation at its pointer, and the rest is
    /// read. Only objects are read as structs, never arrays by position. Unknown members are ignored.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when the root itself does not fit, for example because it lacks a member without a default: no
    /// value is made up. Also when more than 64 members of the root are skipped after as many violations.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Reading<T>, Unreadable> {
        let mut reader = Reader::new(self);
        loop {
            match reader.attempt::<T>() {
                Ok(value) => return Ok(reader.finish(value)),
                Err(failure) => {
                    if !reader.leave_out::<T>(failure) {
                        return Err(Unreadable {
                            violations: reader.violations,
                        });
                    }
                }
            }
        }
    }
}

struct Reader<'d> {
    document: &'d Document,
    hidden: Vec<bool>,
    violations: Vec<Violation>,
    /// The number of violations of the document itself, which come first.
    findings: usize,
    /// The number of members of the root skipped because there were too many violations.
    gave_up: usize,
    /// How often the document may still be read while looking for the value at fault.
    searches: usize,
}

impl<'d> Reader<'d> {
    fn new(document: &'d Document) -> Reader<'d> {
        let violations = document.findings();
        let count = document.tree.spans.len();
        Reader {
            document,
            hidden: vec![false; count],
            findings: violations.len(),
            violations,
            gave_up: 0,
            searches: SEARCH / count.max(1),
        }
    }

    fn attempt<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let view = View {
            tree: &self.document.tree,
            hidden: &self.hidden,
        };
        let root = view.at(ROOT);
        // Types that read through a buffer may fail after the whole root was read.
        root.placed(T::deserialize(root))
    }

    fn finish<T>(self, value: T) -> Reading<T> {
        let hidden = self
            .hidden
            .iter()
            .enumerate()
            .filter(|(_, hidden)| **hidden);
        let nodes: Vec<Index> = hidden.map(|(index, _)| index as Index).collect();
        let left_out = nodes.iter().map(|&index| self.document.pointer_to(index));
        Reading {
            value,
            violations: self.violations,
            left_out: left_out.collect(),
            nodes,
            length: self.document.tree.text.len(),
        }
    }

    /// Records the failure and skips the value at fault; returns false if that is the root.
    fn leave_out<T: DeserializeOwned>(&mut self, failure: Failure) -> bool {
        let tree = &self.document.tree;
        let at = self.culprit::<T>(&failure);
        if self.gave_up >= MANY {
            self.report(
                ROOT,
                Code::TOO_MANY,
                "too many members of the root cannot be read".into(),
            );
            return false;
        }
        let root = at == ROOT;
        if !root && self.violations.len() - self.findings >= MANY {
            let top = tree.children(ROOT).find(|&top| tree.contains(top, at));
            let top = top.unwrap_or(at);
            let message =
                "so many values in the document cannot be read that all of this was left out";
            self.report(top, Code::TOO_MANY, message.to_owned());
            self.hide(top);
            self.gave_up += 1;
            return true;
        }
        if !failure.follows {
            match failure.missing {
                Some(name) if at == failure.at => {
                    let pointer = pointer::join(&self.document.pointer_to(at), name);
                    let violation = Violation::new(pointer, failure.code, failure.message);
                    self.violations.push(violation);
                }
                _ => self.report(at, failure.code, failure.message),
            }
        }
        if !root {
            self.hide(at);
        }
        !root
    }

    fn report(&mut self, at: Index, code: Code, message: String) {
        let pointer = self.document.pointer_to(at);
        self.violations.push(Violation::new(pointer, code, message));
    }

    /// Skips a value; values inside it need no flag of their own then.
    fn hide(&mut self, index: Index) {
        let end = self.document.tree.span(index).next as usize;
        self.hidden[index as usize..end].fill(false);
        self.hidden[index as usize] = true;
    }

    /// The value at fault. Types that read their members through a buffer (`flatten`, `untagged`, tagged enums) blame
    /// the container; then it is the member without which the failure disappears.
    fn culprit<T: DeserializeOwned>(&mut self, failure: &Failure) -> Index {
        let tree = &self.document.tree;
        let mut at = failure.at;
        loop {
            let kind = tree.kind(at);
            let itself = at == failure.at && failure.found == Some(kind) && at != ROOT;
            if !kind.is_container() || itself || failure.missing.is_some() || failure.follows {
                return at;
            }
            match self.blamed_child::<T>(at, failure) {
                Some(child) => at = child,
                None => return at,
            }
        }
    }

    fn blamed_child<T: DeserializeOwned>(&mut self, at: Index, failure: &Failure) -> Option<Index> {
        let children = self.document.tree.effective(at);
        let visible: Vec<Index> = children.filter(|&c| !self.hidden[c as usize]).collect();
        let mut required = Vec::new();
        for child in visible {
            match self.without::<T>(child, failure) {
                Without::Better => return Some(child),
                Without::Required => required.push(child),
                Without::Same => {}
            }
        }
        // With several, one may be a tag without which the others are not read at all.
        match required[..] {
            [child] => Some(child),
            _ => None,
        }
    }

    fn without<T: DeserializeOwned>(&mut self, child: Index, failure: &Failure) -> Without {
        if self.searches == 0 {
            return Without::Same;
        }
        self.searches -= 1;
        self.hidden[child as usize] = true;
        let attempt = self.attempt::<T>();
        self.hidden[child as usize] = false;
        match attempt {
            Ok(_) => Without::Better,
            Err(other) if other.follows && other.missing.is_some() => Without::Required,
            Err(other) if other.follows => Without::Same,
            Err(other) if other.at != failure.at => Without::Better,
            Err(other) if other.missing.is_some() || other.message == failure.message => {
                Without::Same
            }
            Err(_) => Without::Better,
        }
    }
}

/// The effect of skipping a value while looking for the one at fault.
enum Without {
    /// The failure disappears.
    Better,
    /// The failure disappears, but the type requires the value.
    Required,
    /// The failure remains.
    Same,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Plan {
        status: Option<Status>,
        count: Option<u8>,
        long: Option<i128>,
        ratio: Option<f32>,
        pair: Option<(u8, u8)>,
        steps: Vec<Step>,
        by_number: BTreeMap<u32, bool>,
        shape: Option<Shape>,
        any: Option<serde_json::Value>,
        letter: Option<char>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Step {
        name: String,
        #[serde(default)]
        tags: Vec<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Status {
        Running,
        Done,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    enum Shape {
        Dot,
        Circle(u8),
        Line(u8, u8),
        Box { side: u8 },
    }

    fn read(text: &str) -> (Plan, Vec<(String, Code)>, Vec<String>) {
        let reading = Document::from_text(text).unwrap().read::<Plan>().unwrap();
        let found = reading.violations.iter();
        (
            reading.value,
            found.map(|v| (v.pointer.clone(), v.code.clone())).collect(),
            reading.left_out,
        )
    }

    fn one(text: &str, pointer: &str, code: Code) -> Plan {
        let (plan, found, _) = read(text);
        assert_eq!(found, [(pointer.to_owned(), code)], "{text}");
        plan
    }

    #[test]
    fn each_fault_has_its_code() {
        one(r#"{"status": 1}"#, "/status", Code::WRONG_TYPE);
        one(r#"{"status": "DONE"}"#, "/status", Code::UNKNOWN_VALUE);
        one(r#"{"count": 300}"#, "/count", Code::OUT_OF_RANGE);
        one(r#"{"count": -1}"#, "/count", Code::OUT_OF_RANGE);
        one(
            r#"{"count": 99999999999999999999999}"#,
            "/count",
            Code::OUT_OF_RANGE,
        );
        one(r#"{"count": 1.5}"#, "/count", Code::WRONG_TYPE);
        one(r#"{"ratio": 1e39}"#, "/ratio", Code::OUT_OF_RANGE);
        one(r#"{"any": [1e400, 1]}"#, "/any/0", Code::OUT_OF_RANGE);
        one(r#"{"pair": [1, 2, 3]}"#, "/pair", Code::UNREADABLE);
        one(
            r#"{"steps": [{"tags": []}]}"#,
            "/steps/0/name",
            Code::MISSING,
        );
        one(r#"{"steps": [["a", []]]}"#, "/steps/0", Code::WRONG_TYPE);
        one(
            r#"{"steps": {"0": {"name": "a"}}}"#,
            "/steps",
            Code::WRONG_TYPE,
        );
        one(
            r#"{"by_number": {"x": true, "7": true}}"#,
            "/by_number/x",
            Code::WRONG_TYPE,
        );
        one(r#"{"letter": "ab"}"#, "/letter", Code::UNKNOWN_VALUE);
        one(
            r#"{"shape": {"Circle": "x"}}"#,
            "/shape/Circle",
            Code::WRONG_TYPE,
        );
        one(r#"{"shape": {"Box": [1]}}"#, "/shape/Box", Code::WRONG_TYPE);
        one(r#"{"shape": {"Star": 1}}"#, "/shape", Code::UNKNOWN_VALUE);
        one(
            r#"{"shape": {"Line": [1, "2"]}}"#,
            "/shape/Line/1",
            Code::WRONG_TYPE,
        );
    }

    #[test]
    fn the_rest_is_read() {
        let text = r#"{"steps": [{"name": "a", "tags": ["x", 1, "y"]}, 5, {"name": null}, {"name": "b"}],
                       "by_number": {"1": true, "2": 0}, "letter": "é"}"#;
        let (plan, found, left_out) = read(text);
        let names: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(plan.steps[0].tags, ["x", "y"]);
        assert_eq!(plan.by_number, BTreeMap::from([(1, true)]));
        assert_eq!(plan.letter, Some('é'));
        let pointers: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/steps/0/tags/1",
                "/steps/1",
                "/steps/2/name",
                "/by_number/2"
            ]
        );
        // The step without a readable name is skipped as a whole; its violation is at the name.
        assert_eq!(
            left_out,
            ["/steps/0/tags/1", "/steps/1", "/steps/2", "/by_number/2"]
        );
    }

    #[test]
    fn numbers_are_exact() {
        let (plan, found, _) = read(
            r#"{"long": -170141183460469231731687303715884105728, "ratio": 0.1,
            "any": [18446744073709551615, -0, 12345678901234567890123]}"#,
        );
        assert_eq!(found, []);
        assert_eq!(plan.long, Some(i128::MIN));
        assert_eq!(plan.ratio, Some(0.1));
        let any = plan.any.unwrap();
        assert_eq!(any[0].as_u64(), Some(u64::MAX));
        assert_eq!(any[1].as_f64().map(f64::is_sign_negative), Some(true));
        assert_eq!(any[2].as_f64(), Some(12345678901234567890123.0));
    }

    #[test]
    fn enums_come_from_strings_and_objects() {
        for (text, shape) in [
            (r#""Dot""#, Shape::Dot),
            (r#"{"Dot": null}"#, Shape::Dot),
            (r#"{"Circle": 3}"#, Shape::Circle(3)),
            (r#"{"Line": [1, 2]}"#, Shape::Line(1, 2)),
            (r#"{"Box": {"side": 4}}"#, Shape::Box { side: 4 }),
        ] {
            let (plan, found, _) = read(&format!("{{\"shape\": {text}}}"));
            assert_eq!((plan.shape, found), (Some(shape), vec![]));
        }
    }

    #[test]
    fn lone_surrogates_matter_only_where_they_are_read() {
        one(
            r#"{"steps": [{"name": "a", "tags": ["\ud800"]}], "\udc00": "\ud800"}"#,
            "/steps/0/tags/0",
            Code::LONE_SURROGATE,
        );
        one(
            r#"{"any": {"\ud800": 1}}"#,
            r"/any/\ud800",
            Code::LONE_SURROGATE,
        );
        one(r#"{"letter": "\ud800"}"#, "/letter", Code::LONE_SURROGATE);
        one(r#"{"status": "\ud800"}"#, "/status", Code::LONE_SURROGATE);
    }

    #[test]
    fn nothing_is_made_up() {
        let document = Document::from_text(r#"{"tags": ["x", 1]}"#).unwrap();
        let unreadable = document.read::<Step>().unwrap_err();
        let pointers: Vec<_> = unreadable
            .violations
            .iter()
            .map(|v| v.pointer.as_str())
            .collect();
        assert_eq!(pointers, ["/tags/1", "/name"]);
        let document = Document::from_text(r#"{"name": 1}"#).unwrap();
        let unreadable = document.read::<Step>().unwrap_err();
        assert_eq!(unreadable.violations.len(), 1, "{unreadable}");
        assert!(document.read::<Vec<u8>>().is_err());
    }

    #[test]
    fn many_faults_end_soon() {
        let steps = ["1"; 5000].join(",");
        let (plan, found, left_out) = read(&format!("{{\"count\": 1, \"steps\": [{steps}]}}"));
        assert_eq!(plan.count, Some(1));
        assert_eq!(found.len(), MANY + 1);
        assert_eq!(found[MANY], ("/steps".to_owned(), Code::TOO_MANY));
        assert_eq!(left_out, ["/steps"]);
        let members: Vec<String> = (0..5000).map(|i| format!("\"k{i}\":\"x\"")).collect();
        let document = Document::from_text(format!("{{{}}}", members.join(","))).unwrap();
        let unreadable = document.read::<BTreeMap<String, u8>>().unwrap_err();
        assert_eq!(unreadable.violations.len(), 2 * MANY + 1);
    }

    #[test]
    fn buffered_members_are_blamed_on_their_own() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Outer {
            a: u8,
            #[serde(flatten)]
            inner: Inner,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Inner {
            #[serde(default)]
            list: Vec<Either>,
            #[serde(default)]
            n: u8,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u8),
            Named {
                name: String,
                #[serde(default)]
                tags: Vec<String>,
            },
        }
        let text =
            r#"{"a": 1, "list": [1, {"name": "x", "tags": ["a", 1]}], "n": "x", "foreign": []}"#;
        let reading = Document::from_text(text).unwrap().read::<Outer>().unwrap();
        assert_eq!(reading.left_out(), ["/list/1/tags/1", "/n"]);
        assert_eq!(reading.violations.len(), 2);
        assert_eq!(reading.value.inner.list.len(), 2);
    }

    #[test]
    fn required_members_are_blamed_only_when_they_are_at_fault() {
        #[derive(Debug, Deserialize)]
        struct Outer {
            #[serde(flatten)]
            _inner: Inner,
        }
        #[derive(Debug, Deserialize)]
        struct Inner {
            #[serde(rename = "x")]
            _x: u8,
            #[serde(rename = "y")]
            _y: u8,
        }
        #[derive(Debug, Deserialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            Inner(#[allow(dead_code)] Inner),
        }
        let pointers = |unreadable: Unreadable| -> Vec<String> {
            let violations = unreadable.violations.into_iter();
            violations.map(|violation| violation.pointer).collect()
        };
        let document = Document::from_text(r#"{"x": 1, "y": "bad", "z": 2}"#).unwrap();
        let unreadable = document.read::<Outer>().unwrap_err();
        assert_eq!(pointers(unreadable), ["/y"]);
        let document = Document::from_text(r#"{"kind": "Inner", "x": 1, "y": "bad"}"#).unwrap();
        let unreadable = document.read::<Tagged>().unwrap_err();
        assert_eq!(pointers(unreadable), [""]);
    }

    #[test]
    fn pointers_lead_back_to_the_file() {
        let text = r#"{"x": {"steps": [0, {"name": "a", "tags": [1, "t"]}]}}"#;
        let part = Document::from_text(text).unwrap().extract("/x").unwrap();
        let reading = part.read::<Plan>().unwrap();
        assert_eq!(reading.left_out(), ["/x/steps/0", "/x/steps/1/tags/0"]);
        assert_eq!(
            reading.locate(&part, "/steps/0/tags/0"),
            "/x/steps/1/tags/1"
        );
        assert_eq!(
            reading.locate(&part, "/steps/0/none/0"),
            "/x/steps/1/none/0"
        );
        assert_eq!(reading.locate(&part, "/error"), "/x/error");
        assert_eq!(reading.locate(&part, ""), "/x");
    }

    #[test]
    fn findings_come_first() {
        let (plan, found, _) = read("\u{feff}{\"count\": \"x\", \"count\": 2, \"status\": 1}");
        assert_eq!(plan.count, Some(2));
        let codes: Vec<_> = found.into_iter().map(|(_, code)| code).collect();
        assert_eq!(
            codes,
            [Code::BYTE_ORDER_MARK, Code::DUPLICATE_KEY, Code::WRONG_TYPE]
        );
    }
}
