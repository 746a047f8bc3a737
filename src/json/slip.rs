//! Finds the damage in a text that is JSON except for one quote or one bracket.

use super::parser::MAX_DEPTH;
use super::text::{is_number, is_white};

/// The text to remove so that the rest is JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
    /// A bracket that is written twice, at this offset.
    Bracket(usize),
    /// Adjacent items, with the ends of containers between them.
    Items {
        /// The offset of the first item, or of the first end of a container.
        start: usize,
        /// The offset of the comma or bracket after the last one.
        end: usize,
        /// How many containers are open there.
        depth: usize,
    },
}

/// The most repairs that are compared.
const MOST: usize = 32;

/// The most steps of all attempts together, for each byte of the text.
const STEPS: usize = 64;

/// The damage in a text that becomes JSON by adding a quote, or removing a quote or one of two equal brackets.
///
/// Every repair is tried, and the part on which they disagree is removed: whichever repair is right, the rest is as it
/// was meant. None if there is no repair or too many, and if the text is only cut off.
pub(super) fn slip(text: &[u8], begin: usize) -> Option<Slip> {
    let mut state = State::new();
    let mut fault = begin + 1;
    while state.step(text, fault, *text.get(fault)?).is_some() {
        fault += 1;
    }
    // After a complete object comes the rest of another text, unless it continues like an object.
    if state.expects == Expects::End && text[fault] != b',' {
        return None;
    }
    let ways = ways(text, begin, fault)?;
    match ways[..] {
        [Way::Without(at)] if text[at] != b'"' => Some(Slip::Bracket(at)),
        _ => items(text, begin, &ways),
    }
}

/// One repair of a text.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A quote inserted before this byte.
    Quote(usize),
    /// This byte removed.
    Without(usize),
}

impl Way {
    fn place(self) -> usize {
        let (Way::Quote(at) | Way::Without(at)) = self;
        at
    }
}

/// All repairs of a text that breaks at `fault`, in order.
fn ways(text: &[u8], begin: usize, fault: usize) -> Option<Vec<Way>> {
    let is_quote_wrong = !unescaped_quotes(&text[begin..]).is_multiple_of(2);
    let mut steps = text.len().saturating_mul(STEPS);
    let mut ways = Vec::new();
    let mut state = State::new();
    for at in begin + 1..=fault {
        let (before, byte, after) = (text[at - 1], *text.get(at)?, text.get(at + 1));
        let mut attempt = |way, mut state: State| {
            let from = match way {
                Way::Quote(_) => state.step(text, at, b'"').map(|()| at),
                Way::Without(_) => Some(at + 1),
            };
            let mut rest = from?..text.len();
            let fails = rest.find(|&at| {
                steps = steps.saturating_sub(1);
                state.step(text, at, text[at]).is_none()
            });
            (fails.is_none() && state.expects == Expects::End).then(|| ways.push(way))
        };
        if is_quote_wrong {
            // Within white space the exact place does not matter.
            if !is_white(byte) || !is_white(before) {
                attempt(Way::Quote(at), state);
            }
            // In a name, the quote of the next member is more likely than an extra one.
            if byte == b'"' && !matches!(state.expects, Expects::Text { is_name: true, .. }) {
                attempt(Way::Without(at), state);
            }
        } else if matches!(byte, b'{' | b'}' | b'[' | b']')
            && before == byte
            && after != Some(&byte)
        {
            attempt(Way::Without(at), state);
        }
        if steps == 0 || ways.len() > MOST {
            return None;
        }
        if at < fault {
            state.step(text, at, byte)?;
        }
    }
    Some(ways)
}

/// The smallest range of items in which the repairs differ.
fn items(text: &[u8], begin: usize, ways: &[Way]) -> Option<Slip> {
    let (first, last) = (ways.first()?.place(), ways.last()?);
    // The start of the current item of each open container.
    let mut starts = Vec::new();
    let mut state = State::new();
    for at in begin + 1..=first {
        if state.is_before_item() {
            starts.truncate(state.depth - 1);
            starts.resize(state.depth, at);
        }
        if at < first {
            state.step(text, at, text[at])?;
        }
    }
    starts.truncate(state.depth);
    let start = match state.expects {
        Expects::CommaOrClose => first,
        _ => starts.pop()?,
    };
    let white = text[start..].iter().take_while(|&&byte| is_white(byte));
    let start = start + white.count();
    let mut states = vec![state; ways.len()];
    let mut least = state.depth;
    for at in first..text.len() {
        for (state, way) in states.iter_mut().zip(ways) {
            if matches!(*way, Way::Quote(place) if place == at) {
                state.step(text, at, b'"')?;
            }
        }
        let is_behind = match *last {
            Way::Quote(last) => at >= last,
            Way::Without(last) => at > last,
        };
        let depth = states.first()?.depth;
        if is_behind
            && matches!(text[at], b',' | b'}' | b']')
            && (1..=least).contains(&depth)
            && (states.iter()).all(|state| state.depth == depth && !state.is_in_string())
        {
            return Some(Slip::Items {
                start,
                end: at,
                depth,
            });
        }
        for (state, way) in states.iter_mut().zip(ways) {
            if !matches!(*way, Way::Without(place) if place == at) {
                state.step(text, at, text[at])?;
            }
            least = least.min(state.depth);
        }
    }
    // They never agree again, so the text is treated as if it ended there.
    Some(Slip::Items {
        start,
        end: text.len(),
        depth: state.depth,
    })
}

