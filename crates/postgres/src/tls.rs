//! Whether and how a connection is encrypted.

use tokio_postgres::NoTls;

pub(crate) type Tls = NoTls;
pub(crate) type Stream = tokio_postgres::tls::NoTlsStream;

pub(crate) fn of() -> Tls {
    NoTls
}
