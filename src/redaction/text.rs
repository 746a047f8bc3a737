//! A text, and a secret in it.

/// A secret in a text.
pub(super) struct Secret {
    /// How many bytes stay before it, such as `password=`.
    pub(super) keep: usize,
    /// How many bytes it has.
    pub(super) length: usize,
    /// What it is, for the mark.
    pub(super) kind: &'static str,
}

impl Secret {
    /// A secret that begins where it was looked for.
    pub(super) fn new(length: usize, kind: &'static str) -> Self {
        Secret {
            keep: 0,
            length,
            kind,
        }
    }
}

/// A text, and where in it a secret is looked for.
pub(super) struct Text<'t> {
    pub(super) whole: &'t str,
    pub(super) at: usize,
    pub(super) tried: Tried,
}

/// Up to where each shape was tried in vain that goes to the end of a run of letters, however long: from a later
/// start it goes to the same end and finds no more. So every letter is looked at a few times, not once for each
/// start before it.
#[derive(Default)]
pub(super) struct Tried {
    pub(super) openai: usize,
    pub(super) jwt: usize,
    pub(super) url: usize,
    pub(super) assigned: usize,
    bare: BareValue,
}

/// A value that is assigned without quotes: its end, and what of it stands last.
#[derive(Clone, Copy, Default)]
pub(super) struct BareValue {
    pub(super) end: usize,
    pub(super) last_digit: Option<usize>,
    pub(super) last_bracket: Option<usize>,
}

impl<'t> Text<'t> {
    /// What begins here.
    pub(super) fn rest(&self) -> &'t str {
        self.whole.get(self.at..).unwrap_or_default()
    }

    /// What stands before.
    pub(super) fn before(&self) -> &'t str {
        self.whole.get(..self.at).unwrap_or_default()
    }

    /// The value without quotes that `start` is in.
    pub(super) fn bare_value(&mut self, start: usize) -> BareValue {
        if start >= self.tried.bare.end {
            let mut bare = BareValue {
                end: self.whole.len(),
                ..BareValue::default()
            };
            for (at, letter) in self.whole.get(start..).unwrap_or_default().char_indices() {
                match letter {
                    '0'..='9' => bare.last_digit = Some(start + at),
                    '(' | '<' => bare.last_bracket = Some(start + at),
                    _ if letter.is_whitespace() || ",;\"'&)}".contains(letter) => {
                        bare.end = start + at;
                        break;
                    }
                    _ => {}
                }
            }
            self.tried.bare = bare;
        }
        self.tried.bare
    }
}

/// How many bytes at the start are such.
pub(super) fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}