fn unescaped_quotes(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let mut quotes = 0;
    for byte in text {
        quotes += usize::from(*byte == b'"' && !is_escaped);
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    quotes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Value,
    ValueOrClose,
    Name,
    NameOrClose,
    Colon,
    CommaOrClose,
    /// More of a string; `escape` counts the missing bytes of an escape.
    Text {
        is_name: bool,
        escape: u8,
    },
    /// More of a number or word that began at this offset.
    Word(usize),
    /// Nothing but white space.
    End,
}

/// The state of a strict JSON reader between two bytes. It is small, so that an attempt can continue from any copy.
#[derive(Clone, Copy, Debug)]
struct State {
    /// A bit for each open container, set for an object; the lowest bit is the innermost one.
    objects: u128,
    depth: usize,
    expects: Expects,
}

impl State {
    /// The state after the bracket that begins the root.
    fn new() -> State {
        State {
            objects: 1,
            depth: 1,
            expects: Expects::NameOrClose,
        }
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn is_in_string(&self) -> bool {
        matches!(self.expects, Expects::Text { .. })
    }

    fn is_before_item(&self) -> bool {
        match self.expects {
            Expects::Name | Expects::NameOrClose | Expects::ValueOrClose => true,
            Expects::Value => !self.is_in_object(),
            _ => false,
        }
    }

    /// Reads the byte at `at`; none if JSON does not allow it.
    fn step(&mut self, text: &[u8], at: usize, byte: u8) -> Option<()> {
        match self.expects {
            Expects::Text { is_name, escape } => return self.text(is_name, escape, byte),
            Expects::Word(start) => {
                if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) {
                    return Some(());
                }
                let word = &text[start..at];
                if !matches!(word, b"true" | b"false" | b"null") && !is_number(word) {
                    return None;
                }
                self.expects = Expects::CommaOrClose;
            }
            _ => {}
        }
        if is_white(byte) {
            return Some(());
        }
        self.expects = match (self.expects, byte) {
            (Expects::Value | Expects::ValueOrClose, b'{' | b'[') if self.depth < MAX_DEPTH => {
                let is_object = byte == b'{';
                self.objects = self.objects << 1 | u128::from(is_object);
                self.depth += 1;
                match is_object {
                    true => Expects::NameOrClose,
                    false => Expects::ValueOrClose,
                }
            }
            (Expects::Value | Expects::ValueOrClose, b'"') => Expects::Text {
                is_name: false,
                escape: 0,
            },
            (Expects::Value | Expects::ValueOrClose, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                Expects::Word(at)
            }
            (Expects::Name | Expects::NameOrClose, b'"') => Expects::Text {
                is_name: true,
                escape: 0,
            },
            (Expects::Colon, b':') => Expects::Value,
            (Expects::CommaOrClose, b',') if self.is_in_object() => Expects::Name,
            (Expects::CommaOrClose, b',') => Expects::Value,
            (Expects::CommaOrClose | Expects::NameOrClose, b'}') if self.is_in_object() => {
                self.close()
            }
            (Expects::CommaOrClose | Expects::ValueOrClose, b']') if !self.is_in_object() => {
                self.close()
            }
            _ => return None,
        };
        Some(())
    }

    fn close(&mut self) -> Expects {
        self.objects >>= 1;
        self.depth -= 1;
        match self.depth {
            0 => Expects::End,
            _ => Expects::CommaOrClose,
        }
    }

    fn text(&mut self, is_name: bool, escape: u8, byte: u8) -> Option<()> {
        let escape = match (escape, byte) {
            (0, b'"') => {
                self.expects = match is_name {
                    true => Expects::Colon,
                    false => Expects::CommaOrClose,
                };
                return Some(());
            }
            // The bytes after a backslash: one, or `u` and four more.
            (0, b'\\') => 5,
            (0, 0x20..) => 0,
            (5, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
            (5, b'u') => 4,
            (1..=4, _) if byte.is_ascii_hexdigit() => escape - 1,
            _ => return None,
        };
        self.expects = Expects::Text { is_name, escape };
        Some(())
    }
}
