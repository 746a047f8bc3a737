//! A build without TLS: settings that need it are refused.

use agent_checkpoint::Result;
use tokio_postgres::NoTls;

use super::Mode;
use crate::failure::wrong;

pub(crate) type Tls = NoTls;
pub(crate) type Stream = tokio_postgres::tls::NoTlsStream;

pub(crate) fn tls(mode: Mode, _root: Option<&str>) -> Result<Tls> {
    match mode {
        Mode::Disable | Mode::Allow | Mode::Prefer => Ok(NoTls),
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => Err(wrong(
            "sslmode or PGSSLMODE asks for TLS, which this program was built without; build agent-checkpoint-postgres with its \
             feature `tls`, or write `sslmode=disable` where the network is trusted",
        )),
    }
}
