//! Whether and how a connection is encrypted: `sslmode` and `sslrootcert` as libpq takes them.

#[cfg(not(feature = "tls"))]
mod plain;
#[cfg(feature = "tls")]
mod secure;

#[cfg(not(feature = "tls"))]
use plain as made;
#[cfg(feature = "tls")]
use secure as made;

use std::error::Error as _;
use std::io;

use agent_checkpoint::Result;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;

pub(crate) use made::{Stream, Tls};

/// What `sslmode` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    pub(crate) fn from_name(name: &str) -> Option<Mode> {
        Some(match name {
            "disable" => Mode::Disable,
            "allow" => Mode::Allow,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }
}

/// How the connections of a store are encrypted.
#[derive(Clone)]
pub(crate) struct Encryption {
    pub(crate) first: SslMode,
    /// What is tried where the first fails.
    pub(crate) then: Option<SslMode>,
    pub(crate) tls: Tls,
}

impl Encryption {
    /// `root` is the file with the certificates of the authorities that are trusted.
    pub(crate) fn new(mode: Mode, root: Option<&str>) -> Result<Encryption> {
        let (first, then) = match mode {
            Mode::Disable => (SslMode::Disable, None),
            Mode::Allow => (SslMode::Disable, Some(SslMode::Require)),
            Mode::Prefer => (SslMode::Prefer, Some(SslMode::Disable)),
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => (SslMode::Require, None),
        };
        let tls = made::tls(mode, root)?;
        Ok(Encryption { first, then, tls })
    }
}

/// Whether encryption is what failed, and not the network below it.
pub(crate) fn is_of_tls(error: &tokio_postgres::Error) -> bool {
    // The driver has no other sign of it.
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

/// Whether a connection may be made where it is encrypted, or where it is not.
pub(crate) fn may_differ(error: &tokio_postgres::Error) -> bool {
    // The rules of a server for a user (`pg_hba.conf`) may ask for one of the two.
    is_of_tls(error) || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}
