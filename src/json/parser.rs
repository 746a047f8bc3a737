//! Parses strict JSON (RFC 8259) in one pass into a list of spans.

use crate::quoted;
use std::borrow::Cow;
use std::collections::HashMap;

use super::corrupt::{Corrupt, CorruptCode, conflict};
use super::text::{Escape, unicode_escape};
use super::tree::{Index, Kind, Marks, NONE, ROOT, Span, Tree};

/// The greatest depth of nested containers, the root included.
pub const MAX_DEPTH: usize = 128;

const BOM: char = '\u{feff}';

/// Objects with fewer members find duplicate names by comparing all pairs, which is faster there than a hash map.
const FEW_MEMBERS: usize = 24;

/// Why a text was refused, and where.
struct Fault {
    code: CorruptCode,
    offset: usize,
    message: Cow<'static, str>,
}

impl Fault {
    fn new(code: CorruptCode, offset: usize, message: impl Into<Cow<'static, str>>) -> Fault {
        Fault {
            code,
            offset,
            message: message.into(),
        }
    }

    fn in_text(self, text: &str) -> Corrupt {
        let before = text.get(..self.offset).unwrap_or(text);
        self.into_corrupt(before)
    }

    /// Adds line and column, computed from the text before the place.
    fn into_corrupt(self, before: &str) -> Corrupt {
        let (line, column) = line_and_column(before);
        Corrupt {
            code: self.code,
            line,
            column,
            offset: self.offset,
            message: self.message.into_owned(),
        }
    }
}

/// Line and column, both from 1, of the place after this text. A byte order mark is no column.
fn line_and_column(before: &str) -> (usize, usize) {
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let in_line = &before[line_start..];
    let in_line = if line_start == 0 {
        in_line.trim_start_matches(BOM)
    } else {
        in_line
    };
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    (line, in_line.chars().count() + 1)
}

impl Tree {
    /// Parses the bytes of a file; its root must be an object.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Tree, Corrupt> {
        if let Err(fault) = check_nul(bytes) {
            return Err(fault.into_corrupt(""));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Tree::from_text(text.to_owned()),
            Err(error) => Err(conflict(bytes).unwrap_or_else(|| not_utf8(bytes, &error))),
        }
    }

    /// Parses a text; its root must be an object.
    pub(super) fn from_text(text: String) -> Result<Tree, Corrupt> {
        let tree = match parse(&text) {
            Ok((spans, has_duplicates)) => Tree {
                text,
                spans,
                has_duplicates,
            },
            // Conflict markers are reported first, since they are what the reader has to resolve.
            Err(fault) => {
                return Err(conflict(text.as_bytes()).unwrap_or_else(|| fault.in_text(&text)));
            }
        };
        let root = tree.span(ROOT);
        if root.kind == Kind::Object {
            return Ok(tree);
        }
        let start = root.start as usize;
        let message = format!("the root is {}, not an object", root.kind.describe());
        let fault = Fault::new(CorruptCode::NotAnObject, start, message);
        Err(fault.into_corrupt(&tree.text[..start]))
    }

    /// Parses a text with one JSON value of any type.
    pub(super) fn of_any_value(text: String) -> Result<Tree, Corrupt> {
        match parse(&text) {
            Ok((spans, has_duplicates)) => Ok(Tree {
                text,
                spans,
                has_duplicates,
            }),
            Err(fault) => Err(fault.in_text(&text)),
        }
    }
}

fn check_nul(bytes: &[u8]) -> Result<(), Fault> {
    if !bytes.is_empty() && bytes.iter().all(|&b| b == 0) {
        let message = "nothing but NUL bytes, as a file system may show after a power cut";
        return Err(Fault::new(CorruptCode::NulBytes, 0, message));
    }
    Ok(())
}

fn not_utf8_message(bytes: &[u8], offset: usize, length: Option<usize>) -> &'static str {
    if offset == 0 && (bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF])) {
        "looks like UTF-16; JSON files are UTF-8"
    } else if length.is_none() {
        "the text ends inside a character"
    } else {
        "a byte that is not UTF-8"
    }
}

/// The error for bytes that are not UTF-8.
fn not_utf8(bytes: &[u8], error: &std::str::Utf8Error) -> Corrupt {
    let offset = error.valid_up_to();
    let message = not_utf8_message(bytes, offset, error.error_len());
    let before = std::str::from_utf8(&bytes[..offset]).unwrap_or_default();
    Fault::new(CorruptCode::NotUtf8, offset, message).into_corrupt(before)
}

/// The length of the object at the start of a text, or the offset at which it breaks.
pub(super) fn whole_object(text: &str) -> Result<usize, usize> {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        spans: Vec::new(),
        has_duplicates: false,
    };
    match parser.value(1, NONE, NONE, Marks::default()) {
        Ok(()) => Ok(parser.at),
        Err(fault) => Err(fault.offset),
    }
}

fn parse(text: &str) -> Result<(Vec<Span>, bool), Fault> {
    let mut parser = Parser::begin(text)?;
    parser.document()?;
    Ok((parser.spans, parser.has_duplicates))
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    spans: Vec<Span>,
    has_duplicates: bool,
}

