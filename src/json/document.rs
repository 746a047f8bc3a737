//! A JSON document: a text, and the place of every value in it.

use std::fmt;

use super::corrupt::Corrupt;
use super::layout::Style;
use super::pointer;
use super::tree::{Index, Kind, ROOT, Tree};
use super::violation::{Code, Violation};

/// The text of a JSON object, byte for byte as it was read, with the place of every value in it.
///
/// Duplicate names (the last one counts) and a byte order mark are accepted, since real files have them, and reported
/// by [`Document::findings`]. Numbers are kept as text, so no precision is lost. Two documents are equal when their
/// texts are.
///
/// ```
/// use agent_checkpoint::json::Document;
///
/// let mut document = Document::from_text("{\n\t\"status\": \"running\",\n\t\"note\": 1.50\n}")?;
/// document.set("/status", "done")?;
/// assert_eq!(document.text(), "{\n\t\"status\": \"done\",\n\t\"note\": 1.50\n}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) tree: Tree,
    /// The place in the file that the document was extracted from, if it is part of a file.
    pub(super) host: Option<Box<Host>>,
}

/// The most findings listed for one document.
const MAX_FINDINGS: usize = 64;

/// The place in a file that a part was extracted from.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// The pointer from the root of the file.
    pub(super) at: String,
    /// The indent of the line on which the part begins.
    pub(super) indent: String,
    /// The style of the file.
    pub(super) style: Style,
}

impl Document {
    /// Parses the bytes of a file.
    ///
    /// # Errors
    ///
    /// [`Corrupt`], with the place, when the bytes are not one JSON object in UTF-8, or nest deeper than
    /// [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse(bytes: &[u8]) -> Result<Document, Corrupt> {
        Tree::from_bytes(bytes).map(Document::whole)
    }

    /// Parses a text, like [`Document::parse`]. A `String` is not copied.
    ///
    /// # Errors
    ///
    /// The same as [`Document::parse`].
    pub fn from_text(text: impl Into<String>) -> Result<Document, Corrupt> {
        Tree::from_text(text.into()).map(Document::whole)
    }

    pub(super) fn whole(tree: Tree) -> Document {
        Document { tree, host: None }
    }

    /// The whole text, as it is written to the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.tree.text
    }

    /// The whole text, without copying it.
    #[must_use]
    pub fn into_text(self) -> String {
        self.tree.text
    }

    /// The pointer from the root of the file to the root of this document: `""` unless the document was
    /// [extracted](Document::extract).
    #[must_use]
    pub fn at(&self) -> &str {
        self.host.as_ref().map_or("", |host| &host.at)
    }

    /// Whether both documents are the same JSON value, whatever their layout and the order of members. Numbers are
    /// compared by their text.
    #[must_use]
    pub fn same_value(&self, other: &Document) -> bool {
        self.tree.same(ROOT, &other.tree, ROOT)
    }

    /// Violations of the text itself, independent of any type: a byte order mark, and duplicate names (one violation
    /// for each pointer, in the order of the text).
    #[must_use]
    pub fn findings(&self) -> Vec<Violation> {
        let mut findings = Vec::new();
        if self.tree.text.starts_with('\u{feff}') {
            findings.push(Violation::new(
                self.at(),
                Code::BYTE_ORDER_MARK,
                "the text begins with a byte order mark, which JSON files must not have",
            ));
        }
        if self.tree.has_duplicates {
            let mut at = self.at().to_owned();
            self.find_duplicates(ROOT, &mut at, &mut findings);
        }
        findings
    }

    /// Visits only values that count: a value inside a shadowed one has no pointer.
    fn find_duplicates(&self, index: Index, at: &mut String, findings: &mut Vec<Violation>) {
        if findings.len() >= MAX_FINDINGS {
            return;
        }
        let length = at.len();
        let in_array = self.tree.kind(index) == Kind::Array;
        let mut reported = std::collections::HashSet::new();
        for (position, child) in self.tree.children(index).enumerate() {
            if in_array {
                pointer::push(at, &position.to_string());
            } else {
                pointer::push(at, &self.tree.name(child));
            }
            if self.tree.span(child).is_shadowed() {
                if reported.insert(self.tree.name(child)) {
                    let message = "the name is given more than once; the last one counts";
                    findings.push(Violation::new(at.as_str(), Code::DUPLICATE_KEY, message));
                    if findings.len() == MAX_FINDINGS {
                        // Pointers can be long, and thousands of them would fill the memory.
                        let message = "more names are given more than once; they are not listed";
                        findings.push(Violation::new(self.at(), Code::TOO_MANY, message));
                        return;
                    }
                }
            } else if self.tree.kind(child).is_container() {
                self.find_duplicates(child, at, findings);
            }
            at.truncate(length);
        }
    }

    /// The style in which new text is laid out.
    pub(super) fn style(&self) -> Style {
        match &self.host {
            Some(host) => host.style.clone(),
            None => Style::of(&self.tree),
        }
    }

    /// The pointer of a value, from the root of the file.
    pub(super) fn pointer_to(&self, index: Index) -> String {
        format!("{}{}", self.at(), self.tree.pointer(index))
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        self.tree.text == other.tree.text
    }
}

