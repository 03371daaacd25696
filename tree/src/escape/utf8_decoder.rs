/// Decodes UTF-8 that arrives in pieces. Invalid sequences become U+FFFD, as the
/// Encoding Standard specifies.
///
/// ```
/// let mut text = String::new();
/// let mut decoder = vmcell_tree::escape::Utf8Decoder::default();
/// for piece in [&b"a\xe2"[..], b"\x82\xac\xff"] {
///     decoder.decode(piece, |part| text += part);
/// }
/// assert_eq!(text, "a€\u{fffd}");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Utf8Decoder {
    /// The first bytes of an incomplete character, at most three.
    partial: Vec<u8>,
}

const REPLACEMENT: &str = "\u{fffd}";

impl Utf8Decoder {
    /// Passes the text of the next piece to `text`, part by part.
    pub fn decode(&mut self, mut bytes: &[u8], mut text: impl FnMut(&str)) {
        while !self.partial.is_empty() {
            let Some((next, rest)) = bytes.split_first() else {
                return;
            };
            self.partial.push(*next);
            match str::from_utf8(&self.partial).map_err(|error| error.error_len()) {
                Ok(character) => {
                    text(character);
                    bytes = rest;
                }
                Err(None) => {
                    bytes = rest;
                    continue;
                }
                // The byte is not part of the character, and is decoded again.
                Err(Some(_)) => text(REPLACEMENT),
            }
            self.partial.clear();
        }
        loop {
            let error = match str::from_utf8(bytes) {
                Ok(valid) => return text(valid),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            text(str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.partial.extend_from_slice(rest);
                return;
            };
            text(REPLACEMENT);
            bytes = rest.get(length..).unwrap_or_default();
        }
    }

    /// Returns whether the last character is incomplete.
    pub fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }
}
