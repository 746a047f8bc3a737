//! Salvages the good part of a damaged file.

use serde::Serialize;

use super::corrupt::{Corrupt, conflict};
use super::document::Document;
use super::parser::{MAX_DEPTH, whole_object};
use super::pointer;
use super::slip::{Slip, slip};
use super::text::{Escape, is_number, is_white, unescape, unicode_escape};
use super::tree::NONE;

/// What could be salvaged of a file, and what could not.
///
/// The document is the text of the file without the skipped pieces, and with missing commas and closing brackets added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Salvage {
    /// The salvaged document.
    pub document: Document,
    /// Why the file is no document; none if it is one, and then nothing was skipped.
    pub cause: Option<Corrupt>,
    /// All pieces that are not in the document, in the order of the file.
    pub left_out: Vec<LeftOut>,
}

/// A piece of a file that a [`Salvage`] skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The line where the piece begins, from 1; a line ends with `\n`.
    pub line: usize,
    /// The column of that place in its line, from 1, in characters.
    pub column: usize,
    /// The number of bytes of the file before it.
    pub offset: usize,
    /// The length of the piece in bytes; 0 if only a comma or a bracket was missing.
    pub bytes: usize,
    /// The pointer of the innermost value in which the text broke, such as `/completed_steps/3/summary`, with indexes
    /// as in the file. Empty for the root, and when so much is broken that the pointers would be longer than the file.
    pub at: String,
    /// The document, if the piece is a complete one: an appended document, or one that a shorter text was written over.
    #[serde(skip)]
    pub document: Option<Document>,
}

/// Salvages the good part of the bytes of a file: one that was cut off, a short text over a longer one, one that ends
/// in NUL bytes, one with errors in the middle.
///
/// Every complete member and element is kept, before and after the damage. One bad token (`NaN`, a comment, a trailing
/// comma, a code fence around the text, an invalid byte, a line end in a string, a missing quote) costs at most the
/// value that contains it. Nothing is guessed. Skipped are a string without its end, a number that may have had more
/// digits, and a value followed by something that is neither part of it nor valid JSON, and also an object or array of
/// which nothing else is left. Of members with the same name the last one counts.
///
/// If the only error is one quote too few or too many, or one bracket written twice, every possible repair is compared,
/// and only what all of them agree on is kept. For a quote this is usually everything but its member, for a bracket
/// everything. In a list of texts the next text may be skipped too. A text that begins with a complete object is that
/// object, unless the rest continues with a comma.
///
/// If the bytes are a document, that document is returned. `None` means that nothing can be kept: there is no object,
/// no complete member in it, or there are git conflict markers, between which a person has to choose. The document
/// never nests deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
///
/// ```
/// use agent_checkpoint::json;
///
/// let salvage = json::salvage(br#"{"status": "running", "score": NaN, "done": [1, 2, 34"#).ok_or("nothing left")?;
/// assert_eq!(salvage.document.text(), r#"{"status": "running", "done": [1, 2]}"#);
/// let places: Vec<&str> = salvage.left_out.iter().map(|piece| piece.at.as_str()).collect();
/// assert_eq!(places, ["/score", "/done/2"]);
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn salvage(bytes: &[u8]) -> Option<Salvage> {
    match Document::parse(bytes) {
        Ok(document) => Some(Salvage {
            document,
            cause: None,
            left_out: Vec::new(),
        }),
        Err(_) if conflict(bytes).is_some() => None,
        Err(cause) => good_part(bytes, cause),
    }
}

/// Salvages bytes that are no document, even with conflict markers, so that the format of the file can be detected.
pub(crate) fn good_part(bytes: &[u8], cause: Corrupt) -> Option<Salvage> {
    if bytes.len() >= NONE as usize {
        return None;
    }
    let text = same_length_text(bytes);
    let begin = start_of_object(text.as_bytes())?;
    let mut rescue = Rescue::new(text.as_bytes(), begin);
    rescue.run()?;
    let Rescue {
        mut cuts,
        mut inserts,
        ..
    } = rescue;
    cuts.extend(head(&text[..begin]));
    let (kept, pieces) = apply(&text, &mut cuts, &mut inserts);
    Some(Salvage {
        document: Document::from_text(kept).ok()?,
        cause: Some(cause),
        left_out: placed(&text, pieces),
    })
}

/// Converts the bytes to a text of the same length. A byte that is not UTF-8 becomes a control character, which is
/// invalid everywhere in JSON.
fn same_length_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1}'));
    }
    text
}

/// The offset at which a text begins like an object, after anything that may precede one by mistake: byte order marks,
/// white space, NUL bytes, comments, a code fence, a conflict marker.
pub(crate) fn start_of_object(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let length = match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0, ..] => 1,
            [0xEF, 0xBB, 0xBF, ..] => 3,
            [b'/', b'*', ..] => end_of_comment(rest),
            [b'/', b'/', ..] | [b'`', b'`', b'`', ..] => end_of_line(rest),
            _ if rest.starts_with(b"<<<<<<<") => end_of_line(rest),
            [b'{', ..] => return Some(at),
            _ => return None,
        };
        at += length;
    }
}

fn end_of_line(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    end.unwrap_or(bytes.len())
}

/// The length of a comment that begins with `/*`.
fn end_of_comment(bytes: &[u8]) -> usize {
    let end = bytes[2..].windows(2).position(|two| two == b"*/");
    end.map_or(bytes.len(), |end| end + 4)
}

