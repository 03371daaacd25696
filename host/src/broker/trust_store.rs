//! What makes programs of a guest trust the authority of their VM.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use vmcell_wire::{Outcome, PackedStringsBuf, Request, TrustStore};

use super::{Broker, java_trust_store, pem, upstream_tls::system_roots};
use crate::{
    error::Error,
    files::{FileFailureKind, Files, ReadOptions, WriteOptions},
    printable,
    vm::Vm,
};

/// The files in which images have the certificates that they trust, by distribution.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// The trust store of Java in Debian.
const JAVA_STORE: &str = "/etc/ssl/certs/java/cacerts";

/// The largest file of an image that is read.
const MAX_BUNDLE: u64 = 4 * 1024 * 1024;

/// Where the files are, in memory.
const FOLDER: &str = "/run/vmcell-trust";

/// The certificate of the authority alone.
const AUTHORITY_FILE: &str = "/run/vmcell-trust/authority.pem";

/// All certificates, as PEM.
const BUNDLE_FILE: &str = "/run/vmcell-trust/ca-bundle.pem";

/// All certificates, for Java.
const JAVA_FILE: &str = "/run/vmcell-trust/cacerts.jks";

/// The variables that name all certificates: of OpenSSL, with which Python and Ruby work,
/// and Go; of Python's requests; of curl; and of git.
const BUNDLE_VARIABLES: [&str; 4] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
];

/// The variable that names more certificates for Node.
const NODE_VARIABLE: &str = "NODE_EXTRA_CA_CERTS";

/// The variable with options of Java.
const JAVA_VARIABLE: &str = "JAVA_TOOL_OPTIONS";

