//! TLS with rustls and the same cryptography as the object stores.

use std::sync::Arc;

use agent_checkpoint::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::Socket;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Mode;
use crate::failure::{other, wrong};

pub(crate) type Tls = MakeRustlsConnect;
pub(crate) type Stream = <Tls as MakeTlsConnect<Socket>>::Stream;

/// The value of `sslrootcert` for the authorities that the system trusts.
const SYSTEM: &str = "system";

pub(crate) fn tls(mode: Mode, root: Option<&str>) -> Result<Tls> {
    let roots = match (mode, root) {
        (Mode::Disable, _) => None,
        (Mode::VerifyFull, None | Some(SYSTEM)) => Some(of_system()?),
        // Any host can get a certificate from one of these authorities, so without the host name it proves nothing.
        (_, Some(SYSTEM)) => {
            return Err(wrong(
                "sslrootcert=system needs `sslmode=verify-full`; write it, or name a file with sslrootcert",
            ));
        }
        (_, Some(path)) => Some(of_file(path)?),
        (Mode::VerifyCa, None) => {
            return Err(wrong(
                "sslmode=verify-ca needs the certificate of the authority; name its file with sslrootcert or PGSSLROOTCERT, or \
                 write `sslmode=verify-full` to trust those of the system",
            ));
        }
        (Mode::Allow | Mode::Prefer | Mode::Require, None) => None,
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let begun = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|cause| other("tls", "no version of TLS can be used").with_source(cause))?;
    let verified = match roots {
        Some(roots) if mode == Mode::VerifyFull => begun.with_root_certificates(roots),
        roots => begun
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyName { roots, provider })),
    };
    let mut config = verified.with_no_client_auth();
    // Required by servers that start TLS at once (`sslnegotiation=direct`).
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

fn of_system() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let message = "the system has no certificates of authorities; install them (`ca-certificates`), or name a file with \
                       sslrootcert";
        return Err(other("no-certificates", message));
    }
    Ok(roots)
}

fn of_file(path: &str) -> Result<RootCertStore> {
    let unusable = |message: &str| other("no-certificates", message).with_path(path);
    let cannot_read =
        "the certificates that sslrootcert names cannot be read; name a file in PEM format";
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path)
        .map_err(|cause| unusable(cannot_read).with_source(cause))?;
    for certificate in found {
        let certificate = certificate.map_err(|cause| unusable(cannot_read).with_source(cause))?;
        let added = roots.add(certificate);
        added.map_err(|cause| unusable(cannot_read).with_source(cause))?;
    }
    match roots.is_empty() {
        true => Err(unusable(cannot_read)),
        false => Ok(roots),
    }
}

/// Accepts a certificate for any name, from these authorities or from any.
#[derive(Debug)]
struct AnyName {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(certificate)?,
                roots,
                intermediates,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
