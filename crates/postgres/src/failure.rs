//! Failures below the store, turned into errors of the library.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use agent_checkpoint::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// Why a step of the store failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused, or the connection broke.
    Driver(tokio_postgres::Error),
    /// The server did not answer in time.
    NoAnswer,
    /// A rule of the store.
    Rule(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Driver(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Rule(error)
    }
}

/// The result of a step of the store.
pub(crate) type Step<T> = Result<T, Failure>;

impl Failure {
    fn state(&self) -> Option<&SqlState> {
        match self {
            Failure::Driver(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the connection was lost, so that the last request may or may not have been done.
    pub(crate) fn is_lost(&self) -> bool {
        let error = match self {
            Failure::Driver(error) => error,
            Failure::NoAnswer => return true,
            Failure::Rule(_) => return false,
        };
        match error.code().map(SqlState::code) {
            // The server sends one of these codes before it ends the connection.
            Some(code) => code.starts_with("08") || code.starts_with("57P") || code == "25P03",
            None if is_of_tls(error) => false,
            None => error.is_closed() || error.source().is_none_or(|cause| cause.is::<io::Error>()),
        }
    }

    /// Whether the server is just starting.
    pub(crate) fn is_starting(&self) -> bool {
        self.state() == Some(&SqlState::CANNOT_CONNECT_NOW)
    }

    /// Whether the same request may succeed when it is tried again.
    pub(crate) fn is_passing(&self) -> bool {
        let passing = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::TOO_MANY_CONNECTIONS,
        ];
        self.is_lost() || self.state().is_some_and(|state| passing.contains(state))
    }

    /// Whether the tables do not exist.
    pub(crate) fn is_no_table(&self) -> bool {
        let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
        self.state().is_some_and(|state| missing.contains(state))
    }

    /// Turns the failure into an error of the library that names this server. `waited` is how long the call has waited.
    pub(crate) fn into_error(self, address: &str, waited: Duration) -> Error {
        let (code, message) = match (&self, self.state().map(SqlState::code)) {
            (_, Some("55P03" | "57014")) => return locked(waited).with_path(address),
            (_, Some("28P01")) => (
                "login-refused",
                "the server refuses this user; check the user and the password",
            ),
            (_, Some("28000")) => (
                "login-refused",
                "the server refuses this user from this address; check the user, and that `pg_hba.conf` admits it \
                 over a connection as `sslmode` makes it",
            ),
            (_, Some("3D000")) => (
                "no-database",
                "there is no such database; make it with `createdb`, or name another",
            ),
            (_, Some("42501")) => (
                "write-protected",
                "this user has no right to do that in the database; grant the right, or name another user",
            ),
            (_, Some("25006")) => (
                "write-protected",
                "the server is read-only, as a standby is; name the server that accepts writes",
            ),
            (_, Some("53100")) => (
                "disk-full",
                "the disk of the server is full; nothing was written, free some space and try again",
            ),
            (_, Some("42P07" | "42703")) => (
                "not-a-store",
                "the schema has tables of another program; nothing was written, name another schema",
            ),
            (_, Some("42P01" | "3F000")) => (
                "no-tables",
                "the tables of the store are gone; open it again to make them, or bring them back from a copy",
            ),
            (_, Some("53300")) => (
                "no-connection-left",
                "the server has no connection left; raise its `max_connections`, or use fewer",
            ),
            _ if matches!(&self, Failure::Driver(error) if is_of_tls(error)) => (
                "no-tls",
                "the server cannot be reached by TLS as `sslmode` asks for it; see the cause, and check that the \
                 server has TLS, that `sslrootcert` names the authority of its certificate, and that the host has \
                 the name in the certificate",
            ),
            _ if self.is_lost() => (
                "unreachable",
                "the server does not answer; check that it runs, and the host and port, then try again",
            ),
            _ => ("database", "the database refused; see the cause"),
        };
        match self {
            Failure::Rule(error) => error.with_path(address),
            Failure::NoAnswer => other(code, message).with_path(address),
            Failure::Driver(cause) => other(code, message).with_path(address).with_source(cause),
        }
    }
}

pub(crate) fn locked(waited: Duration) -> Error {
    Error::new(ErrorKind::Locked {
        waited,
        holder: None,
        pid: None,
        held_for: None,
    })
}

/// The error for a write of which it is unknown whether it was made.
pub(crate) fn not_known(address: &str) -> Error {
    other(
        "outcome-unknown",
        "the connection broke during a write, so it is unknown whether the write was made; load the checkpoint \
         again, and redo the change if it is missing",
    )
    .with_path(address)
}

/// An error with a code that only this store uses.
pub(crate) fn other(code: &'static str, message: impl Into<String>) -> Error {
    let message = message.into();
    Error::new(ErrorKind::Other { code, message })
}

/// The error of a connection string or its environment.
pub(crate) fn wrong(message: &str) -> Error {
    other("connection-string", message)
}

/// Whether the encryption failed, and not the network below it.
pub(crate) fn is_of_tls(error: &tokio_postgres::Error) -> bool {
    // The driver reports this only in the text of the error.
    let is_handshake = error
        .to_string()
        .starts_with("error performing TLS handshake");
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let is_network = |cause: &io::Error| {
        !matches!(
            cause.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        )
    };
    is_handshake && !cause.is_some_and(is_network)
}

/// Whether an attempt with encryption may succeed after one without it failed, or the other way round.
pub(crate) fn may_differ(error: &tokio_postgres::Error) -> bool {
    // The server's rules for a user (`pg_hba.conf`) may require one of the two.
    is_of_tls(error) || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}