/// The text before the object, if it does not belong there.
fn head(text: &str) -> Option<Cut> {
    let harmless = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_harmless = harmless.bytes().all(is_white);
    (!is_harmless).then(|| Cut::new(0, text.len(), String::new()))
}

/// A piece of the text to remove, and the pointer of the value that broke there.
struct Cut {
    start: usize,
    end: usize,
    at: String,
    document: Option<Document>,
}

impl Cut {
    fn new(start: usize, end: usize, at: String) -> Cut {
        Cut {
            start,
            end,
            at,
            document: None,
        }
    }
}

/// Applies the cuts and inserts to the text; returns it with the cuts, without those that lie inside others.
fn apply(text: &str, cuts: &mut Vec<Cut>, inserts: &mut [(usize, char)]) -> (String, Vec<Cut>) {
    // At one offset the longer cut comes first, since it contains the other.
    cuts.sort_by_key(|cut| (cut.start, std::cmp::Reverse(cut.end)));
    let mut pieces: Vec<Cut> = Vec::new();
    for cut in cuts.drain(..) {
        match pieces.last_mut() {
            Some(last) if cut.start < last.end => {
                last.end = last.end.max(cut.end);
            }
            _ => pieces.push(cut),
        }
    }
    // The sort is stable: of several at one offset each closes the container that the previous one is in.
    inserts.sort_by_key(|(place, _)| *place);
    let mut inserts = inserts.iter().copied().peekable();
    let mut kept = String::with_capacity(text.len() + 16);
    let mut at = 0;
    let copy = |kept: &mut String, from: usize, to: usize| {
        kept.push_str(text.get(from..to).unwrap_or_default());
    };
    for (start, end) in pieces
        .iter()
        .map(|cut| (cut.start, cut.end))
        .chain([(text.len(), text.len())])
    {
        while let Some((place, char)) = inserts.next_if(|(place, _)| *place <= start) {
            // An insert inside a removed piece is removed with it.
            if place >= at {
                copy(&mut kept, at, place);
                kept.push(char);
                at = place;
            }
        }
        copy(&mut kept, at, start.max(at));
        at = at.max(end);
    }
    (kept, pieces)
}

/// Adds lines and columns to the pieces, in one pass over the text.
fn placed(text: &str, pieces: Vec<Cut>) -> Vec<LeftOut> {
    let (mut at, mut line, mut column) = (0, 1, 1);
    let mut placed = Vec::with_capacity(pieces.len());
    for cut in pieces {
        for char in text.get(at..cut.start).unwrap_or_default().chars() {
            match char {
                '\n' => (line, column) = (line + 1, 1),
                '\u{feff}' if (line, column) == (1, 1) => {}
                _ => column += 1,
            }
        }
        at = at.max(cut.start);
        placed.push(LeftOut {
            line,
            column,
            offset: cut.start,
            bytes: cut.end - cut.start,
            at: cut.at,
            document: cut.document,
        });
    }
    placed
}

/// An object or array that is open.
struct Frame {
    is_object: bool,
    /// The offset of its start, including its name.
    item: usize,
    /// The range of the current member's name, with its quotes.
    name: Option<(usize, usize)>,
    /// The number of elements, the current one included.
    count: usize,
    /// The end of its last complete value.
    last_end: Option<usize>,
    /// Whether a comma follows that value.
    has_comma: bool,
    /// The start of the text to remove before the next value, and the pointer of the value that broke there.
    junk: Option<(usize, String)>,
    /// The end of the last comma or of the last text to remove.
    tail: usize,
}

impl Frame {
    fn new(is_object: bool, item: usize) -> Frame {
        Frame {
            is_object,
            item,
            name: None,
            count: 0,
            last_end: None,
            has_comma: false,
            junk: None,
            tail: 0,
        }
    }
}

/// How a string ends.
enum StringEnd {
    /// At its quote. `good` is false if the string has an invalid part.
    Quote { good: bool },
    /// At the end of the line: the quote is missing.
    Line,
    /// At the end of the text.
    Text,
}

/// One pass over a text that is almost JSON. It collects the pieces to remove and the characters to insert.
///
/// Lookahead is bounded by text that is consumed soon after, so the time is linear in the text.
struct Rescue<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The end of the text, without the NUL bytes with which a file system padded it.
    end: usize,
    frames: Vec<Frame>,
    cuts: Vec<Cut>,
    inserts: Vec<(usize, char)>,
    /// How many more bytes the pointers may have.
    pointers: usize,
    /// How many more bytes may be parsed as an object that interrupts a string.
    ahead: usize,
    /// What to remove if the only error is one quote or bracket.
    slip: Option<Slip>,
}

