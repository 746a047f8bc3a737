//! Whether and how a connection is encrypted: `sslmode` and `sslrootcert` as libpq takes them.

#[cfg(not(feature = "tls"))]
mod plain;
#[cfg(feature = "tls")]
mod secure;

#[cfg(not(feature = "tls"))]
use plain as made;
#[cfg(feature = "tls")]
use secure as made;

use agent_checkpoint::Result;
use tokio_postgres::config::SslMode;

pub(crate) use made::{Stream, Tls};

/// A value of `sslmode`.
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
    /// The mode to try if the first one fails.
    pub(crate) then: Option<SslMode>,
    pub(crate) tls: Tls,
}

impl Encryption {
    /// `root` is the file with the certificates of the trusted authorities.
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
