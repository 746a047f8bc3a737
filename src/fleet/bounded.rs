//! Bounds the length of texts, so that the size of a row does not depend on its document.

use unicode_segmentation::UnicodeSegmentation;

use crate::checkpoint::Timestamp;
use crate::is_blank;

/// The most bytes of a text in a row.
const MOST_BYTES: usize = 256;
/// The most bytes of a message.
const MOST_OF_A_MESSAGE: usize = 4096;
/// The most bytes of a stamp.
const MOST_OF_A_STAMP: usize = 64;
const CUT: &str = "…";

/// Cuts a text to 256 bytes.
pub(super) fn text(text: &str) -> String {
    within(text, MOST_BYTES)
}

/// Keeps the first few texts, each cut to 256 bytes.
pub(super) fn texts(texts: &[String]) -> Vec<String> {
    const MOST: usize = 6;
    texts.iter().take(MOST).map(|it| text(it)).collect()
}

/// Cuts a text to 256 bytes; `None` if it is blank.
pub(super) fn said(said: Option<&str>) -> Option<String> {
    said.filter(|said| !is_blank(said)).map(text)
}

/// Cuts a message to 4 KiB.
pub(super) fn message(text: &str) -> String {
    within(text, MOST_OF_A_MESSAGE)
}

/// Cuts the text of a stamp to 64 bytes; a longer one is no time.
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