impl<'t> Parser<'t> {
    /// Starts at the first value of the text.
    fn begin(text: &'t str) -> Result<Parser<'t>, Fault> {
        if text.len() >= NONE as usize {
            let message = "more than 4 GiB of text";
            return Err(Fault::new(CorruptCode::TooLarge, 0, message));
        }
        check_nul(text.as_bytes())?;
        let mut parser = Parser {
            text,
            bytes: text.as_bytes(),
            at: if text.starts_with(BOM) {
                BOM.len_utf8()
            } else {
                0
            },
            spans: Vec::with_capacity(text.len() / 24 + 8),
            has_duplicates: false,
        };
        parser.white_space();
        if parser.peek().is_none() {
            return Err(Fault::new(CorruptCode::Empty, parser.at, "no content"));
        }
        Ok(parser)
    }

    /// Parses the root and the end of the text after it.
    fn document(&mut self) -> Result<(), Fault> {
        self.value(1, NONE, NONE, Marks::default())?;
        let end = self.at;
        self.white_space();
        let Some(byte) = self.peek() else {
            return Ok(());
        };
        let what = if self.spans[0].kind == Kind::Object {
            "document"
        } else {
            "value"
        };
        let more = if byte == 0 { "NUL bytes" } else { "more text" };
        let message = format!("bytes 0..{end} are a whole {what}, and {more} follows");
        Err(Fault::new(CorruptCode::TrailingBytes, self.at, message))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The error when the text at the current place is not what `expected` names, or ends there.
    fn fault(&self, expected: &str) -> Fault {
        self.fault_at(self.at, expected)
    }

    fn fault_at(&self, offset: usize, expected: &str) -> Fault {
        match self.text.get(offset..).and_then(|rest| rest.chars().next()) {
            None => {
                let message = format!("the text ends where {expected} should be");
                Fault::new(CorruptCode::Truncated, self.bytes.len(), message)
            }
            Some('\0') => {
                let message = format!("a NUL byte where {expected} should be");
                Fault::new(CorruptCode::Syntax, offset, message)
            }
            Some(found) => {
                let message = format!(
                    "{found} where {expected} should be",
                    found = quoted(found.encode_utf8(&mut [0; 4]))
                );
                Fault::new(CorruptCode::Syntax, offset, message)
            }
        }
    }

    /// Parses a value. `depth` is the depth of nested containers, counting this value if it is one.
    fn value(
        &mut self,
        depth: usize,
        name: u32,
        name_end: u32,
        mut marks: Marks,
    ) -> Result<(), Fault> {
        let me = self.spans.len();
        let start = self.at;
        self.spans.push(Span {
            start: start as u32,
            end: 0,
            name,
            name_end,
            next: 0,
            kind: Kind::Null,
            marks,
        });
        let kind = match self.peek() {
            Some(b'"') => {
                let string = self.string()?;
                if string.has(Marks::ESCAPED) {
                    marks.set(Marks::ESCAPED);
                }
                if string.has(Marks::LONE) {
                    marks.set(Marks::LONE);
                }
                Kind::String
            }
            Some(b'{') => {
                self.check_depth(depth)?;
                self.object(depth, me as Index)?;
                Kind::Object
            }
            Some(b'[') => {
                self.check_depth(depth)?;
                self.array(depth)?;
                Kind::Array
            }
            Some(b't') => self.literal("true", Kind::Bool)?,
            Some(b'f') => self.literal("false", Kind::Bool)?,
            Some(b'n') => self.literal("null", Kind::Null)?,
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Kind::Number
            }
            _ => return Err(self.fault("a value")),
        };
        let next = self.spans.len() as Index;
        let span = &mut self.spans[me];
        span.end = self.at as u32;
        span.next = next;
        span.kind = kind;
        // Shadowed members are marked only at the end of their object, so this overwrites nothing.
        span.marks = marks;
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), Fault> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("more than {MAX_DEPTH} arrays and objects inside each other");
        Err(Fault::new(CorruptCode::TooDeep, self.at, message))
    }

