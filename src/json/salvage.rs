//! The good part of a damaged file.

use serde::Serialize;

use super::corrupt::Corrupt;
use super::document::Document;
use super::parser::{Partial, line_and_column, not_utf8};
use super::pointer;
use super::tree::{Index, Kind, ROOT, Tree};

/// What can be saved of a file, and what cannot.
///
/// The document is the beginning of the file, byte for byte, and the brackets that close what was open there. What
/// follows the damage is left out even where it looks whole, for nobody can say where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Salvage {
    /// The good part: so many bytes of the file as [`kept`](Salvage::kept) says, then closing brackets.
    pub document: Document,
    /// How many bytes from the beginning of the file are in the document, to the byte.
    pub kept: usize,
    /// What of the file is not in the document; none if the file was a document.
    pub left_out: Option<LeftOut>,
    /// The pointer of the innermost value in which the object breaks off, such as `/completed_steps/3/summary`; none if
    /// the object is whole.
    pub broken_at: Option<String>,
}

/// What a [`Salvage`] left out, from the first byte that is not kept to the end of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Line where it begins, from 1; a line ends with `\n`.
    pub line: usize,
    /// Column of that place in its line, from 1, in characters.
    pub column: usize,
    /// Bytes of the file before it.
    pub offset: usize,
    /// How many bytes of the file it is.
    pub bytes: usize,
    /// What is wrong with the file, and where: at the beginning of what was left out, or a little after it.
    pub cause: Corrupt,
}

impl Salvage {
    /// Whether the object is whole, so that nothing is lost but garbage after it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.broken_at.is_none()
    }
}

/// The good part of the bytes of a file: of one that was cut off, of a short text over a longer one, of one that ends
/// in NUL bytes, of one with a fault in the middle.
///
/// All members and elements are kept that are whole before the damage. Nothing is guessed: a string without its end, a
/// number that may have had more digits, and a value after which something stands that belongs neither to it nor to
/// JSON are left out, with the object or array that held nothing else. Of members with the same name the last one counts,
/// which may have stood in the part that was lost.
///
/// Bytes that are a document give that document. `None` means that nothing is left: no byte that is not NUL or white space, no
/// object, or no whole member before the damage. The document is never nested deeper than
/// [`MAX_DEPTH`](super::MAX_DEPTH): a value that is nested too deep counts as damage, and the cause says so.
///
/// ```
/// use agent_checkpoint::json;
///
/// let salvage = json::salvage(br#"{"status": "running", "done": [1, 2, 34"#).ok_or("nothing left")?;
/// assert_eq!(salvage.document.text(), r#"{"status": "running", "done": [1, 2]}"#);
/// assert_eq!(salvage.broken_at.as_deref(), Some("/done/2"));
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn salvage(bytes: &[u8]) -> Option<Salvage> {
    let (text, damage) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?;
            (good, Some(not_utf8(bytes, &error)))
        }
    };
    let Partial { mut tree, corrupt } = Tree::partial(text.to_owned())?;
    // A fault at the very end of the text is that of what follows the text.
    let cause = match (corrupt, damage) {
        (Some(corrupt), Some(damage)) if corrupt.offset >= text.len() => Some(damage),
        (Some(corrupt), _) => Some(corrupt),
        (None, damage) => damage,
    };
    let stop = cause.as_ref().map_or(text.len(), |cause| cause.offset);
    let whole = tree.span(ROOT).next > 0;
    let broken = if whole {
        None
    } else {
        Some(Broken::find(&tree, stop)?)
    };
    let kept = broken.as_ref().map_or(stop, |broken| broken.kept);
    let left_out = cause.map(|cause| {
        let (line, column) = line_and_column(&text[..kept]);
        LeftOut {
            line,
            column,
            offset: kept,
            bytes: bytes.len() - kept,
            cause,
        }
    });
    tree.text.truncate(kept);
    let (closers, broken_at) = broken.map(|b| (b.closers, b.at)).unzip();
    tree.text.push_str(&closers.unwrap_or_default());
    Some(Salvage {
        document: Document::from_text(tree.text).ok()?,
        kept,
        left_out,
        broken_at,
    })
}

/// Where an object breaks off.
struct Broken {
    /// Bytes to keep.
    kept: usize,
    /// What closes the objects and arrays that are open after these.
    closers: String,
    /// The innermost value that does not end.
    at: String,
}

/// An object or array that does not end.
struct Open {
    closer: char,
    /// The end of its last whole value.
    last_end: Option<usize>,
}