impl<'t> Rescue<'t> {
    fn new(bytes: &'t [u8], begin: usize) -> Rescue<'t> {
        let filled = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
        let end = bytes.len() - filled;
        Rescue {
            bytes,
            at: begin + 1,
            end,
            frames: vec![Frame::new(true, begin)],
            cuts: Vec::new(),
            inserts: Vec::new(),
            pointers: bytes.len() + 4096,
            ahead: bytes.len(),
            slip: slip(&bytes[..end], begin),
        }
    }

    /// Returns none if nothing is left.
    fn run(&mut self) -> Option<()> {
        while !self.frames.is_empty() {
            self.space();
            if let Some(Slip::Items { start, end, depth }) = self.slip
                && start == self.at
            {
                self.slip = None;
                self.leave_out_items(end, depth)?;
                continue;
            }
            match self.peek() {
                None => return self.break_off(),
                Some(b',') => self.comma(),
                Some(closer @ (b'}' | b']')) => self.close(closer)?,
                Some(first) => self.item(first),
            }
        }
        // The final line end belongs to the intended file.
        while self.bytes.get(self.at).copied().is_some_and(is_white) {
            self.at += 1;
        }
        self.leave_out_tail(self.at, None);
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes[..self.end].get(self.at).copied()
    }

    /// The next byte from this offset that is no white space.
    fn after_white(&self, from: usize) -> Option<u8> {
        let rest = self.bytes[..self.end].get(from..)?;
        rest.iter().copied().find(|&byte| !is_white(byte))
    }

    /// Passes over white space, and removes comments and a bracket that is written twice.
    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            let rest = &self.bytes[self.at..self.end];
            let length = match (byte, rest.get(1)) {
                (b'/', Some(b'*')) => end_of_comment(rest),
                (b'/', Some(b'/')) | (b'#', _) => end_of_line(rest),
                _ if self.slip == Some(Slip::Bracket(self.at)) => 1,
                _ if is_white(byte) => {
                    self.at += 1;
                    continue;
                }
                _ => return,
            };
            let at = self.pointer(false);
            self.cuts.push(Cut::new(self.at, self.at + length, at));
            self.at += length;
        }
    }

    /// The pointer of the innermost container, or of its current item.
    fn pointer(&mut self, of_item: bool) -> String {
        let inside = &self.frames[..self.frames.len() - usize::from(!of_item)];
        let length = |frame: &Frame| frame.name.map_or(8, |(start, end)| end - start);
        let least: usize = inside.iter().map(length).sum();
        if least > self.pointers {
            return String::new();
        }
        self.pointers -= least;
        let mut at = String::new();
        for frame in inside {
            match frame.name {
                Some((start, end)) => {
                    let name = std::str::from_utf8(&self.bytes[start + 1..end - 1]);
                    pointer::push(&mut at, &unescape(name.unwrap_or_default()));
                }
                None if frame.is_object => {}
                None => pointer::push(&mut at, &frame.count.saturating_sub(1).to_string()),
            }
        }
        at
    }

    fn comma(&mut self) {
        let here = self.at;
        self.at += 1;
        if let Some(frame) = self.frames.last_mut()
            && frame.last_end.is_some()
            && !frame.has_comma
            && frame.junk.is_none()
        {
            frame.has_comma = true;
            frame.tail = self.at;
            return;
        }
        self.leave_out(here, false);
    }

    /// Marks the text from `start` to here for removal.
    fn leave_out(&mut self, start: usize, of_item: bool) {
        let is_first = self.frames.last().is_some_and(|frame| frame.junk.is_none());
        let at = is_first.then(|| self.pointer(of_item));
        // White space before the next bracket stays.
        let gone = self.bytes[start..self.at].trim_ascii_end().len();
        if let Some(frame) = self.frames.last_mut() {
            if let Some(at) = at {
                frame.junk = Some((start, at));
            }
            frame.tail = start + gone;
        }
    }

    /// Removes the items that a missing or extra quote made ambiguous, and closes the containers that they may have
    /// closed.
    fn leave_out_items(&mut self, end: usize, depth: usize) -> Option<()> {
        let start = self.at;
        let is_item = !matches!(self.peek(), Some(b'}' | b']'));
        let has_name = self.peek() == Some(b'"') && self.is_member(start);
        if let Some(frame) = self.frames.last_mut().filter(|_| is_item) {
            let name = self.bytes[start + 1..].iter();
            let length = name.take_while(|&&byte| byte != b'"').count();
            frame.count += 1;
            frame.name = (frame.is_object && has_name).then_some((start, start + length + 2));
        }
        self.at = end;
        self.leave_out(start, is_item);
        while self.frames.len() > depth {
            self.end_container(true)?;
        }
        Some(())
    }

    /// Keeps the value between `start` and `end`, with its name.
    fn keep(&mut self, start: usize, end: usize) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let junk = frame.junk.take();
        let without_comma = frame.last_end.filter(|_| !frame.has_comma);
        frame.last_end = Some(end);
        frame.has_comma = false;
        if let Some(place) = without_comma {
            self.inserts.push((place, ','));
            if junk.is_none() {
                let at = self.pointer(false);
                self.cuts.push(Cut::new(place, place, at));
            }
        }
        if let Some((from, at)) = junk {
            self.cuts.push(Cut::new(from, start, at));
        }
    }

    fn close(&mut self, closer: u8) -> Option<()> {
        let is_object = closer == b'}';
        let is_open = |frame: &Frame| frame.is_object == is_object;
        if self.frames.last().is_some_and(is_open) {
            self.at += 1;
            return self.end_container(false);
        }
        if self.frames.iter().any(is_open) {
            return self.end_container(true);
        }
        let here = self.at;
        self.at += 1;
        self.leave_out(here, false);
        Some(())
    }

    /// Leaves the innermost container, in which something broke; returns the pointer of what broke first.
    fn leave(&mut self) -> Option<(Frame, String)> {
        let junk = self.frames.last_mut()?.junk.take();
        let at = junk.map_or_else(|| self.pointer(false), |(_, at)| at);
        Some((self.frames.pop()?, at))
    }

    /// Ends the innermost container: at its bracket, which was just passed, or here if the bracket is missing.
    fn end_container(&mut self, is_missing: bool) -> Option<()> {
        let here = self.at;
        // No pointer is made for a container without damage, since their total size is bounded.
        let is_whole = |frame: &mut Frame| {
            let ends_well = frame.last_end.is_none_or(|end| frame.tail <= end);
            !is_missing && frame.junk.is_none() && ends_well
        };
        if let Some(frame) = self.frames.pop_if(is_whole) {
            self.keep(frame.item, here);
            return Some(());
        }
        let (frame, at) = self.leave()?;
        let Some(last_end) = frame.last_end else {
            return self.lose_container(frame.item, at);
        };
        if frame.tail > last_end || is_missing {
            let end = frame.tail.max(last_end);
            self.cuts.push(Cut::new(last_end, end, at));
        }
        if is_missing {
            self.inserts.push((last_end, closer_of(&frame)));
            self.keep(frame.item, last_end);
        } else {
            self.keep(frame.item, here);
        }
        Some(())
    }

    /// Removes a container without a complete value: a list that lost all its elements is not an empty one. None for
    /// the root.
    fn lose_container(&mut self, item: usize, at: String) -> Option<()> {
        let here = self.at;
        let parent = self.frames.last_mut()?;
        parent.junk.get_or_insert((item, at));
        parent.tail = here;
        Some(())
    }

    /// Ends a text that breaks off inside the object: everything after the last complete value is removed.
    fn break_off(&mut self) -> Option<()> {
        let end = self.bytes.len();
        self.at = end;
        let mut torn = None;
        while !self.frames.is_empty() {
            let (frame, at) = self.leave()?;
            let Some(last_end) = frame.last_end else {
                self.lose_container(frame.item, at)?;
                continue;
            };
            torn.get_or_insert((last_end, at));
            self.inserts.push((end, closer_of(&frame)));
            self.keep(frame.item, end);
        }
        let (from, at) = torn?;
        self.leave_out_tail(from, Some(at));
        Some(())
    }

    /// Removes the rest of the text, with each complete document in it as a piece of its own. `torn` is the pointer of
    /// what broke, if the rest does not follow a complete object.
    fn leave_out_tail(&mut self, from: usize, torn: Option<String>) {
        let text = std::str::from_utf8(self.bytes).unwrap_or_default();
        let mut is_torn = torn.is_some();
        let mut cut = Cut::new(from, from, torn.unwrap_or_default());
        let mut look = from;
        while let Some(brace) = text[look..].find('{').map(|brace| look + brace) {
            match whole_object(&text[brace..]) {
                Err(offset) => {
                    look = brace + offset.max(1);
                    while !text.is_char_boundary(look) {
                        look += 1;
                    }
                }
                Ok(length) => {
                    cut.end = brace;
                    let mut document = Cut::new(brace, brace + length, String::new());
                    document.document = Document::from_text(&text[brace..document.end]).ok();
                    let white = text[document.end..].bytes();
                    document.end += white.take_while(|&byte| is_white(byte)).count();
                    look = document.end;
                    let rest = Cut::new(look, look, String::new());
                    let before = std::mem::replace(&mut cut, rest);
                    self.cuts
                        .extend((is_torn || before.end > before.start).then_some(before));
                    self.cuts.push(document);
                    is_torn = false;
                }
            }
        }
        cut.end = text.len();
        self.cuts
            .extend((is_torn || cut.end > cut.start).then_some(cut));
    }

    /// Reads a member or an element that begins here.
    fn item(&mut self, first: u8) {
        let start = self.at;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        frame.count += 1;
        frame.name = None;
        let is_member = frame.is_object;
        if is_member && !self.name(first, start) {
            return;
        }
        let value = self.at;
        match self.peek() {
            Some(b'{' | b'[') if self.frames.len() < MAX_DEPTH => {
                let is_object = self.peek() == Some(b'{');
                self.at += 1;
                self.frames.push(Frame::new(is_object, start));
            }
            Some(b'"') => match self.string(false) {
                StringEnd::Quote { good: true } => self.scalar(start, is_member),
                StringEnd::Quote { good: false } => self.leave_out_item(start),
                StringEnd::Line | StringEnd::Text => self.leave_out(start, true),
            },
            Some(_) if self.word() => self.scalar(start, is_member),
            _ => {
                self.at = value;
                self.leave_out_item(start);
            }
        }
    }

    /// Reads the name of a member and its colon; an item without both is removed.
    fn name(&mut self, first: u8, start: usize) -> bool {
        if first != b'"' {
            self.leave_out_item(start);
            return false;
        }
        let good = match self.string(true) {
            StringEnd::Quote { good } => good,
            StringEnd::Line | StringEnd::Text => {
                self.leave_out(start, true);
                return false;
            }
        };
        let end = self.at;
        self.space();
        if good && self.peek() == Some(b':') {
            if let Some(frame) = self.frames.last_mut() {
                frame.name = Some((start, end));
            }
            self.at += 1;
            self.space();
            return true;
        }
        match self.comma_of_missing_quote(start, end) {
            Some(comma) => {
                self.at = comma;
                self.leave_out(start, true);
            }
            None => self.leave_out_item(start),
        }
        false
    }

    /// Decides whether a string, number or word ends here, by what follows:
    ///
    /// * `12` at the end of a file may have been `1234`;
    /// * `"she said "` before `yes" and left"` is a string with quotes that were not escaped.
    fn scalar(&mut self, start: usize, is_member: bool) {
        let end = self.at;
        let is_string = self.bytes[end - 1] == b'"';
        self.space();
        let has_gap = self.at > end;
        let next = self.peek();
        let is_sure = match next {
            None => is_string || has_gap || self.bytes[end - 1].is_ascii_alphabetic(),
            Some(b',' | b'}' | b']') => true,
            // A string contains no line end.
            _ if self.bytes[end..self.at].contains(&b'\n') => true,
            Some(b'"') => has_gap && (!is_string || (is_member && self.is_member(self.at))),
            Some(_) => false,
        };
        if is_sure {
            self.keep(start, end);
            return;
        }
        if is_string
            && is_member
            && let Some(comma) = self.comma_of_missing_quote(start, end)
        {
            self.at = comma;
            return self.leave_out(start, true);
        }
        if is_string && let Some(after) = self.object_around_quote(end - 1) {
            match self.after_white(after) {
                // Another document was written after one that is torn.
                None | Some(b'{') => {
                    self.end = end - 2;
                    self.at = self.end;
                    return self.leave_out(start, true);
                }
                // An object that the text quotes.
                Some(_) => self.at = after,
            }
        }
        self.leave_out_item(start);
    }

    /// The end of the complete object whose first name begins with this quote, if there is one.
    fn object_around_quote(&mut self, quote: usize) -> Option<usize> {
        let brace = quote.checked_sub(1)?;
        if self.bytes[brace] != b'{' || self.ahead == 0 || !self.is_member(quote) {
            return None;
        }
        let text = std::str::from_utf8(&self.bytes[brace..]).ok()?;
        let read = whole_object(text);
        let (Ok(length) | Err(length)) = read;
        self.ahead = self.ahead.saturating_sub(length);
        read.ok().map(|length| brace + length)
    }

    /// The comma before a name, if a string was read up to the quote that begins that name: `"x, "name": …`.
    fn comma_of_missing_quote(&self, start: usize, end: usize) -> Option<usize> {
        let inside = self.bytes.get(start + 1..end.checked_sub(1)?)?;
        let comma = inside.iter().rposition(|&byte| !is_white(byte))?;
        (inside[comma] == b',' && self.is_member(end - 1)).then_some(start + 1 + comma)
    }

    /// Whether a quoted name with a colon begins here.
    fn is_member(&self, quote: usize) -> bool {
        let inside = self.bytes[..self.end].get(quote + 1..).unwrap_or_default();
        let end = inside
            .iter()
            .position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        end.is_some_and(|end| {
            inside[end] == b'"' && self.after_white(quote + end + 2) == Some(b':')
        })
    }

    /// Passes over a number or word; returns whether it is valid JSON.
    fn word(&mut self) -> bool {
        let rest = &self.bytes[self.at..self.end];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let is_good = match &rest[..length] {
            b"true" | b"false" | b"null" => true,
            word => is_number(word),
        };
        self.at += length;
        is_good
    }

    /// Removes a member or element from `start` to the comma, bracket or line end that ends it.
    fn leave_out_item(&mut self, start: usize) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if depth == 0
                    && matches!(
                        self.after_white(self.at + 1),
                        Some(b',' | b':' | b'}' | b']')
                    ) =>
                {
                    // The closing quote of a string whose opening quote was not recognised.
                    self.at += 1;
                }
                b'"' => match self.string(false) {
                    StringEnd::Line if depth == 0 => break,
                    _ => {}
                },
                b'\n' => {
                    let white = self.bytes[self.at..self.end].iter();
                    self.at += white.take_while(|&&byte| is_white(byte)).count();
                    let is_member = self.frames.last().is_some_and(|frame| frame.is_object);
                    if depth == 0
                        && is_member
                        && self.peek() == Some(b'"')
                        && self.is_member(self.at)
                    {
                        break;
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if depth == 0 => break,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.leave_out(start, true);
    }

    /// Passes over a string, starting at its opening quote.
    fn string(&mut self, is_name: bool) -> StringEnd {
        let mut good = true;
        self.at += 1;
        loop {
            let Some(byte) = self.peek() else {
                return StringEnd::Text;
            };
            match byte {
                b'"' => {
                    self.at += 1;
                    return StringEnd::Quote { good };
                }
                b'\\' => match self.bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u') => match unicode_escape(self.bytes, self.at) {
                        Escape::Char { length, .. } => self.at += length,
                        Escape::Lone => self.at += 6,
                        Escape::Bad => {
                            good = false;
                            self.at += 2;
                        }
                    },
                    _ => {
                        good = false;
                        self.at += 1;
                    }
                },
                b'\n' | b'\r' => match self.quote_behind_line(is_name) {
                    Some(quote) => {
                        good = false;
                        self.at = quote;
                    }
                    None => return StringEnd::Line,
                },
                0..0x20 => {
                    good = false;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// The closing quote of a string that contains a line end. None if the next quote begins another string, so that
    /// this one's is missing.
    fn quote_behind_line(&self, is_name: bool) -> Option<usize> {
        let mut at = self.at;
        loop {
            match *self.bytes[..self.end].get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        match self.after_white(at + 1)? {
            b',' | b'}' | b']' => (!is_name).then_some(at),
            b':' => is_name.then_some(at),
            _ => None,
        }
    }
}

fn closer_of(frame: &Frame) -> char {
    if frame.is_object { '}' } else { ']' }
}

#[cfg(test)]
mod tests {
    use super::super::CorruptCode;
    use super::*;

    /// The kept text, and the pointers of what broke.
    fn saved(bytes: &[u8]) -> Option<(String, Vec<String>)> {
        salvage(bytes).map(|s| {
            let places = s.left_out.into_iter().map(|piece| piece.at);
            (s.document.into_text(), places.collect())
        })
    }

    #[track_caller]
    fn assert_saved(bytes: impl AsRef<[u8]>, text: &str, places: &[&str]) {
        let (kept, at) = saved(bytes.as_ref()).unwrap();
        assert_eq!(
            (kept.as_str(), at),
            (text, places.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn what_is_whole_takes_no_room_from_the_pointer_of_what_broke() {
        let steps: Vec<String> = (0..2_000)
            .map(|step| format!(r#"{{"a":{step}}}"#))
            .collect();
        let text = format!(r#"{{"steps": [{}], "score": NaN}}"#, steps.join(","));
        let (_, places) = saved(text.as_bytes()).unwrap();
        assert_eq!(places, ["/score"]);
    }

    #[test]
    fn a_torn_tail_costs_only_what_it_tore() {
        let start = br#"{"a": 1, "steps": [{"id": "x"}, {"id": "y", "summary": "half a sen"#;
        assert_saved(
            start,
            r#"{"a": 1, "steps": [{"id": "x"}, {"id": "y"}]}"#,
            &["/steps/1/summary"],
        );
    }

    #[test]
    fn what_is_left_out_is_told() {
        let bytes = b"{\n  \"a\": 1,\n  \"b\": [true, tr";
        let salvage = salvage(bytes).unwrap();
        let [left_out] = salvage.left_out.as_slice() else {
            panic!("{salvage:?}");
        };
        assert_eq!(salvage.document.text(), "{\n  \"a\": 1,\n  \"b\": [true]}");
        assert_eq!(
            (left_out.line, left_out.column, left_out.offset),
            (3, 13, 24)
        );
        assert_eq!(left_out.bytes, bytes.len() - 24);
        assert_eq!(left_out.at, "/b/1");
        let cause = salvage.cause.unwrap();
        assert_eq!(
            (cause.code, cause.offset),
            (CorruptCode::Truncated, bytes.len())
        );
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
            // The final line end belongs to the intended file.
            assert_eq!(salvage.document.text(), "{\"a\": 1}\n");
            let left_out = &salvage.left_out[0];
            assert_eq!((left_out.line, left_out.column), (2, 1));
            assert_eq!(
                (left_out.bytes, salvage.cause.unwrap().code),
                (tail.len(), code)
            );
        }
    }

    #[test]
    fn a_whole_document_among_what_is_left_out_is_named() {
        let appended = "{\"a\": 1}\n{\"a\": 2}\nlog\n{\"a\": 3}";
        let whole = |text: &str| {
            let pieces = salvage(text.as_bytes()).unwrap().left_out.into_iter();
            let places = pieces.map(|piece| (piece.line, piece.document.map(Document::into_text)));
            places.collect::<Vec<_>>()
        };
        let document = |text: &str| Some(text.to_owned());
        assert_eq!(
            whole(appended),
            [
                (2, document("{\"a\": 2}")),
                (3, None),
                (4, document("{\"a\": 3}"))
            ]
        );
        // Also after a torn document, but not for an object that a text quotes.
        let torn = "{\"a\": 1, \"b\": \"half{\"a\": 2, \"b\": \"all\"}\n";
        assert_eq!(
            whole(torn),
            [(1, None), (1, document("{\"a\": 2, \"b\": \"all\"}"))]
        );
        assert_saved(torn, "{\"a\": 1}", &["/b", ""]);
        let quoted = br#"{"a": 1, "b": "so {"a": 2} it is", "c": 3}"#;
        assert_saved(quoted, r#"{"a": 1, "c": 3}"#, &["/b"]);
    }

    #[test]
    fn a_number_at_the_damage_may_have_had_more_digits() {
        for tail in [&b""[..], b"\0\0", b"\xff", b"x", b"e", b"."] {
            let bytes = [b"{\"a\": 0, \"n\": 12", tail].concat();
            assert_saved(&bytes, "{\"a\": 0}", &["/n"]);
        }
        assert_saved(b"{\"a\": 0, \"n\": 12 ", "{\"a\": 0, \"n\": 12}", &[""]);
        assert_saved(b"{\"a\": 0, \"n\": 12,", "{\"a\": 0, \"n\": 12}", &[""]);
        assert_saved(b"{\"a\": [12]", "{\"a\": [12]}", &[""]);
    }

    #[test]
    fn strings_and_words_are_kept_once_they_end() {
        assert_saved(b"{\"a\": \"x\"", "{\"a\": \"x\"}", &[""]);
        assert_saved(b"{\"a\": \"x\"\0\0", "{\"a\": \"x\"}", &[""]);
        assert_saved(b"{\"a\": null", "{\"a\": null}", &[""]);
        assert_saved(b"{\"a\": 0, \"b\": nul", "{\"a\": 0}", &["/b"]);
        assert_saved("{\"a\": 0, \"b\": \"\u{e9}", "{\"a\": 0}", &["/b"]);
        assert_saved(b"{\"a\": 0, \"b\": \"\xc3", "{\"a\": 0}", &["/b"]);
        assert_saved(b"{\"a\": 0, \"b\": \"\\ud8", "{\"a\": 0}", &["/b"]);
    }

    #[test]
    fn quotes_that_were_not_escaped_cost_only_their_text() {
        let bytes = br#"{"a": 0, "note": "he said "yes" and left", "b": 1}"#;
        assert_saved(bytes, r#"{"a": 0, "b": 1}"#, &["/note"]);
        let bytes = br#"{"a": 0, "note": "he said "yes and left", "b": 1}"#;
        assert_saved(bytes, r#"{"a": 0, "b": 1}"#, &["/note"]);
        assert_saved(br#"{"a": 0, "b": nullable}"#, r#"{"a": 0}"#, &["/b"]);
    }

    #[test]
    fn one_bad_token_costs_at_most_the_value_it_is_in() {
        let token = |token: &str| format!("{{\"a\": 1, \"b\": {token}, \"c\": {{\"d\": [2]}}}}");
        for bad in [
            "NaN",
            "Infinity",
            "-Infinity",
            "undefined",
            "None",
            "True",
            "01",
            "+1",
            ".5",
            "1.",
            "0x10",
            "\"a\\d\"",
            "\"tab\there\"",
            "\"two\nlines\"",
            "'single, quotes'",
            "x y: z",
            "https://host/path",
            "\"open",
            "open\"",
            "",
            "[NaN]",
            "{\"e\": NaN}",
        ] {
            let (kept, places) = saved(token(bad).as_bytes()).unwrap();
            assert_eq!(kept, r#"{"a": 1, "c": {"d": [2]}}"#, "{bad}");
            assert_eq!(
                (places.len(), places[0].starts_with("/b")),
                (1, true),
                "{bad}"
            );
        }
        // Values around it stay.
        assert_saved(token("[1, NaN, 2]"), &token("[1, 2]"), &["/b/1"]);
        assert_saved(
            token("{\"e\": NaN, \"f\": 1}"),
            &token("{\"f\": 1}"),
            &["/b/e"],
        );
        assert_saved(
            token("{\"e\": 1, \"f\": NaN}"),
            &token("{\"e\": 1}"),
            &["/b/f"],
        );
        assert_saved(b"{\"a\": \"b\xe9\", \"c\": 1}", "{\"c\": 1}", &["/a"]);
        assert_saved(
            b"{\"a\": 1, \"b\xe9\": 2, \"c\": 3}",
            "{\"a\": 1, \"c\": 3}",
            &[""],
        );
        let lines = "{\n  \"a\": 1,\n  \"b\": NaN\n}\n";
        assert_saved(lines, "{\n  \"a\": 1\n}\n", &["/b"]);
        let lines = "{\n  \"a\": 1,\n  \"b\": \"open,\n  \"c\": 2\n}\n";
        assert_saved(lines, "{\n  \"a\": 1,\n  \"c\": 2\n}\n", &["/b"]);
        let lines = "{\n  \"a\": 1,\n  \"b: 2,\n  \"c\": 2\n}\n";
        assert_saved(lines, "{\n  \"a\": 1,\n  \"c\": 2\n}\n", &[""]);
    }

    #[test]
    fn on_one_line_a_slip_costs_no_other_member() {
        let kept = r#"{"a":{"b":{"d":1}},"e":["z"],"f":{"g":2}}"#;
        for (slip, place) in [
            // The quote is missing before the bracket, so the bracket is not part of the text.
            (
                r#"{"a":{"b":{"d":1,"c":"x}},"e":["z"],"f":{"g":2}}"#,
                "/a/b/c",
            ),
            (
                r#"{"a":{"b":{"d":1,"c":x"}},"e":["z"],"f":{"g":2}}"#,
                "/a/b/c",
            ),
            (
                r#"{"a":{"b":{"d":1,"c:"x"}},"e":["z"],"f":{"g":2}}"#,
                "/a/b",
            ),
            (
                r#"{"a":{"b":{"d":1,c":"x"}},"e":["z"],"f":{"g":2}}"#,
                "/a/b",
            ),
            (
                r#"{"a":{"b":{"d":1,"c":"5" x"}},"e":["z"],"f":{"g":2}}"#,
                "/a/b/c",
            ),
            // This may be one text with an extra quote.
            (
                r#"{"a":{"b":{"d":1}},"e":["x,"y","z"],"f":{"g":2}}"#,
                "/e/0",
            ),
            (r#"{"a":{"b":{"d":1}}},"e":["z"],"f":{"g":2}}"#, ""),
            (r#"{"a":{"b":{"d":1}},"e":[["z"],"f":{"g":2}}"#, "/e"),
            (r#"{"a":{"b":{{"d":1}},"e":["z"],"f":{"g":2}}"#, "/a/b"),
            (r#"{"a":{"b":{"d":1}},"e":["z"],"f":{"g":2}}}"#, ""),
        ] {
            let (text, places) = saved(slip.as_bytes()).unwrap();
            assert_eq!((text.as_str(), places[0].as_str()), (kept, place), "{slip}");
        }
        // Either of the two brackets may be the extra one, so the values between them may be in either object.
        let slip = br#"{"a":{"b":{"x":1}},"c":{"y":1}},"d":1}"#;
        assert_saved(slip, r#"{"a":{"b":{"x":1}},"d":1}"#, &["/a"]);
    }

    #[test]
    fn what_stands_around_values_costs_none() {
        let whole = "{\"a\": [1, 2], \"b\": 3}";
        for (slip, places) in [
            ("{\"a\": [1, 2,], \"b\": 3}", &["/a"][..]),
            ("{\"a\": [1, 2], \"b\": 3,}", &[""]),
            ("{\"a\": [,1, 2], \"b\": 3}", &["/a"]),
            ("{\"a\": [1,, 2], \"b\": 3}", &["/a"]),
            ("```json\n{\"a\": [1, 2], \"b\": 3}```", &["", ""]),
            ("// why\n{\"a\": [1, /* what */2], \"b\": 3}", &["", "/a"]),
            ("\0{\"a\": [1, 2], \"b\": 3}", &[""]),
            ("{\"a\": [1, 2] \"b\": 3}", &[""]),
            ("{\"a\": [1, 2]], \"b\": 3}", &[""]),
            ("{\"a\": [[1, 2], \"b\": 3}", &["/a"]),
            ("{{\"a\": [1, 2], \"b\": 3}", &[""]),
        ] {
            let Some((kept, at)) = saved(slip.as_bytes()) else {
                panic!("{slip}");
            };
            let plain = |text: &str| text.replace(' ', "");
            assert_eq!(
                (plain(&kept), at.as_slice()),
                (
                    plain(whole),
                    &*places.iter().map(ToString::to_string).collect::<Vec<_>>()
                ),
                "{slip}"
            );
        }
        // A missing comma.
        let bytes = b"{\n\"a\": \"x\"\n\"b\": 1\n}";
        assert_saved(bytes, "{\n\"a\": \"x\",\n\"b\": 1\n}", &[""]);
        assert_saved(
            b"{\"a\": \"x\" \"b\": 1}",
            "{\"a\": \"x\", \"b\": 1}",
            &[""],
        );
        assert_saved(b"{\"a\": [{} {}]}", "{\"a\": [{}, {}]}", &["/a"]);
        // A missing bracket.
        assert_saved(b"{\"a\": [1, 2, \"b\": 3}", "{\"a\": [1, 2]}", &["/a/2"]);
    }

    #[test]
    fn what_has_nothing_whole_in_it_goes() {
        assert_saved(
            b"{\"a\": {}, \"b\": {\"c\": [{\"d\": ",
            "{\"a\": {}}",
            &["/b/c/0/d"],
        );
        assert_saved(b"{\"a\": [], \"b/c\": [[[", "{\"a\": []}", &["/b~1c/0/0"]);
        assert_saved(b"{\"a\": 0, \"b", "{\"a\": 0}", &[""]);
    }

    #[test]
    fn git_conflicts_are_a_persons_choice() {
        let text = "{\n<<<<<<< HEAD\n\"a\": 1\n=======\n\"a\": 2\n>>>>>>> other\n}\n";
        assert_eq!(saved(text.as_bytes()), None);
        let cause = Document::parse(text.as_bytes()).unwrap_err();
        assert_eq!(
            (cause.code, cause.line, cause.offset),
            (CorruptCode::MergeConflict, 2, 2)
        );
        assert_eq!(
            cause.message,
            "git conflict markers at lines 2-6: resolve the merge"
        );
        // The format of the file can still be detected.
        let good = good_part(text.as_bytes(), cause).unwrap();
        assert!(good.document.get("/a").is_some());
        // A line of equals signs alone is no conflict marker.
        assert!(saved(b"{\"a\": 1,\n=======\n\"b\": 2}").is_some());
    }

    #[test]
    fn nothing_left_is_nothing() {
        for bytes in [
            &b""[..],
            b" \n",
            b"\0\0\0",
            b"\xef\xbb\xbf",
            b"{",
            b"{\"a\"",
            b"{\"a\": 12",
            b"{\"a\": NaN}",
            b"[1, 2",
            b"[1, 2]",
            b"\"text\"",
            b"\xff\xfe{\0",
            b"status: done",
            b"status: {\"a\": 1}",
        ] {
            assert_eq!(saved(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_document_is_its_own_salvage() {
        for text in ["{}", "\u{feff} {\"a\": 1e400} \r\n", "{\"a\":1,\"a\":2}"] {
            let salvage = salvage(text.as_bytes()).unwrap();
            assert_eq!(salvage.document.text(), text);
            assert_eq!((salvage.cause, salvage.left_out), (None, Vec::new()));
        }
    }

    #[test]
    fn too_deep_stays_too_deep() {
        let nested = |n: usize| format!("{{\"a\": 0, \"b\": {}", "[".repeat(n - 1));
        let salvage = salvage(nested(MAX_DEPTH + 1).as_bytes()).unwrap();
        assert_eq!(salvage.document.text(), "{\"a\": 0}");
        assert_eq!(salvage.cause.unwrap().code, CorruptCode::TooDeep);
        // The greatest depth of a document.
        let text = format!("{}{}", nested(MAX_DEPTH), "1, 2, ");
        let (saved, _) = saved(text.as_bytes()).unwrap();
        let wanted = format!("{}1, 2{}}}", nested(MAX_DEPTH), "]".repeat(MAX_DEPTH - 1));
        assert_eq!(saved, wanted);
    }

    /// Each of these would take hours if any part were scanned repeatedly.
    #[test]
    fn hostile_texts_take_linear_time() {
        let (few, many) = (50_000, 1_000_000);
        assert_eq!(saved("[".repeat(many).as_bytes()), None);
        let name = "n".repeat(few);
        for unit in [
            "[",
            "{",
            "{\"b\": [],",
            "\"",
            "\"\n",
            "\n",
            "'",
            "\\",
            "/*",
            "//",
            "/",
            "#",
            ",",
            ":",
            "NaN,",
            "\"a\": ",
            "\"a\",",
            "{\"a\":",
            "\"\\",
            "\"x\n\"",
            "}",
            "]",
            "{]",
            "\"{\"a\":1}",
            "\u{1}",
            " ",
            "{x",
            "\" ",
            "1 ",
            "[NaN],",
            "\"a\": NaN,",
            "[[],[]],",
            "\"\",",
            "\",\",",
        ] {
            let text = format!("{{\"a\": 1, \"{name}\": [{}", unit.repeat(few));
            assert!(saved(text.as_bytes()).is_some(), "{unit}");
            let text = format!("{{\"a\": 1}}{}", unit.repeat(few));
            assert!(saved(text.as_bytes()).is_some(), "{unit}");
        }
    }
}