impl Eq for Document {}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tree.text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CorruptCode;
    use super::*;

    fn fault(text: &[u8]) -> (CorruptCode, usize, usize, usize) {
        let corrupt = Document::parse(text).unwrap_err();
        (corrupt.code, corrupt.line, corrupt.column, corrupt.offset)
    }

    #[test]
    fn documents_cross_threads() {
        fn crosses<T: Send + Sync>() {}
        crosses::<Document>();
    }

    #[test]
    fn each_corruption_has_its_code_and_place() {
        use CorruptCode::*;
        assert_eq!(fault(b""), (Empty, 1, 1, 0));
        assert_eq!(fault(b" \n"), (Empty, 2, 1, 2));
        assert_eq!(fault("\u{feff}".as_bytes()), (Empty, 1, 1, 3));
        assert_eq!(fault(b"\0\0\0"), (NulBytes, 1, 1, 0));
        assert_eq!(fault(b"{\"a\": \"\xff\"}"), (NotUtf8, 1, 8, 7));
        assert_eq!(fault(b"{\"a\": \"\xc3"), (NotUtf8, 1, 8, 7));
        assert_eq!(fault("{\"é\": tru }".as_bytes()), (Syntax, 1, 10, 10));
        assert_eq!(fault("\u{feff}{]".as_bytes()), (Syntax, 1, 2, 4));
        assert_eq!(fault(b"{\n \"a\": 1,\n}"), (Syntax, 3, 1, 11));
        assert_eq!(fault(b"{}\n{}"), (TrailingBytes, 2, 1, 3));
        assert_eq!(fault(b"{}\0\0"), (TrailingBytes, 1, 3, 2));
        assert_eq!(fault(b"{\"a\":1\0\0"), (Syntax, 1, 7, 6));
        assert_eq!(fault(b" [1]"), (NotAnObject, 1, 2, 1));
        assert_eq!(fault(b"{\"a\":\"\n\"}"), (Syntax, 1, 7, 6));
        let good = Document::parse(b"{\"a\":1} x").unwrap_err();
        assert!(good.message.contains("bytes 0..7"), "{}", good.message);
    }

    #[test]
    fn every_cut_of_a_document_is_truncated() {
        let text = r#"{"a": [true, false, null, -1.5e+3, "\u00e9\ud83d\ude00\n"], "b": {"c": 0}}"#;
        for end in 1..text.len() {
            let (code, _, _, offset) = fault(&text.as_bytes()[..end]);
            assert_eq!(
                (code, offset),
                (CorruptCode::Truncated, end),
                "{}",
                &text[..end]
            );
        }
    }

    #[test]
    fn control_characters_are_no_text() {
        for byte in 0..=0x7f_u8 {
            // Near the end and far from it, since strings are scanned in steps of eight bytes.
            for tail in ["", "seven77", "eight888", "and thirteen"] {
                let text = format!("{{\"a\":\"{}{tail}\"}}", char::from(byte));
                let taken = Document::from_text(text).is_ok();
                assert_eq!(
                    taken,
                    byte >= b' ' && byte != b'"' && byte != b'\\',
                    "{byte}"
                );
            }
        }
    }

    #[test]
    fn the_depth_limit_counts_containers() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n - 1), "]".repeat(n - 1));
        assert!(Document::from_text(nested(128)).is_ok());
        assert_eq!(fault(nested(129).as_bytes()).0, CorruptCode::TooDeep);
        assert_eq!(
            fault("[".repeat(1_000_000).as_bytes()).0,
            CorruptCode::TooDeep
        );
    }

    #[test]
    fn odd_but_harmless_texts_are_taken() {
        let text = "\u{feff}\n {\"a\\u0062\": \"\\ud800\", \"n\": 1e400} \r\n";
        let document = Document::from_text(text).unwrap();
        assert_eq!(document.text(), text);
        assert_eq!(document.get("/ab").unwrap().as_str(), None);
        assert_eq!(document.get("/n").unwrap().raw(), "1e400");
        assert_eq!(document.findings().len(), 1);
    }

    #[test]
    fn names_given_twice_are_found_once() {
        let text = r#"{"a":1,"x":[{"b":{"c":1,"c":2},"b":0,"\u0062":1}],"a":2,"a":3}"#;
        let document = Document::from_text(text).unwrap();
        let found: Vec<_> = document.findings().into_iter().map(|f| f.pointer).collect();
        assert_eq!(found, ["/a", "/x/0/b"]);
        assert_eq!(document.get("/a").unwrap().as_u64(), Some(3));
        assert_eq!(document.get("/x/0/b").unwrap().as_u64(), Some(1));
    }

    #[test]
    fn many_names_are_compared_like_few() {
        for count in [3, 23, 24, 25, 200] {
            let members: Vec<String> = (0..count).map(|i| format!("\"k{i}\":{i}")).collect();
            let text = format!("{{\"\\u006b1\":0,{},\"k2\":-1}}", members.join(","));
            let document = Document::from_text(text).unwrap();
            let found: Vec<_> = document.findings().into_iter().map(|f| f.pointer).collect();
            assert_eq!(found, ["/k1", "/k2"], "{count}");
            assert_eq!(document.get("/k2").unwrap().as_i64(), Some(-1));
        }
    }

    #[test]
    fn lone_halves_are_told_apart() {
        let document = Document::from_text(r#"{"\ud800":1,"\ud801":2,"\\ud800":3}"#).unwrap();
        assert_eq!(document.findings(), []);
        assert_eq!(document.get(r"/\ud801").unwrap().as_u64(), Some(2));
    }
}
