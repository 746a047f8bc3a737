//! A buffer of bounded size.

use std::io;

/// Accepts bytes up to a bound and then refuses, so that an endless template does not fill the memory.
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

    /// Whether bytes were refused.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn into_text(self) -> String {
        // Only complete texts were written.
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