    fn object(&mut self, depth: usize, me: Index) -> Result<(), Fault> {
        self.at += 1;
        self.white_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let mut members = 0;
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fault("a member name in double quotes"));
            }
            let name = self.at as u32;
            let string = self.string()?;
            let name_end = self.at as u32;
            let mut marks = Marks::default();
            if string.has(Marks::ESCAPED) {
                marks.set(Marks::NAME_ESCAPED);
            }
            if string.has(Marks::LONE) {
                marks.set(Marks::NAME_LONE);
            }
            self.white_space();
            if self.peek() != Some(b':') {
                return Err(self.fault("':' after a member name"));
            }
            self.at += 1;
            self.white_space();
            self.value(depth + 1, name, name_end, marks)?;
            members += 1;
            self.white_space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.white_space();
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                _ => return Err(self.fault("',' or '}'")),
            }
        }
        if members > 1 {
            self.mark_shadowed(me, members);
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        self.at += 1;
        self.white_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1, NONE, NONE, Marks::default())?;
            self.white_space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.white_space();
                }
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.fault("',' or ']'")),
            }
        }
    }

    fn literal(&mut self, literal: &str, kind: Kind) -> Result<Kind, Fault> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(literal.as_bytes()) {
            self.at += literal.len();
            return Ok(kind);
        }
        let common = rest
            .iter()
            .zip(literal.bytes())
            .take_while(|(a, b)| **a == *b);
        let place = self.at + common.count();
        Err(self.fault_at(place, &format!("`{literal}`")))
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.fault("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    /// Parses a string with its quotes; returns whether it has escapes and halves of surrogate pairs.
    fn string(&mut self) -> Result<Marks, Fault> {
        let mut marks = Marks::default();
        self.at += 1;
        loop {
            self.skip_plain();
            match self.peek() {
                None => return Err(self.fault("the end of a string")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(marks);
                }
                Some(b'\\') => {
                    marks.set(Marks::ESCAPED);
                    self.escape(&mut marks)?;
                }
                Some(0..0x20) => {
                    let message = "a control character in a string must be escaped";
                    return Err(Fault::new(CorruptCode::Syntax, self.at, message));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Skips plain characters eight bytes at a time, until at or shortly before the next quote, backslash or control
    /// character.
    fn skip_plain(&mut self) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080_8080;
        // The high bit of every zero byte; bits above the first one may be wrong.
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
        while let Some(&chunk) = self.bytes[self.at..].first_chunk::<8>() {
            let word = u64::from_le_bytes(chunk);
            let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
            let quotes = zeros(word ^ (ONES * u64::from(b'"')));
            let backslashes = zeros(word ^ (ONES * u64::from(b'\\')));
            let stop = quotes | backslashes | below_space;
            if stop != 0 {
                self.at += (stop.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
    }

    fn escape(&mut self, marks: &mut Marks) -> Result<(), Fault> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match unicode_escape(self.bytes, self.at) {
                Escape::Char { length, .. } => self.at += length,
                Escape::Lone => {
                    marks.set(Marks::LONE);
                    self.at += 6;
                }
                Escape::Bad => {
                    let digits = self.bytes[self.at + 2..].iter();
                    let good = digits.take_while(|b| b.is_ascii_hexdigit()).count();
                    return Err(self.fault_at(self.at + 2 + good, "a hexadecimal digit"));
                }
            },
            _ => return Err(self.fault_at(self.at + 1, "an escape such as \\n")),
        }
        Ok(())
    }

    fn mark_shadowed(&mut self, object: Index, members: usize) {
        let tree = Names {
            text: self.text,
            spans: &self.spans,
        };
        let shadowed = if members <= FEW_MEMBERS {
            tree.shadowed_of_few(object)
        } else {
            tree.shadowed_of_many(object, members)
        };
        for index in shadowed {
            self.has_duplicates = true;
            self.spans[index as usize].marks.set(Marks::SHADOWED);
        }
    }
}

/// The names of the members of an object whose spans are parsed.
struct Names<'p> {
    text: &'p str,
    spans: &'p [Span],
}

impl<'p> Names<'p> {
    /// The members, which extend to the end of the list, since their object was parsed last.
    fn members(&self, after: Index) -> impl Iterator<Item = &'p Span> {
        let spans = self.spans;
        let mut at = after as usize;
        std::iter::from_fn(move || {
            let span = spans.get(at)?;
            at = span.next as usize;
            Some(span)
        })
    }

    fn raw(&self, span: &Span) -> &'p str {
        &self.text[span.name as usize + 1..span.name_end as usize - 1]
    }

    /// The key by which a name is compared: its characters, and whether it has half of a surrogate pair. Such a half is
    /// kept as its escape, which another name could contain literally.
    fn identity(&self, span: &Span) -> (Cow<'p, str>, bool) {
        let name = if span.marks.has(Marks::NAME_ESCAPED) {
            super::text::unescape(self.raw(span))
        } else {
            Cow::Borrowed(self.raw(span))
        };
        (name, span.marks.has(Marks::NAME_LONE))
    }

    fn same(&self, a: &Span, b: &Span) -> bool {
        if a.marks.has(Marks::NAME_ESCAPED) || b.marks.has(Marks::NAME_ESCAPED) {
            self.identity(a) == self.identity(b)
        } else {
            self.raw(a) == self.raw(b)
        }
    }

    fn shadowed_of_few(&self, object: Index) -> Vec<Index> {
        let mut shadowed = Vec::new();
        let mut at = object + 1;
        for span in self.members(object + 1) {
            if self.members(span.next).any(|later| self.same(span, later)) {
                shadowed.push(at);
            }
            at = span.next;
        }
        shadowed
    }

    fn shadowed_of_many(&self, object: Index, members: usize) -> Vec<Index> {
        let mut last = HashMap::with_capacity(members);
        let mut shadowed = Vec::new();
        let mut at = object + 1;
        for span in self.members(object + 1) {
            if let Some(earlier) = last.insert(self.identity(span), at) {
                shadowed.push(earlier);
            }
            at = span.next;
        }
        shadowed
    }
}