impl Broken {
    /// Where the tree breaks off that was read up to `stop`; none if nothing whole is in it, or its root is no object.
    fn find(tree: &Tree, stop: usize) -> Option<Broken> {
        let bytes = tree.text.as_bytes();
        if bytes.get(tree.span(ROOT).start as usize) != Some(&b'{') {
            return None;
        }
        let mut at = String::new();
        let mut open: Vec<Open> = Vec::new();
        let mut next = Some(ROOT);
        while let Some(index) = next.take() {
            let closer = match bytes.get(tree.span(index).start as usize) {
                Some(b'{') => '}',
                Some(b'[') => ']',
                _ => break,
            };
            let mut last_end = None;
            let mut child = index + 1;
            let mut position = 0;
            while let Some(span) = tree.spans.get(child as usize) {
                let end = span.end as usize;
                if span.next == 0 || may_go_on(tree, child, stop) {
                    if closer == '}' {
                        pointer::push(&mut at, &tree.name(child));
                    } else if !matches!(bytes.get(span.start as usize), None | Some(0)) {
                        // An element of which nothing is there may never have been.
                        pointer::push(&mut at, &position.to_string());
                    }
                    next = (span.next == 0).then_some(child);
                    break;
                }
                last_end = Some(end);
                position += 1;
                child = span.next;
            }
            open.push(Open { closer, last_end });
        }
        // What has nothing whole in it goes, like a member without its value.
        while open.pop_if(|last| last.last_end.is_none()).is_some() {}
        let kept = open.last()?.last_end?;
        let closers = open.iter().rev().map(|open| open.closer).collect();
        Some(Broken { kept, closers, at })
    }
}