/// The files of a trust store, and where they belong.
#[derive(Debug, Default, PartialEq, Eq)]
struct Composed {
    /// Paths, with their contents.
    files: Vec<(String, Vec<u8>)>,
    /// A path of these, and the file of the image over which it is mounted.
    mounts: Vec<(String, &'static str)>,
}

impl Broker {
    /// Makes programs of a VM trust its authority.
    ///
    /// # Cancel safety
    /// If the future is dropped, programs may trust it or not.
    pub(crate) async fn install_trust(&self, vm: &Vm) -> Result<(), Error> {
        let files = vm.files();
        let [first, second, third, fourth] = BUNDLES.map(|path| read(&files, path));
        let java_store = read(&files, JAVA_STORE);
        let (first, second, third, fourth, java_store) =
            tokio::try_join!(first, second, third, fourth, java_store)?;
        let bundles = BUNDLES.into_iter().zip([first, second, third, fourth]);
        let bundles = bundles.filter_map(|(path, content)| Some((path, content?)));
        let composed = compose(&self.authority, bundles.collect(), java_store.is_some());
        for (path, content) in composed.files {
            let options = WriteOptions::new().mode(0o644);
            files.write_with(path, content, options).await?;
        }
        let mut mounts = PackedStringsBuf::new();
        for (source, target) in &composed.mounts {
            // They fail only on a zero byte.
            let _ = mounts.push(source.as_bytes()) && mounts.push(target.as_bytes());
        }
        let mut env = PackedStringsBuf::new();
        for variable in variables() {
            let _ = env.push(variable.as_bytes());
        }
        let request = Request::SetTrustStore(TrustStore {
            mounts: mounts.as_packed(),
            env: env.as_packed(),
        });
        match vm.request(&request).await?.outcome() {
            Outcome::Done => Ok(()),
            Outcome::Failed(failure) => Err(Error::Control {
                doing: "make its programs trust the broker",
                reason: printable(failure.text.as_bytes()).into_owned(),
            }),
            _ => Err(Error::unexpected_reply()),
        }
    }
}

/// Reads a file of the image; `None` if it has none that can be used.
async fn read(files: &Files, path: &'static str) -> Result<Option<Vec<u8>>, Error> {
    let options = ReadOptions::new().limit(MAX_BUNDLE);
    match files.read_with(path, options).await {
        Ok(content) => Ok(Some(content)),
        Err(Error::File(failure)) => {
            if failure.kind != FileFailureKind::NotFound {
                tracing::warn!(path, %failure, "certificates of the guest cannot be read");
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn variables() -> Vec<String> {
    let mut variables: Vec<_> = BUNDLE_VARIABLES
        .iter()
        .map(|name| format!("{name}={BUNDLE_FILE}"))
        .collect();
    variables.push(format!("{NODE_VARIABLE}={AUTHORITY_FILE}"));
    let password = java_trust_store::PASSWORD;
    variables.push(format!(
        "{JAVA_VARIABLE}=-Djavax.net.ssl.trustStore={JAVA_FILE} \
         -Djavax.net.ssl.trustStorePassword={password}"
    ));
    variables
}

/// Adds an authority to the bundles of an image. Without any, programs trust what this system
/// trusts: those that have certificates of their own would otherwise trust nobody else.
fn compose(
    authority: &str,
    bundles: Vec<(&'static str, Vec<u8>)>,
    has_java_store: bool,
) -> Composed {
    let mut composed = Composed::default();
    let first = match bundles.first() {
        Some((_, content)) => with_authority(content, authority),
        None => with_authority(&system_bundle(), authority),
    };
    for (number, (path, content)) in bundles.into_iter().enumerate() {
        let content = with_authority(&content, authority);
        // Most of them are links to one another.
        let source = match content == first {
            true => BUNDLE_FILE.to_owned(),
            false => {
                let source = format!("{FOLDER}/ca-bundle-{number}.pem");
                composed.files.push((source.clone(), content));
                source
            }
        };
        composed.mounts.push((source, path));
    }
    let certificates = CertificateDer::pem_slice_iter(&first);
    // Java rejects no store because of a certificate that is missing.
    let certificates: Vec<_> = certificates.filter_map(Result::ok).collect();
    let java = java_trust_store::encode(&certificates);
    if has_java_store {
        composed.mounts.push((JAVA_FILE.to_owned(), JAVA_STORE));
    }
    composed.files.extend([
        (AUTHORITY_FILE.to_owned(), authority.as_bytes().to_vec()),
        (BUNDLE_FILE.to_owned(), first),
        (JAVA_FILE.to_owned(), java),
    ]);
    composed
}

fn with_authority(bundle: &[u8], authority: &str) -> Vec<u8> {
    let mut content = bundle.to_vec();
    if content.last().is_some_and(|last| *last != b'\n') {
        content.push(b'\n');
    }
    content.extend_from_slice(authority.as_bytes());
    content
}

/// Returns what this system trusts, as PEM.
fn system_bundle() -> Vec<u8> {
    let roots = system_roots().iter();
    let bundle: String = roots.map(|root| pem::encode(root)).collect();
    bundle.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{broker::authority::Certificates, network::HostName};

    fn authority() -> String {
        let hosts = [HostName::new("api.test").unwrap()];
        Certificates::new(&hosts).unwrap().authority
    }

    fn content<'a>(composed: &'a Composed, path: &str) -> &'a [u8] {
        let file = composed.files.iter().find(|(name, _)| name == path);
        &file.unwrap().1
    }

    fn count(pem: &[u8]) -> usize {
        CertificateDer::pem_slice_iter(pem)
            .map(Result::unwrap)
            .count()
    }

    #[test]
    fn the_authority_is_added_to_each_bundle_of_the_image() {
        let (own, other, authority) = (authority(), authority(), authority());
        // One of them lacks its line end, and two are the same.
        let bundles = vec![
            (BUNDLES[0], own.trim_end().as_bytes().to_vec()),
            (BUNDLES[1], own.as_bytes().to_vec()),
            (BUNDLES[2], other.as_bytes().to_vec()),
        ];
        let composed = compose(&authority, bundles, true);
        let second = "/run/vmcell-trust/ca-bundle-2.pem".to_owned();
        assert_eq!(
            composed.mounts,
            [
                (BUNDLE_FILE.to_owned(), BUNDLES[0]),
                (BUNDLE_FILE.to_owned(), BUNDLES[1]),
                (second.clone(), BUNDLES[2]),
                (JAVA_FILE.to_owned(), JAVA_STORE),
            ]
        );
        assert_eq!(content(&composed, AUTHORITY_FILE), authority.as_bytes());
        let expected = format!("{own}{authority}");
        assert_eq!(content(&composed, BUNDLE_FILE), expected.as_bytes());
        assert_eq!(
            content(&composed, &second),
            format!("{other}{authority}").as_bytes()
        );
        assert_eq!(count(content(&composed, BUNDLE_FILE)), 2);
        // Magic, version and the number of certificates.
        assert_eq!(
            content(&composed, JAVA_FILE)[..12],
            [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2]
        );
    }

    #[test]
    fn an_image_without_a_bundle_trusts_what_this_system_trusts() {
        let composed = compose(&authority(), Vec::new(), false);
        assert_eq!(composed.mounts, []);
        assert_eq!(
            count(content(&composed, BUNDLE_FILE)),
            system_roots().len() + 1
        );
    }
}
