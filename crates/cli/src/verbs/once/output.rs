//! The output of a command, kept for the next time.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// How many bytes of each stream are kept.
const MOST: usize = 24 * 1024;

/// The largest JSON of a receipt in bytes, with room to spare.
const MOST_JSON: usize = 60 * 1024;

/// The recorded result of a command.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) code: u8,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
}

/// The beginning of an output stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stream {
    /// The text, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Otherwise two hexadecimal digits for each byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    /// How many further bytes were not kept.
    #[serde(default)]
    pub(super) omitted: u64,
}

impl Output {
    /// As much of the output as fits into a receipt.
    pub(super) fn new(code: u8, stdout: &Kept, stderr: &Kept) -> Output {
        let mut most = MOST;
        loop {
            let [stdout, stderr] = [stdout, stderr].map(|kept| kept.stream(most));
            let output = Output {
                code,
                stdout,
                stderr,
            };
            let length = serde_json::to_string(&output).map_or(0, |json| json.len());
            if length <= MOST_JSON {
                return output;
            }
            most /= 2;
        }
    }
}

/// The beginning of a stream, and the length of the whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    all: u64,
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MOST - self.bytes.len();
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.all += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    /// At most the first `most` bytes, without cutting a character.
    fn stream(&self, most: usize) -> Stream {
        let bytes = &self.bytes[..self.bytes.len().min(most)];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if error.error_len().is_none() && (bytes.len() as u64) < self.all => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let omitted = self.all - whole.map_or(bytes.len(), str::len) as u64;
        let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Stream {
            text: whole.map(str::to_owned),
            hex: whole.is_none().then(hex),
            omitted,
        }
    }
}

impl Stream {
    pub(super) fn write_to(&self, mut to: impl Write) {
        let hex = self.hex.as_deref().unwrap_or_default().as_bytes();
        let digit = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        let hex = hex
            .chunks_exact(2)
            .map(|two| digit(two[0]) << 4 | digit(two[1]));
        let bytes = match &self.text {
            Some(text) => text.clone().into_bytes(),
            None => hex.collect(),
        };
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_wrote_comes_back_to_the_byte_as_far_as_there_is_room() {
        let long = [
            "ü".repeat(MOST).into_bytes(),
            vec![255; 2 * MOST],
            vec![b'"'; 2 * MOST],
        ];
        let short = [
            &b"sent\n"[..],
            b"",
            &[0, 255, 10, 13],
            &[b'x'; MOST + 5],
            "é".as_bytes(),
        ];
        for written in long.iter().map(Vec::as_slice).chain(short) {
            let mut kept = Kept::default();
            for piece in written.chunks(1000) {
                kept.write_all(piece).unwrap();
            }
            let output = Output::new(3, &kept, &kept);
            let json = serde_json::to_string(&output).unwrap();
            assert!(json.len() <= MOST_JSON);
            let read: Output = serde_json::from_str(&json).unwrap();
            assert_eq!(read, output);
            let mut again = Vec::new();
            read.stdout.write_to(&mut again);
            assert_eq!(again, written[..again.len()]);
            assert_eq!(read.stdout.omitted as usize, written.len() - again.len());
            assert!(again.len() == written.len() || again.len() > MOST / 4);
        }
    }
}
