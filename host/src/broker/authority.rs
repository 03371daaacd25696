use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use super::pem;
use crate::network::HostName;

/// The certificates of a VM: that of its authority, and one for each host. The key of the
/// authority is not kept, so nothing else is ever signed with it.
pub(super) struct Certificates {
    /// The certificate of the authority, as PEM.
    pub(super) authority: String,
    pub(super) hosts: Vec<HostCertificate>,
}

/// A certificate for a host, and its key.
pub(super) struct HostCertificate {
    pub(super) host: HostName,
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long certificates are valid. A workspace may run for long, and nobody has the key
/// with which to sign again.
const VALIDITY: Duration = Duration::from_secs(397 * DAY.as_secs());

impl Certificates {
    /// Creates an authority that may sign for these hosts only, and their certificates.
    pub(super) fn new(hosts: &[HostName]) -> Result<Self, rcgen::Error> {
        let mut params = params("vmcell: this VM");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let names = hosts.iter().map(|host| host.as_str().to_owned());
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: names.map(GeneralSubtree::DnsName).collect(),
            excluded_subtrees: Vec::new(),
        });
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let sign = |host: &HostName| {
            let key = KeyPair::generate()?;
            let names = CertificateParams::new([host.as_str().to_owned()])?;
            let mut params = self::params("vmcell");
            params.subject_alt_names = names.subject_alt_names;
            params.is_ca = IsCa::ExplicitNoCa;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            Ok(HostCertificate {
                host: host.clone(),
                certificate: params.signed_by(&key, &authority)?.der().clone(),
                key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            })
        };
        Ok(Self {
            hosts: hosts.iter().map(sign).collect::<Result<_, _>>()?,
            authority: pem::encode(authority.der()),
        })
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    // The clock of the guest may be behind.
    params.not_before = OffsetDateTime::from(now.checked_sub(DAY).unwrap_or(now));
    params.not_after = OffsetDateTime::from(now.checked_add(VALIDITY).unwrap_or(now));
    params
}
