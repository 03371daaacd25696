use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper::http::{HeaderName, HeaderValue, header, request::Parts};

use super::{BrokerError, placement::Placement};
use crate::{
    hex,
    network::HostName,
    random::random_bytes,
    secret::{Secret, SecretValue},
};

/// A grant: a secret, the host that gets it, and where in a request. See the
/// [module](super). Clones are the same grant.
#[derive(Clone)]
pub struct BrokeredSecret {
    name: String,
    value: SecretValue,
    host: HostName,
    port: u16,
    plain_port: Option<u16>,
    placement: Placement,
    placeholder: String,
    is_revoked: Arc<AtomicBool>,
}

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// Headers that say how a message is sent, and to whom.
const NOT_FOR_SECRETS: [HeaderName; 12] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("proxy-connection"),
];

impl BrokeredSecret {
    /// Grants a secret to a host, in a header of its requests: the placeholder may be a part
    /// of the header, as in `Bearer placeholder`. The value is put in once in a request.
    ///
    /// # Errors
    /// [`BrokerError`] if this is not the name of a host or of a header, or the value cannot
    /// be in a header.
    pub fn header(secret: &Secret, host: &str, name: &str) -> Result<Self, BrokerError> {
        let bad = || BrokerError::Header {
            header: name.to_owned(),
        };
        let header = HeaderName::try_from(name).map_err(|_| bad())?;
        if NOT_FOR_SECRETS.contains(&header) {
            return Err(bad());
        }
        if HeaderValue::from_str(secret.value().expose()).is_err() {
            return Err(BrokerError::Value {
                name: secret.name().to_owned(),
            });
        }
        Self::new(secret, host, Placement::Header(header))
    }

    /// Grants a secret to a host, in its basic authentication: the placeholder is the whole
    /// password, or the whole name of the user.
    ///
    /// # Errors
    /// [`BrokerError`] if this is not the name of a host.
    pub fn basic(secret: &Secret, host: &str) -> Result<Self, BrokerError> {
        Self::new(secret, host, Placement::Basic)
    }

    /// Grants a secret to a host, in a field of the query of its URLs: the placeholder may be
    /// a part of the field.
    ///
    /// # Errors
    /// [`BrokerError`] if this is not the name of a host, or the field has no name.
    pub fn query(secret: &Secret, host: &str, field: &str) -> Result<Self, BrokerError> {
        match field {
            "" => Err(BrokerError::Field),
            field => Self::new(secret, host, Placement::Query(field.to_owned())),
        }
    }

    fn new(secret: &Secret, host: &str, placement: Placement) -> Result<Self, BrokerError> {
        let random: [u8; 16] =
            random_bytes().map_err(|error| BrokerError::Random(io::Error::other(error)))?;
        Ok(Self {
            name: secret.name().to_owned(),
            value: secret.value().clone(),
            host: HostName::new(host)?,
            port: HTTPS_PORT,
            plain_port: None,
            placement,
            placeholder: format!("vmcell-placeholder-{}", hex::encode(&random)),
            is_revoked: Arc::default(),
        })
    }

    /// Sets the port of HTTPS; 443 by default.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Grants the secret also over HTTP without TLS, on this port. Whoever is between this
    /// machine and the host can read it.
    #[must_use]
    pub fn also_plain_http(mut self, port: u16) -> Self {
        self.plain_port = Some(port);
        self
    }

    /// Returns the text that programs of the guest use in place of the value. It is random,
    /// worth nothing elsewhere, and has letters, digits and hyphens only.
    pub fn placeholder(&self) -> &str {
        &self.placeholder
    }

    /// Returns the name of the secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the host.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// Takes the grant back, in all VMs that have it: from now on the host gets the
    /// placeholder. Answers are still masked.
    pub fn revoke(&self) {
        self.is_revoked.store(true, Ordering::Release);
    }

    /// Returns the ports of the grant: that with TLS, and that without.
    pub(super) fn ports(&self) -> (u16, Option<u16>) {
        (self.port, self.plain_port)
    }

    pub(super) fn value(&self) -> &SecretValue {
        &self.value
    }

    /// Puts the value into a request to the host of the grant.
    pub(super) fn apply(&self, request: &mut Parts) {
        if !self.is_revoked.load(Ordering::Acquire) {
            let value = self.value.expose();
            self.placement.apply(&self.placeholder, value, request);
        }
    }
}

/// Omits the value.
impl fmt::Debug for BrokeredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokeredSecret")
            .field("name", &self.name)
            .field("host", &self.host)
            .field("placement", &self.placement)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: &str) -> Secret {
        Secret::new("token", value.to_owned()).unwrap()
    }

    #[test]
    fn what_cannot_be_granted_is_refused_without_its_value() {
        let token = secret("s3cret-value");
        for error in [
            BrokeredSecret::header(&token, "*.api.test", "Authorization").unwrap_err(),
            BrokeredSecret::header(&token, "127.0.0.1", "Authorization").unwrap_err(),
            BrokeredSecret::header(&token, "api.test", "no header").unwrap_err(),
            BrokeredSecret::header(&token, "api.test", "HOST").unwrap_err(),
            BrokeredSecret::header(&token, "api.test", "Transfer-Encoding").unwrap_err(),
            BrokeredSecret::header(&secret("s3cret\r\nX: y"), "api.test", "X-Key").unwrap_err(),
            BrokeredSecret::query(&token, "api.test", "").unwrap_err(),
        ] {
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn placeholders_are_random_and_nothing_prints_the_value() {
        let grant = || BrokeredSecret::basic(&secret("s3cret-value"), "API.test.").unwrap();
        let (one, two) = (grant(), grant());
        assert_ne!(one.placeholder(), two.placeholder());
        assert_eq!(one.clone().placeholder(), one.placeholder());
        assert_eq!(one.host().as_str(), "api.test");
        assert!(!format!("{one:?}").contains("s3cret"));
    }
}
