//! A text of a checkpoint as the page shows it.

use serde::Serialize;

use crate::output::one_line;

/// A text without secrets, on one line, in which nothing hides; the template escapes its HTML.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Shown(String);

/// The most letters of a text.
const MOST: usize = 400;

impl Shown {
    /// The text, or its start where it is longer than any that is read on a page.
    pub(super) fn new(text: impl AsRef<str>) -> Shown {
        // A secret that was cut would no longer be known as one.
        let text = one_line(text.as_ref());
        let start: String = text.chars().take(MOST).collect();
        match start.len() < text.len() {
            true => Shown(format!("{start}…")),
            false => Shown(text),
        }
    }

    /// The texts that are there.
    pub(super) fn all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Shown> {
        texts.into_iter().map(Shown::new).collect()
    }
}
