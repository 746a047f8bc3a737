//! Texts of bounded length, so that a row does not grow with its document.

use unicode_segmentation::UnicodeSegmentation;

use crate::checkpoint::Timestamp;
use crate::is_blank;

/// The most bytes of a text in a row.
const MOST_BYTES: usize = 256;
/// The most bytes of a message.
const MOST_OF_A_MESSAGE: usize = 4096;
/// The longest text that can be a stamp.
const MOST_OF_A_STAMP: usize = 64;
const CUT: &str = "…";

/// A text of at most 256 bytes.
pub(super) fn text(text: &str) -> String {
    within(text, MOST_BYTES)
}

/// The first few of such texts.
pub(super) fn texts(texts: &[String]) -> Vec<String> {
    const MOST: usize = 6;
    texts.iter().take(MOST).map(|it| text(it)).collect()
}

/// A text of at most 256 bytes, where it says something.
pub(super) fn said(said: Option<&str>) -> Option<String> {
    said.filter(|said| !is_blank(said)).map(text)
}

/// A message of at most 4 KiB.
pub(super) fn message(text: &str) -> String {
    within(text, MOST_OF_A_MESSAGE)
}

/// A stamp of at most 64 bytes: a longer text is none.
pub(super) fn stamp(stamp: &Timestamp) -> Timestamp {
    if stamp.text().len() <= MOST_OF_A_STAMP {
        stamp.clone()
    } else {
        Timestamp::parse(within(stamp.text(), MOST_OF_A_STAMP))
    }
}

fn within(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        if at + cluster.len() + CUT.len() > most {
            break;
        }
        end = at + cluster.len();
    }
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_text_is_cut_between_clusters_and_never_longer() {
        let long = "👩‍👩‍👧".repeat(100);
        let cut = super::text(&long);
        assert!(cut.len() <= 256 && cut.ends_with('…'));
        assert!(long.starts_with(cut.trim_end_matches('…')));
        assert_eq!(cut.trim_end_matches('…').len() % "👩‍👩‍👧".len(), 0);
        assert_eq!(super::text("short"), "short");
    }
}
