//! A text, and a secret in it.

/// A secret in a text.
pub(super) struct Secret {
    /// How many bytes before it stay, such as `password=`.
    pub(super) keep: usize,
    /// Its length in bytes.
    pub(super) length: usize,
    /// Its kind, for the mark.
    pub(super) kind: &'static str,
}

impl Secret {
    /// A secret that begins at the current position.
    pub(super) fn new(length: usize, kind: &'static str) -> Self {
        Secret {
            keep: 0,
            length,
            kind,
        }
    }
}

/// A text, and the position in it at which a secret is searched.
pub(super) struct Text<'t> {
    pub(super) whole: &'t str,
    pub(super) at: usize,
    pub(super) tried: Tried,
}

/// For each shape that extends to the end of a run of letters: the end up to which it was tried in vain. A later start
/// in the same run reaches the same end and finds no more, so each letter is scanned a few times and not once for every
/// start before it.
#[derive(Default)]
pub(super) struct Tried {
    pub(super) openai: usize,
    pub(super) jwt: usize,
    pub(super) url: usize,
    pub(super) assigned: usize,
    bare: BareValue,
}

/// An unquoted assigned value: its end, and the last digit and bracket in it.
#[derive(Clone, Copy, Default)]
pub(super) struct BareValue {
    pub(super) end: usize,
    pub(super) last_digit: Option<usize>,
    pub(super) last_bracket: Option<usize>,
}

impl<'t> Text<'t> {
    /// The text from here on.
    pub(super) fn rest(&self) -> &'t str {
        self.whole.get(self.at..).unwrap_or_default()
    }

    /// The text before this position.
    pub(super) fn before(&self) -> &'t str {
        self.whole.get(..self.at).unwrap_or_default()
    }

    /// The unquoted value that contains `start`.
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

/// The number of leading bytes for which `is` holds.
pub(super) fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}
