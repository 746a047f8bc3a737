//! The good part of a damaged file.

use serde::Serialize;

use super::corrupt::{Corrupt, conflict};
use super::document::Document;
use super::parser::{MAX_DEPTH, whole_object};
use super::pointer;
use super::slip::{Slip, slip};
use super::text::{Escape, is_number, is_white, unescape, unicode_escape};
use super::tree::NONE;

/// What can be saved of a file, and what cannot.
///
/// The document is the text of the file without the pieces that were skipped, and with the commas and closing brackets
/// that are missing in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Salvage {
    /// The good part.
    pub document: Document,
    /// Why the file is no document; none if it is one, and then nothing was skipped.
    pub cause: Option<Corrupt>,
    /// All that is not in the document, in the order of the file.
    pub left_out: Vec<LeftOut>,
}

/// A piece of a file that a [`Salvage`] skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Line where it begins, from 1; a line ends with `\n`.
    pub line: usize,
    /// Column of that place in its line, from 1, in characters.
    pub column: usize,
    /// Bytes of the file before it.
    pub offset: usize,
    /// How many bytes of the file it is; 0 where only a comma or a bracket was missing.
    pub bytes: usize,
    /// The pointer of the innermost value in which the text broke there, such as `/completed_steps/3/summary`, as the file
    /// counts; empty for the root, and where so much is broken that the pointers would be longer than the file.
    pub at: String,
    /// The document, where the piece is a whole one: one that was appended, or what a shorter text was written over.
    #[serde(skip)]
    pub document: Option<Document>,
}

/// The good part of the bytes of a file: of one that was cut off, of a short text over a longer one, of one that ends
/// in NUL bytes, of one with slips in the middle.
///
/// All members and elements are kept that are whole, before the damage and behind it. One bad token (`NaN`, a comment, a
/// trailing comma, a code fence around the text, a raw byte, a line end in a string, a quote that is missing) costs at
/// most the value that it is in. Nothing is guessed: a string without its end, a number that may have had more digits, and
/// a value after which something stands that belongs neither to it nor to JSON are skipped, and so is an object or array
/// of which nothing else is left. Of members with the same name the last one counts.
///
/// Where no more is wrong than one quote too few or too many, or one bracket that stands there twice, every way to mend
/// that is compared, and only what all of them agree on is kept, in its place: mostly all but the member with the quote,
/// and all where it is a bracket. Of a list of texts the next one may go too. A text that begins with a whole object is
/// that object, unless the rest goes on with a comma.
///
/// Bytes that are a document give that document. `None` means that nothing is left: no object, no whole member in
/// it, or git conflict markers, between which a person has to choose. The document is never nested deeper than
/// [`MAX_DEPTH`](super::MAX_DEPTH).
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

/// The good part of bytes that are no document, whatever is wrong with them: to see what file it was.
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

/// The bytes as a text of the same length: a byte that is not UTF-8 becomes a control character, which no part of JSON
/// may have.
fn same_length_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1}'));
    }
    text
}

/// Where a text begins like an object, after whatever may stand before one by mistake: byte order marks, white space, NUL
/// bytes, comments, a code fence, a conflict marker.
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

/// What stands before the object and does not belong there.
fn head(text: &str) -> Option<Cut> {
    let harmless = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_harmless = harmless.bytes().all(is_white);
    (!is_harmless).then(|| Cut::new(0, text.len(), String::new()))
}

/// A piece of the text that goes, and the pointer of what it broke.
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

