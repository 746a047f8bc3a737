//! The thread on which the connections of a store live, and how any other thread waits for them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::failure::{Failure, Step};
use crate::tls::{Encryption, Stream, may_differ};

/// A thread with a runtime of its own: the caller may be in another runtime, or in none.
#[derive(Debug)]
pub(crate) struct Io {
    runtime: Handle,
    /// The thread ends when this is dropped.
    _alive: oneshot::Sender<()>,
}

impl Io {
    pub(crate) fn start() -> std::io::Result<Io> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        let name = "checkpoints".to_owned();
        thread::Builder::new().name(name).spawn(move || {
            let _dropped = runtime.block_on(ended);
        })?;
        Ok(Io {
            runtime: handle,
            _alive: alive,
        })
    }

    /// A new connection, which `drive` keeps going on the thread until it ends.
    pub(crate) fn connect<F: Future<Output = ()> + Send>(
        &self,
        config: &Config,
        encryption: &Encryption,
        until: Instant,
        drive: impl FnOnce(Connection<Socket, Stream>) -> F + Send + 'static,
    ) -> Step<Client> {
        let (sender, receiver) = sync_channel(1);
        let (config, encryption) = (config.clone(), encryption.clone());
        self.runtime.spawn(async move {
            match connect(config, &encryption).await {
                Ok((client, connection)) => {
                    // Nobody waits any more: it is dropped, and the connection ends.
                    let _too_late = sender.send(Ok(client));
                    drive(connection).await;
                }
                Err(error) => {
                    let _too_late = sender.send(Err(error));
                }
            }
        });
        let left = until.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(client) => Ok(client?),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err(Failure::NoAnswer)
            }
        }
    }
}

/// Tries what `sslmode` allows. Where both ways fail, the first failure is the one that tells most.
#[allow(clippy::clone_on_copy, reason = "without TLS it can be copied")]
async fn connect(
    mut config: Config,
    encryption: &Encryption,
) -> Result<(Client, Connection<Socket, Stream>), tokio_postgres::Error> {
    config.ssl_mode(encryption.first);
    let failure = match config.connect(encryption.tls.clone()).await {
        Err(failure) if may_differ(&failure) => failure,
        connected => return connected,
    };
    let Some(then) = encryption.then else {
        return Err(failure);
    };
    config.ssl_mode(then);
    let connected = config.connect(encryption.tls.clone()).await;
    connected.map_err(|_| failure)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer in the caller's thread, whatever runtime that is in: all that has to go on meanwhile goes on in the
/// thread of the connections.
pub(crate) fn wait<T>(answer: impl Future<Output = T>, until: Instant) -> Step<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut answer = pin!(answer);
    loop {
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return Ok(answer);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::NoAnswer);
        }
        thread::park_timeout(left);
    }
}
