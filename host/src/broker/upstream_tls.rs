use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::settings::SetupError;

/// How hosts are connected to with TLS. Their certificates are checked as usual.
#[derive(Debug)]
pub(super) struct UpstreamTls {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    either: Arc<ClientConfig>,
}

/// The names of protocols in TLS: RFC 7301.
pub(super) const HTTP1: &[u8] = b"http/1.1";
pub(super) const HTTP2: &[u8] = b"h2";

impl UpstreamTls {
    /// Trusts what this system trusts, and more roots as PEM. This reads files.
    pub(super) fn new(more_roots: &[Vec<u8>]) -> Result<Self, SetupError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(system_roots().iter().cloned());
        for pem in more_roots {
            let mut count = 0;
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| SetupError::Root)?;
                roots.add(certificate).map_err(|_| SetupError::Root)?;
                count += 1;
            }
            if count == 0 {
                return Err(SetupError::Root);
            }
        }
        let builder = ClientConfig::builder_with_provider(provider());
        let mut config = builder
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // All of them resume sessions of each other.
        let mut with = |protocols: &[&[u8]]| {
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config.clone())
        };
        Ok(Self {
            http1: with(&[HTTP1]),
            http2: with(&[HTTP2]),
            either: with(&[HTTP2, HTTP1]),
        })
    }

    /// Returns how to connect for a program that knows these protocols.
    pub(super) fn config(&self, http1: bool, http2: bool) -> Arc<ClientConfig> {
        match (http1, http2) {
            (true, true) => self.either.clone(),
            (false, true) => self.http2.clone(),
            (_, false) => self.http1.clone(),
        }
    }
}

/// Returns the implementation of cryptography.
pub(super) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    static PROVIDER: OnceLock<Arc<rustls::crypto::CryptoProvider>> = OnceLock::new();
    let new = || Arc::new(rustls::crypto::ring::default_provider());
    PROVIDER.get_or_init(new).clone()
}

/// Returns the certificates that this system trusts. They are read once.
pub(super) fn system_roots() -> &'static [CertificateDer<'static>] {
    static ROOTS: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let loaded = rustls_native_certs::load_native_certs();
        if loaded.certs.is_empty() {
            tracing::warn!(
                errors = ?loaded.errors,
                "this system trusts no certificates: install the package ca-certificates"
            );
        }
        loaded.certs
    })
}
