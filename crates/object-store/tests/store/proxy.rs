//! A network that breaks on demand: a proxy between the driver and the server that forwards requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server gets nothing of it.
    Before,
    /// It gets a part of the request.
    In,
    /// It gets all of the request, but its answer is lost.
    After,
    /// As `After`, and nothing is forwarded from then on.
    Down,
    /// It waits for the gate, and then it is done.
    Pause,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    plan: Arc<Mutex<Plan>>,
    /// Once the planned request has come, all that follow wait for it.
    gate: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Plan {
    /// How many requests later the cut happens, and which one.
    next: Option<(usize, Cut)>,
    is_down: bool,
    /// From now on every n-th request is cut, in each way in turn: (n, requests so far).
    storm: Option<(usize, usize)>,
}

impl Plan {
    fn next_request(&mut self) -> Option<Cut> {
        if let Some((each, come)) = &mut self.storm {
            *come += 1;
            let ways = [Cut::Before, Cut::In, Cut::After];
            return (*come % *each == 0).then(|| ways[*come / *each % ways.len()]);
        }
        let (later, how) = self.next?;
        self.next = later.checked_sub(1).map(|later| (later, how));
        self.is_down = self.next.is_none() && how == Cut::Down;
        self.next.is_none().then_some(how)
    }
}

impl Proxy {
    pub(crate) fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (plan, gate) = (Arc::<Mutex<Plan>>::default(), Arc::<Mutex<()>>::default());
        let of_thread = (Arc::clone(&plan), Arc::clone(&gate));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (plan, gate) = of_thread.clone();
                thread::spawn(move || {
                    let client = client.unwrap();
                    let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                    // Close both sides, however the forwarding ended.
                    let _ended = forward(&client, &server, &plan, &gate);
                    let _told = (
                        client.shutdown(Shutdown::Both),
                        server.shutdown(Shutdown::Both),
                    );
                });
            }
        });
        Proxy { port, plan, gate }
    }

    /// Plans this cut for the request this many later.
    pub(crate) fn cut(&self, later: usize, how: Cut) {
        self.plan.lock().unwrap().next = Some((later, how));
    }

    /// Cuts every n-th request from now on.
    pub(crate) fn storm(&self, each: usize) {
        self.plan.lock().unwrap().storm = Some((each, 0));
    }

    /// Whether the planned cut was made. If not, it is cancelled.
    pub(crate) fn has_cut(&self) -> bool {
        self.plan.lock().unwrap().next.take().is_none()
    }

    /// Runs `call`, and lets no other request through from the planned one on until `meanwhile` is done. Returns the
    /// result of `call`.
    pub(crate) fn while_cut<T: Send>(
        &self,
        call: impl FnOnce() -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> T {
        thread::scope(|scope| {
            let closed = self.gate.lock().unwrap();
            let call = scope.spawn(call);
            while self.plan.lock().unwrap().next.is_some() {
                thread::yield_now();
            }
            // Let the server first handle what it received.
            thread::sleep(std::time::Duration::from_millis(50));
            meanwhile();
            drop(closed);
            call.join().unwrap()
        })
    }
}

fn forward(
    client: &TcpStream,
    server: &TcpStream,
    plan: &Mutex<Plan>,
    gate: &Mutex<()>,
) -> std::io::Result<()> {
    let (mut to_client, mut to_server) = (client, server);
    let (mut client, mut server) = (BufReader::new(client), BufReader::new(server));
    while let Some(request) = message(&mut client)? {
        let (was_down, is_over, cut) = {
            let mut plan = plan.lock().unwrap();
            (plan.is_down, plan.next.is_none(), plan.next_request())
        };
        if was_down {
            return Ok(());
        }
        if is_over || cut == Some(Cut::Pause) {
            drop(gate.lock().unwrap());
        }
        match cut {
            Some(Cut::Before) => return Ok(()),
            Some(Cut::In) => return to_server.write_all(&request[..request.len() / 2]),
            _ => to_server.write_all(&request)?,
        }
        let Some(answer) = message(&mut server)? else {
            return Ok(());
        };
        if matches!(cut, Some(Cut::After | Cut::Down)) {
            return Ok(());
        }
        to_client.write_all(&answer)?;
    }
    Ok(())
}

/// A whole request or answer; `None` at the end.
fn message(from: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    loop {
        let start = bytes.len();
        if from.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes[start..]).to_ascii_lowercase();
        assert!(!line.contains("chunked"), "no test sends pieces: {line}");
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let start = bytes.len();
    bytes.resize(start + length, 0);
    from.read_exact(&mut bytes[start..])?;
    Ok(Some(bytes))
}
