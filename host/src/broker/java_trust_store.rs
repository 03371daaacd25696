//! The trust store of Java: the format JKS, version 2.
//!
//! ```text
//!  magic  version  count   for each: 2, alias, time, "X.509", certificate    SHA-1
//!  u32    u32      u32              u32, u16+, u64,  u16+,    u32+           20 bytes
//! ```
//!
//! All numbers are big-endian; `+` is a length before as many bytes. The digest is over the
//! password, as UTF-16, a fixed text and all before it.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

/// Everybody knows it: it protects nothing.
pub(super) const PASSWORD: &str = "changeit";

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
const TRUSTED_CERTIFICATE: u32 = 2;
const DIGEST_TEXT: &[u8] = b"Mighty Aphrodite";

/// Returns a trust store with these certificates.
pub(super) fn encode(certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut store = Vec::new();
    let count = u32::try_from(certificates.len()).unwrap_or(u32::MAX);
    for number in [MAGIC, VERSION, count] {
        store.extend(number.to_be_bytes());
    }
    for (index, certificate) in certificates.iter().enumerate() {
        store.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        push_text(&mut store, &format!("vmcell-{index}"));
        // The time at which it was added, which nobody reads.
        store.extend(0_u64.to_be_bytes());
        push_text(&mut store, "X.509");
        let length = u32::try_from(certificate.len()).unwrap_or(u32::MAX);
        store.extend(length.to_be_bytes());
        store.extend_from_slice(certificate);
    }
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for unit in PASSWORD.encode_utf16() {
        digest.update(&unit.to_be_bytes());
    }
    digest.update(DIGEST_TEXT);
    digest.update(&store);
    store.extend_from_slice(digest.finish().as_ref());
    store
}

fn push_text(store: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    store.extend(length.to_be_bytes());
    store.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    #[test]
    fn a_store_has_its_certificates_and_a_digest() {
        let certificates = [
            CertificateDer::from(&b"first"[..]),
            CertificateDer::from(&b"2"[..]),
        ];
        let store = encode(&certificates);
        let (entries, digest) = store.split_at(store.len() - 20);
        let expected = concat!(
            "feedfeed0000000200000002",
            "00000002",
            "0008766d63656c6c2d30",
            "0000000000000000",
            "0005582e353039",
            "00000005",
            "6669727374",
            "00000002",
            "0008766d63656c6c2d31",
            "0000000000000000",
            "0005582e353039",
            "00000001",
            "32",
        );
        assert_eq!(hex::encode(entries), expected);
        assert_eq!(hex::encode(digest), DIGEST);
    }

    /// Computed by another program.
    const DIGEST: &str = "48d995b7642dacec454a387b40ca4cf0b1706813";
}
