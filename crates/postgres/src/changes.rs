//! Notifications of the keys that were written, sent by the server.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use agent_checkpoint::store::Listener;
use agent_checkpoint::{Key, Result};
use tokio_postgres::{AsyncMessage, Client};

use crate::failure::{Failure, Step};
use crate::io::wait;
use crate::server::Server;

/// The keys that are written from now on by stores that [notify](crate::PostgresStore::notify_changes).
pub(crate) struct Listening {
    keys: Receiver<String>,
    /// Its thread drives the connection.
    server: Arc<Server>,
    /// Dropping it ends the connection.
    _client: Client,
}

impl Listening {
    pub(crate) fn begin(server: &Arc<Server>) -> Result<Listening> {
        let call = server.begin_call();
        let listened = Listening::try_begin(server);
        listened.map_err(|failure| failure.into_error(server.address(), call.waited()))
    }

    fn try_begin(server: &Arc<Server>) -> Step<Listening> {
        let until = Instant::now() + Duration::from_secs(10);
        let (sender, keys) = channel();
        let client = server.connect(until, |mut connection| async move {
            loop {
                let next = poll_fn(|context| connection.poll_message(context)).await;
                match next {
                    Some(Ok(AsyncMessage::Notification(note))) => {
                        let _nobody_listens = sender.send(note.payload().to_owned());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return,
                }
            }
        })?;
        // The schema's name has no character with a meaning inside quotes.
        let listen = format!("LISTEN \"{}\"", server.schema());
        wait(client.batch_execute(&listen), until)??;
        Ok(Listening {
            keys,
            server: Arc::clone(server),
            _client: client,
        })
    }
}

impl Listener for Listening {
    fn next(&mut self, timeout: Duration) -> Result<Option<Key>> {
        let began = Instant::now();
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            match self.keys.recv_timeout(left) {
                // Any program may send notifications, so the text need not be a key.
                Ok(name) => {
                    if let Ok(key) = Key::new(name) {
                        return Ok(Some(key));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::NoAnswer.into_error(self.server.address(), Duration::ZERO));
                }
            }
        }
    }
}
