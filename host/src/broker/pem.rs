use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The letters of a line: RFC 7468.
const LINE: usize = 64;

/// Returns a certificate as PEM.
pub(super) fn encode(certificate: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in STANDARD.encode(certificate).as_bytes().chunks(LINE) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}
