//! A place for a text of unknown size.

use std::io;

/// Takes bytes up to a bound; then it refuses, so that a template that goes on and on fills no memory.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    full: bool,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Bounded {
            bytes: Vec::new(),
            most,
            full: false,
        }
    }

    /// Whether it refused something.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn into_text(self) -> String {
        // Only texts were written, each whole.
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            self.full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
