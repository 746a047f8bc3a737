//! The output of a command, forwarded as it arrives and partly recorded.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long to wait for the rest of the output once the command has ended. Its background processes may keep the output
/// open forever.
const PATIENCE: Duration = Duration::from_secs(1);

/// A stream of a command that is being forwarded, for callers that run the command of a
/// [proof](crate::recorder::Recorder::prove_by) themselves. `K` takes the part of it that is recorded, such as an
/// [`OutputBuffer`](super::OutputBuffer).
#[derive(Debug)]
pub struct Forwarding<K> {
    kept: Arc<Mutex<K>>,
    ended: Receiver<()>,
}

impl<K: Write + Clone + Send + 'static> Forwarding<K> {
    /// Forwards a stream in a separate thread. Several streams may share a record.
    pub fn on(
        from: Option<impl Read + Send + 'static>,
        mut to: impl Write + Send + 'static,
        kept: &Arc<Mutex<K>>,
    ) -> Forwarding<K> {
        let (sender, ended) = sync_channel(1);
        let all = Arc::clone(kept);
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            let mut from = from;
            while let Some(from) = &mut from {
                let read = match from.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => &buffer[..length],
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                // If the reader is gone, the command continues without it.
                let _ = to.write_all(read).and_then(|()| to.flush());
                let mut kept = all.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = kept.write_all(read);
            }
            let _nobody_waits = sender.send(());
        });
        Forwarding {
            kept: Arc::clone(kept),
            ended,
        }
    }

    /// The output until the command ended, or shortly after. It does not wait for background processes.
    #[must_use]
    pub fn end(self) -> K {
        let _still_open = self.ended.recv_timeout(PATIENCE);
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