/// The text without the cuts and with the inserts, and the cuts without those that lie in others.
fn apply(text: &str, cuts: &mut Vec<Cut>, inserts: &mut [(usize, char)]) -> (String, Vec<Cut>) {
    // Of two at one place the longer comes first, and has the other in it.
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
    // Stable: of several at one place each closes what the one before it is in.
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
            // What lies in a piece that goes, goes with it.
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

/// The pieces with their lines and columns, in one pass over the text.
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

/// An object or array that was begun.
struct Frame {
    is_object: bool,
    /// Where it begins, with its name.
    item: usize,
    /// The name of its present member, with its quotes.
    name: Option<(usize, usize)>,
    /// How many elements it has, the present one included.
    count: usize,
    /// The end of its last whole value.
    last_end: Option<usize>,
    /// Whether a comma follows that.
    has_comma: bool,
    /// Where what must go before the next value begins, with the pointer of what broke there.
    junk: Option<(usize, String)>,
    /// The end of the last comma and of the last thing that must go.
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

/// Where a string ends.
enum StringEnd {
    /// With its quote; whether all in it is as it should be.
    Quote { good: bool },
    /// With its line: the quote is missing.
    Line,
    /// Nowhere.
    Text,
}

/// One pass over a text that is not quite JSON. It finds what has to go and what has to come.
///
/// Whatever is looked at ahead is passed over soon after, so that the time is linear in the text.
struct Rescue<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The end of the text, without the NUL bytes that a file system filled it up with.
    end: usize,
    frames: Vec<Frame>,
    cuts: Vec<Cut>,
    inserts: Vec<(usize, char)>,
    /// How many bytes the pointers may still have.
    pointers: usize,
    /// How many bytes may still be read as an object that a string is torn by.
    ahead: usize,
    /// What has to go where no more is wrong than one quote or bracket.
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

    /// None where nothing is left.
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
        // The line end belongs to the file that was meant.
        while self.bytes.get(self.at).copied().is_some_and(is_white) {
            self.at += 1;
        }
        self.leave_out_tail(self.at, None);
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes[..self.end].get(self.at).copied()
    }

    /// The next byte from here on that is no white space.
    fn after_white(&self, from: usize) -> Option<u8> {
        let rest = self.bytes[..self.end].get(from..)?;
        rest.iter().copied().find(|&byte| !is_white(byte))
    }

    /// Passes over white space, and leaves comments out, and a bracket that stands there twice.
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

    /// The pointer of the container that is read, or of its present item.
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

    /// Skips what stands between `start` and here.
    fn leave_out(&mut self, start: usize, of_item: bool) {
        let is_first = self.frames.last().is_some_and(|frame| frame.junk.is_none());
        let at = is_first.then(|| self.pointer(of_item));
        // White space before the next bracket stays where it is.
        let gone = self.bytes[start..self.at].trim_ascii_end().len();
        if let Some(frame) = self.frames.last_mut() {
            if let Some(at) = at {
                frame.junk = Some((start, at));
            }
            frame.tail = start + gone;
        }
    }

    /// Skips the items that a quote too many or too few made unclear, and closes what they may have closed.
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

    /// Keeps the value with its name between `start` and `end`.
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

    /// Leaves the innermost container, in which something is broken: with the pointer of what broke first.
    fn leave(&mut self) -> Option<(Frame, String)> {
        let junk = self.frames.last_mut()?.junk.take();
        let at = junk.map_or_else(|| self.pointer(false), |(_, at)| at);
        Some((self.frames.pop()?, at))
    }

    /// Ends the innermost container: at its bracket, which was just passed, or here, where the bracket is missing.
    fn end_container(&mut self, is_missing: bool) -> Option<()> {
        let here = self.at;
        // The room for pointers is for what broke.
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

    /// What has nothing whole in it goes: a list that lost all it had is not an empty one. None for the root.
    fn lose_container(&mut self, item: usize, at: String) -> Option<()> {
        let here = self.at;
        let parent = self.frames.last_mut()?;
        parent.junk.get_or_insert((item, at));
        parent.tail = here;
        Some(())
    }

    /// The text ends inside of the object: what is behind the last whole value goes.
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

    /// Skips the rest of the text from here on, with the whole documents in it each by itself. `torn` is what broke
    /// where the rest is not behind a whole object.
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

    /// A member or an element, which begins here.
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

    /// Reads the name of a member and its colon; what has none goes.
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

    /// A string, number or word has been read, up to here. Whether it ends here, what follows must confirm:
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
            // No string has a line end in it.
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
                // Another document was written behind one that is torn.
                None | Some(b'{') => {
                    self.end = end - 2;
                    self.at = self.end;
                    return self.leave_out(start, true);
                }
                // One that the text quotes.
                Some(_) => self.at = after,
            }
        }
        self.leave_out_item(start);
    }

    /// The end of the whole object of which this quote begins the first name, if it does.
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

    /// Where a string ended at the quote that begins the next name, the comma before that: `"x, "name": …`.
    fn comma_of_missing_quote(&self, start: usize, end: usize) -> Option<usize> {
        let inside = self.bytes.get(start + 1..end.checked_sub(1)?)?;
        let comma = inside.iter().rposition(|&byte| !is_white(byte))?;
        (inside[comma] == b',' && self.is_member(end - 1)).then_some(start + 1 + comma)
    }

    /// Whether a name in quotes with a colon begins here.
    fn is_member(&self, quote: usize) -> bool {
        let inside = self.bytes[..self.end].get(quote + 1..).unwrap_or_default();
        let end = inside
            .iter()
            .position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        end.is_some_and(|end| {
            inside[end] == b'"' && self.after_white(quote + end + 2) == Some(b':')
        })
    }

    /// Passes over a number or a word that JSON has; false where it is none.
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

    /// Skips a member or an element from `start` to the comma, bracket or line end that ends it.
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
                    // It closes what was not seen to open.
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

    /// Passes over a string, from its opening quote on.
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

    /// The quote that ends a string behind a line end in it; none where the next quote begins another string, so that
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

    /// What is kept, and where it broke.
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
            // The line end belongs to the file that was meant.
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
        // Behind one that is torn, too; but not one that a text quotes.
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
        // What is around it stays.
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
            // The quote is missing before the bracket, so that this is none of the text.
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
            // It may be one text, with a quote too many.
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
        // Which of the two ends is there twice is unknown: what is between them may be in either object.
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
        // It is still seen what file it was.
        let good = good_part(text.as_bytes(), cause).unwrap();
        assert!(good.document.get("/a").is_some());
        // A line of equal signs alone is none.
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
        // As deep as a document can be.
        let text = format!("{}{}", nested(MAX_DEPTH), "1, 2, ");
        let (saved, _) = saved(text.as_bytes()).unwrap();
        let wanted = format!("{}1, 2{}}}", nested(MAX_DEPTH), "]".repeat(MAX_DEPTH - 1));
        assert_eq!(saved, wanted);
    }

    /// Each of these would take hours, were anything in it looked at again and again.
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
