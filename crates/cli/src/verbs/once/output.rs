//! What a command wrote: passed on as it comes, and kept for the next time.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

/// How many bytes of each stream are kept.
const MOST: usize = 24 * 1024;

/// What is kept of a command that ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) code: u8,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
}

/// The beginning of what a command wrote.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stream {
    /// Where it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
    /// How many further bytes were not kept.
    #[serde(default)]
    pub(super) omitted: u64,
}

impl Stream {
    pub(super) fn pass_on(from: Option<impl Read>, mut to: impl Write) -> Stream {
        let (mut kept, mut omitted) = (Vec::new(), 0);
        let mut buffer = [0; 8192];
        let Some(mut from) = from else {
            return Stream::default();
        };
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => &buffer[..length],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            // A reader that is gone gets no more of it, and the command goes on.
            let _ = to.write_all(read).and_then(|()| to.flush());
            let (keeps, more) = read.split_at(read.len().min(MOST - kept.len()));
            kept.extend_from_slice(keeps);
            omitted += more.len() as u64;
        }
        let (text, bytes) = match String::from_utf8(kept) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(error.into_bytes())),
        };
        Stream {
            text,
            bytes,
            omitted,
        }
    }

    pub(super) fn write_to(&self, mut to: impl Write) {
        let text = self.text.as_deref().map(str::as_bytes);
        let bytes = text.or(self.bytes.as_deref()).unwrap_or_default();
        let _ = to.write_all(bytes).and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_wrote_comes_back_to_the_byte() {
        for written in [&b"sent\n"[..], b"", &[0, 255, 10, 13], &[b'x'; MOST + 5]] {
            let (mut through, mut again) = (Vec::new(), Vec::new());
            let kept = Stream::pass_on(Some(written), &mut through);
            assert_eq!(through, written);
            let json = serde_json::to_string(&kept).unwrap();
            let kept: Stream = serde_json::from_str(&json).unwrap();
            kept.write_to(&mut again);
            assert_eq!(again, written[..written.len().min(MOST)]);
            assert_eq!(kept.omitted as usize, written.len() - again.len());
        }
    }
}
