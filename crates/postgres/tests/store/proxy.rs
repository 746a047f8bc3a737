//! A network that breaks on demand: a proxy between the store and the server that forwards bytes.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use agent_checkpoint_postgres::PostgresStore;

use crate::cluster::Cluster;

/// When a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server gets nothing of the request.
    Before,
    /// It gets a part of the request.
    In,
    /// It gets all of the request, but its answer is lost.
    After,
}

/// Forwards a socket of the server, and cuts a connection on demand.
pub(crate) struct Proxy {
    plan: Arc<Mutex<Plan>>,
    /// New connections wait for this lock.
    gate: Arc<Mutex<()>>,
    port: u16,
}

#[derive(Default)]
struct Plan {
    /// The connection that makes the request this many later is cut.
    next: Option<(usize, Cut)>,
}

impl Proxy {
    pub(crate) fn start(cluster: &Cluster) -> Proxy {
        static LAST: AtomicU16 = AtomicU16::new(6000);
        let port = LAST.fetch_add(1, Ordering::Relaxed);
        let socket = |port: u16| cluster.folder().join(format!(".s.PGSQL.{port}"));
        let listener = UnixListener::bind(socket(port)).unwrap();
        let (server, plan) = (socket(5432), Arc::<Mutex<Plan>>::default());
        let gate = Arc::<Mutex<()>>::default();
        let of_thread = (Arc::clone(&plan), Arc::clone(&gate));
        thread::spawn(move || {
            for client in listener.incoming() {
                drop(of_thread.1.lock().unwrap());
                let (client, plan) = (client.unwrap(), Arc::clone(&of_thread.0));
                let server = UnixStream::connect(&server).unwrap();
                let is_cut = Arc::<Mutex<bool>>::default();
                let pair = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let told = Arc::clone(&is_cut);
                thread::spawn(move || forward_requests(client, server, &plan, &is_cut));
                thread::spawn(move || forward_answers(pair.1, pair.0, &told));
            }
        });
        Proxy { plan, gate, port }
    }

    pub(crate) fn address(&self, cluster: &Cluster) -> String {
        cluster.address_at(self.port)
    }

    /// A store that reaches the server only through this proxy.
    pub(crate) fn open(&self, cluster: &Cluster, schema: &str) -> PostgresStore {
        PostgresStore::open_in(&self.address(cluster), schema).unwrap()
    }

    /// Cuts the connection that makes the request this many later.
    pub(crate) fn cut(&self, later: usize, how: Cut) {
        self.plan.lock().unwrap().next = Some((later, how));
    }

    /// Runs `call`, whose connection is cut, and lets no other connection reach the server until `meanwhile` is done.
    /// Returns the result of `call`.
    pub(crate) fn while_cut<T: Send>(
        &self,
        call: impl FnOnce() -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> T {
        let gate = Arc::clone(&self.gate);
        thread::scope(|scope| {
            let closed = gate.lock().unwrap();
            let call = scope.spawn(call);
            while !self.has_cut() && !call.is_finished() {
                thread::yield_now();
            }
            meanwhile();
            drop(closed);
            call.join().unwrap()
        })
    }

    /// Whether the planned cut has been made.
    pub(crate) fn has_cut(&self) -> bool {
        self.plan.lock().unwrap().next.is_none()
    }
}

impl Plan {
    fn next_request(&mut self) -> Option<Cut> {
        let (later, how) = self.next?;
        self.next = later.checked_sub(1).map(|later| (later, how));
        self.next.is_none().then_some(how)
    }
}

fn forward_requests(
    mut client: UnixStream,
    mut server: UnixStream,
    plan: &Mutex<Plan>,
    is_cut: &Mutex<bool>,
) {
    let mut bytes = vec![0; 1 << 20];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        let cut = plan.lock().unwrap().next_request();
        let part = match cut {
            None | Some(Cut::After) => length,
            Some(Cut::Before) => 0,
            Some(Cut::In) => length / 2,
        };
        *is_cut.lock().unwrap() |= cut == Some(Cut::After);
        if server.write_all(&bytes[..part]).is_err() || matches!(cut, Some(Cut::Before | Cut::In)) {
            break;
        }
    }
    let _ended = (
        client.shutdown(Shutdown::Both),
        server.shutdown(Shutdown::Both),
    );
}

fn forward_answers(mut server: UnixStream, mut client: UnixStream, is_cut: &Mutex<bool>) {
    let mut bytes = vec![0; 1 << 20];
    while let Ok(length @ 1..) = server.read(&mut bytes) {
        if *is_cut.lock().unwrap() || client.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ended = (
        client.shutdown(Shutdown::Both),
        server.shutdown(Shutdown::Both),
    );
}
