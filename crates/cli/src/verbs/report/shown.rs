//! A text of a checkpoint in the form that the page shows.

use serde::Serialize;

use crate::output::one_line;

/// A text without secrets or hidden characters, on one line. The template escapes it for HTML.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Shown(String);

/// The longest text in characters.
const MOST: usize = 400;

impl Shown {
    /// The text, cut if it is too long for a page.
    pub(super) fn new(text: impl AsRef<str>) -> Shown {
        // Redact first: a secret that was cut is no longer recognized.
        let text = one_line(text.as_ref());
        let start: String = text.chars().take(MOST).collect();
        match start.len() < text.len() {
            true => Shown(format!("{start}…")),
            false => Shown(text),
        }
    }

    /// All of these texts.
    pub(super) fn all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Shown> {
        texts.into_iter().map(Shown::new).collect()
    }
}
