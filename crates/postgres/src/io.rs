//! The thread that drives the connections of a store, and how other threads wait for it.

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout_at;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::failure::{Failure, Step, may_differ};
use crate::tls::{Encryption, Stream};

/// A thread with its own runtime, because the caller may be in another runtime or in none.
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

    /// Opens a connection. `drive` runs it on the thread until it ends.
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
            // Do not wait for a silent peer after the caller has given up.
            let connected = timeout_at(until.into(), connect(config, &encryption)).await;
            match connected {
                Ok(Ok((client, connection))) => {
                    // If the caller has given up, the connection ends.
                    if sender.send(Ok(client)).is_ok() {
                        drive(connection).await;
                    }
                }
                Ok(Err(error)) => {
                    let _too_late = sender.send(Err(error));
                }
                Err(_) => {}
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

/// Tries the ways that `sslmode` allows. If both fail, the second failure is returned, unless it only says that this
/// way is not allowed.
#[allow(clippy::clone_on_copy, reason = "without TLS it can be copied")]
async fn connect(
    mut config: Config,
    encryption: &Encryption,
) -> Result<(Client, Connection<Socket, Stream>), tokio_postgres::Error> {
    config.ssl_mode(encryption.first);
    let first = match config.connect(encryption.tls.clone()).await {
        Err(first) => first,
        connected => return connected,
    };
    // If there are several addresses, the driver reports the failure of the last one, which may be down.
    let may_hide = first.code().is_none() && has_several_addresses(&config);
    let Some(then) = encryption.then.filter(|_| may_hide || may_differ(&first)) else {
        return Err(first);
    };
    config.ssl_mode(then);
    let connected = config.connect(encryption.tls.clone()).await;
    connected.map_err(|second| match may_differ(&second) {
        true => first,
        false => second,
    })
}

/// Whether there may be several addresses. A host name may have more than one.
fn has_several_addresses(config: &Config) -> bool {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let is_name = |host: &Host| matches!(host, Host::Tcp(name) if name.parse::<IpAddr>().is_err());
    hosts.len().max(addresses.len()) > 1 || addresses.is_empty() && hosts.iter().any(is_name)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer in the caller's thread, in any runtime or in none. The work itself runs on the thread of the
/// connections.
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

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::tls::Mode;

    #[test]
    fn the_connection_to_a_silent_peer_is_closed_when_its_time_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user("me");
        let encryption = Encryption::new(Mode::Disable, None).unwrap();
        let io = Io::start().unwrap();
        let until = Instant::now() + Duration::from_millis(100);
        let connected = io.connect(&config, &encryption, until, |connection| async {
            let _ended = connection.await;
        });
        assert!(matches!(connected, Err(Failure::NoAnswer)));
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        // The first bytes of the store, and then the end of the stream.
        assert!(peer.read_to_end(&mut Vec::new()).unwrap() > 0);
    }
}
