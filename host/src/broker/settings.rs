use std::sync::Arc;

use super::{Broker, BrokeredSecret};
use crate::error::Error;

/// What the builder of a VM says about brokered secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrokerSettings {
    pub(crate) secrets: Vec<BrokeredSecret>,
    /// Certificates, as PEM, that hosts may be signed by.
    pub(crate) roots: Vec<Vec<u8>>,
}

impl BrokerSettings {
    /// Returns the broker of one VM, or `None` without grants.
    pub(crate) async fn broker(self) -> Result<Option<Arc<Broker>>, Error> {
        if self.secrets.is_empty() {
            return Ok(None);
        }
        // It reads files.
        let made = tokio::task::spawn_blocking(move || Broker::new(&self)).await;
        match made {
            Ok(Ok(broker)) => Ok(Some(Arc::new(broker))),
            Ok(Err(error)) => Err(Error::Invalid(error.to_string())),
            Err(error) => Err(Error::Invalid(error.to_string())),
        }
    }
}

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    #[error("a root that the broker is to trust is not a certificate in PEM")]
    Root,
    #[error(
        "the port {port} of {host} is granted with TLS and without: choose another port for \
         plain HTTP"
    )]
    Ports { host: String, port: u16 },
    #[error("no certificate can be made for the VM: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}