/// Whether a value that seems to end may be the beginning of another: reading stopped at `stop`, before anything that
/// would have confirmed the end.
///
/// * `12` at the end of a file may have been `1234`;
/// * `"she said "` before `yes" and left"` is a string with quotes that were not escaped.
///
/// The brackets around arrays and objects leave no doubt, nor does a line end after the value: no string has one in it.
fn may_go_on(tree: &Tree, value: Index, stop: usize) -> bool {
    let span = tree.span(value);
    let end = span.end as usize;
    if span.next as usize != tree.spans.len() || end > stop || span.kind.is_container() {
        return false;
    }
    let bytes = tree.text.as_bytes();
    let white = bytes[end..stop].iter().all(u8::is_ascii_whitespace);
    // A comma or bracket confirmed it.
    if !white {
        return false;
    }
    match bytes.get(stop) {
        // The text ends there, or did so before the file system filled it up.
        None | Some(0) => span.kind == Kind::Number && end == stop,
        Some(_) => !bytes[end..stop].contains(&b'\n'),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CorruptCode;
    use super::super::parser::MAX_DEPTH;
    use super::*;

    fn saved(bytes: &[u8]) -> Option<(String, Option<String>)> {
        salvage(bytes).map(|s| (s.document.into_text(), s.broken_at))
    }

    #[track_caller]
    fn assert_saved(bytes: &[u8], text: &str, broken_at: &str) {
        let wanted = (text.to_owned(), Some(broken_at.to_owned()));
        assert_eq!(saved(bytes), Some(wanted));
    }

    #[test]
    fn a_torn_tail_costs_only_what_it_tore() {
        let start = br#"{"a": 1, "steps": [{"id": "x"}, {"id": "y", "summary": "half a sen"#;
        assert_saved(
            start,
            r#"{"a": 1, "steps": [{"id": "x"}, {"id": "y"}]}"#,
            "/steps/1/summary",
        );
    }

    #[test]
    fn what_is_left_out_is_told() {
        let bytes = b"{\n  \"a\": 1,\n  \"b\": [true, tr";
        let salvage = salvage(bytes).unwrap();
        let left_out = salvage.left_out.clone().unwrap();
        assert_eq!(salvage.document.text(), "{\n  \"a\": 1,\n  \"b\": [true]}");
        assert!(!salvage.is_whole());
        assert_eq!(salvage.kept, 24);
        assert_eq!(&bytes[..salvage.kept], b"{\n  \"a\": 1,\n  \"b\": [true");
        assert_eq!(
            (left_out.line, left_out.column, left_out.offset),
            (3, 13, 24)
        );
        assert_eq!(left_out.bytes, bytes.len() - 24);
        assert_eq!(left_out.cause.code, CorruptCode::Truncated);
        assert_eq!(left_out.cause.offset, bytes.len());
    }

    #[test]
    fn garbage_after_an_object_costs_nothing_of_it() {
        for (tail, code) in [
            (&b"tus\": \"old\"}"[..], CorruptCode::TrailingBytes),
            (b"\0\0\0", CorruptCode::TrailingBytes),
            (b"\xff{", CorruptCode::NotUtf8),
        ] {
            let bytes = [b"{\"a\": 1}\n", tail].concat();
            let salvage = salvage(&bytes).unwrap();
            assert!(salvage.is_whole());
            // The line end belongs to the file that was meant.
            assert_eq!(salvage.document.text(), "{\"a\": 1}\n");
            let left_out = salvage.left_out.unwrap();
            assert_eq!((left_out.line, left_out.column), (2, 1));
            assert_eq!((left_out.bytes, left_out.cause.code), (tail.len(), code));
        }
    }

    #[test]
    fn a_number_at_the_damage_may_have_had_more_digits() {
        for tail in [&b""[..], b"\0\0", b"\xff", b"x", b"e", b"."] {
            let bytes = [b"{\"a\": 0, \"n\": 12", tail].concat();
            assert_saved(&bytes, "{\"a\": 0}", "/n");
        }
        assert_saved(b"{\"a\": 0, \"n\": 12 ", "{\"a\": 0, \"n\": 12}", "");
        assert_saved(b"{\"a\": 0, \"n\": 12,", "{\"a\": 0, \"n\": 12}", "");
        assert_saved(b"{\"a\": [12]", "{\"a\": [12]}", "");
    }

    #[test]
    fn strings_and_words_are_kept_once_they_end() {
        assert_saved(b"{\"a\": \"x\"", "{\"a\": \"x\"}", "");
        assert_saved(b"{\"a\": \"x\"\0\0", "{\"a\": \"x\"}", "");
        assert_saved(b"{\"a\": null", "{\"a\": null}", "");
        assert_saved(b"{\"a\": 0, \"b\": nul", "{\"a\": 0}", "/b");
        assert_saved("{\"a\": 0, \"b\": \"\u{e9}".as_bytes(), "{\"a\": 0}", "/b");
        assert_saved(b"{\"a\": 0, \"b\": \"\xc3", "{\"a\": 0}", "/b");
        assert_saved(b"{\"a\": 0, \"b\": \"\\ud8", "{\"a\": 0}", "/b");
    }

    #[test]
    fn quotes_that_were_not_escaped_cut_nothing_short() {
        let bytes = br#"{"a": 0, "note": "he said "yes" and left", "b": 1}"#;
        assert_saved(bytes, r#"{"a": 0}"#, "/note");
        assert_saved(br#"{"a": 0, "b": nullable}"#, r#"{"a": 0}"#, "/b");
        // A missing comma is another matter.
        let bytes = b"{\n\"a\": \"x\"\n\"b\": 1\n}";
        assert_saved(bytes, "{\n\"a\": \"x\"}", "");
        assert_saved(b"{\"a\": [{} {}]}", "{\"a\": [{}]}", "/a");
    }

    #[test]
    fn what_has_nothing_whole_in_it_goes() {
        assert_saved(
            b"{\"a\": {}, \"b\": {\"c\": [{\"d\": ",
            "{\"a\": {}}",
            "/b/c/0/d",
        );
        assert_saved(b"{\"a\": [], \"b/c\": [[[", "{\"a\": []}", "/b~1c/0/0");
        assert_saved(b"{\"a\": 0, \"b", "{\"a\": 0}", "");
    }

    #[test]
    fn a_fault_in_the_middle_ends_it_there() {
        let bytes = b"{\"a\": [1, 2, oops, 4], \"b\": 5}";
        assert_saved(bytes, "{\"a\": [1, 2]}", "/a/2");
        let cause = salvage(bytes).unwrap().left_out.unwrap().cause;
        assert_eq!((cause.code, cause.offset), (CorruptCode::Syntax, 13));
        // The first damage counts.
        assert_saved(b"{\"a\": 1, oops \xff", "{\"a\": 1}", "");
        let cause = salvage(b"{\"a\": 1, oops \xff").unwrap().left_out.unwrap();
        assert_eq!(cause.cause.code, CorruptCode::Syntax);
    }

    #[test]
    fn nothing_left_is_nothing() {
        for bytes in [
            &b""[..],
            b" \n",
            b"\0\0\0",
            b"\0{\"a\": 1}",
            b"\xef\xbb\xbf",
            b"{",
            b"{\"a\"",
            b"{\"a\": 12",
            b"[1, 2",
            b"[1, 2]",
            b"\"text\"",
            b"\xff\xfe{\0",
            b"status: done",
        ] {
            assert_eq!(saved(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_document_is_its_own_salvage() {
        for text in ["{}", "\u{feff} {\"a\": 1e400} \r\n", "{\"a\":1,\"a\":2}"] {
            let salvage = salvage(text.as_bytes()).unwrap();
            assert_eq!(salvage.document.text(), text);
            assert_eq!((salvage.kept, salvage.left_out), (text.len(), None));
        }
    }

    #[test]
    fn too_deep_stays_too_deep() {
        let nested = |n: usize| format!("{{\"a\": 0, \"b\": {}", "[".repeat(n - 1));
        let salvage = salvage(nested(MAX_DEPTH + 1).as_bytes()).unwrap();
        assert_eq!(salvage.document.text(), "{\"a\": 0}");
        let cause = salvage.left_out.unwrap().cause;
        assert_eq!(cause.code, CorruptCode::TooDeep);
        // As deep as a document can be.
        let text = format!("{}{}", nested(MAX_DEPTH), "1, 2, ");
        let (saved, _) = saved(text.as_bytes()).unwrap();
        let wanted = format!("{}1, 2{}}}", nested(MAX_DEPTH), "]".repeat(MAX_DEPTH - 1));
        assert_eq!(saved, wanted);
    }

    #[test]
    fn a_million_open_arrays_are_no_trouble() {
        assert_eq!(saved("[".repeat(1_000_000).as_bytes()), None);
        let many = format!("{{\"a\": [{}", "{\"b\": [],".repeat(100_000));
        assert!(saved(many.as_bytes()).is_some());
    }
}
