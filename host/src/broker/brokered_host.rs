use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use rustls::ServerConfig;

use super::{
    BrokerSettings, BrokeredSecret,
    authority::{Certificates, HostCertificate},
    settings::SetupError,
    upstream_tls::{HTTP1, HTTP2, UpstreamTls, provider},
};
use crate::{network::HostName, redaction::SecretSet};

/// The brokered secrets of a VM.
#[derive(Debug)]
pub(crate) struct Broker {
    hosts: BTreeMap<(HostName, u16), Arc<BrokeredHost>>,
    /// The certificate of the authority, as PEM.
    pub(super) authority: String,
}

/// A host and port that gets values.
pub(crate) struct BrokeredHost {
    pub(super) name: HostName,
    pub(super) port: u16,
    pub(super) transport: Transport,
    pub(super) secrets: Vec<BrokeredSecret>,
    /// What is masked in answers: all brokered values of the VM.
    pub(super) masked: Arc<SecretSet>,
}

/// How a host is spoken to.
pub(super) enum Transport {
    Plain,
    Tls(HostTls),
}

/// TLS on both sides of the broker.
#[derive(Clone)]
pub(super) struct HostTls {
    /// For programs of the guest. Each has the same sessions for all connections.
    pub(super) http1: Arc<ServerConfig>,
    pub(super) http2: Arc<ServerConfig>,
    pub(super) upstream: Arc<UpstreamTls>,
}

impl Broker {
    pub(super) fn new(settings: &BrokerSettings) -> Result<Self, SetupError> {
        let secrets = &settings.secrets;
        let names: BTreeSet<_> = secrets.iter().map(|secret| secret.host().clone()).collect();
        let certificates = Certificates::new(&names.into_iter().collect::<Vec<_>>())?;
        let upstream = Arc::new(UpstreamTls::new(&settings.roots)?);
        let tls = certificates.hosts.into_iter();
        let tls = tls.map(|host| Ok((host.host.clone(), HostTls::new(host, upstream.clone())?)));
        let tls: BTreeMap<_, _> = tls.collect::<Result<_, SetupError>>()?;
        let values = secrets
            .iter()
            .map(|secret| secret.value().expose().as_bytes());
        let masked = Arc::new(SecretSet::new(values, []));
        let mut hosts: BTreeMap<_, BrokeredHost> = BTreeMap::new();
        for secret in secrets {
            let (port, plain_port) = secret.ports();
            let with_tls = tls.get(secret.host()).cloned().map(Transport::Tls);
            let ports = with_tls.map(|transport| (port, transport)).into_iter();
            let ports = ports.chain(plain_port.map(|port| (port, Transport::Plain)));
            for (port, transport) in ports {
                let is_plain = matches!(transport, Transport::Plain);
                let host = hosts
                    .entry((secret.host().clone(), port))
                    .or_insert_with(|| BrokeredHost {
                        name: secret.host().clone(),
                        port,
                        transport,
                        secrets: Vec::new(),
                        masked: masked.clone(),
                    });
                if matches!(host.transport, Transport::Plain) != is_plain {
                    return Err(SetupError::Ports {
                        host: secret.host().to_string(),
                        port,
                    });
                }
                host.secrets.push(secret.clone());
            }
        }
        let hosts = hosts.into_iter().map(|(key, host)| (key, Arc::new(host)));
        Ok(Self {
            hosts: hosts.collect(),
            authority: certificates.authority,
        })
    }

    /// Returns the host with this name and port, if it gets values.
    pub(crate) fn host(&self, name: &HostName, port: u16) -> Option<Arc<BrokeredHost>> {
        self.hosts.get(&(name.clone(), port)).cloned()
    }
}

impl HostTls {
    fn new(host: HostCertificate, upstream: Arc<UpstreamTls>) -> Result<Self, SetupError> {
        let config = |protocol: &[u8]| -> Result<_, SetupError> {
            let builder = ServerConfig::builder_with_provider(provider());
            let mut config = builder
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(vec![host.certificate.clone()], host.key.clone_key())?;
            config.alpn_protocols = vec![protocol.to_vec()];
            Ok(Arc::new(config))
        };
        Ok(Self {
            http1: config(HTTP1)?,
            http2: config(HTTP2)?,
            upstream,
        })
    }
}

impl fmt::Debug for BrokeredHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokeredHost")
            .field("name", &self.name)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
