use rmcp::model::RequestId;

/// The longest id that is found.
const MAX_ID: usize = 256;

/// Finds the id of a message that is too long to be kept, wherever in the message it is.
#[derive(Debug, Default)]
pub(super) struct MessageId {
    /// In how many objects and lists the next byte is.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// Whether the next value belongs to the field `id`.
    is_next: bool,
    /// The name or value that is read, if it is one of the message itself.
    token: Vec<u8>,
    found: Option<RequestId>,
}

impl MessageId {
    /// Returns the id, if it was in what was read.
    pub(super) fn found(self) -> Option<RequestId> {
        self.found
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.read_byte(byte);
        }
    }

    fn read_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b':' if self.depth == 1 => {
                self.is_next = self.token == b"\"id\"";
                self.token.clear();
            }
            b',' if self.depth == 1 => self.end_value(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_ID {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.is_next {
            self.found = serde_json::from_slice(&self.token).ok();
        }
        self.is_next = false;
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(message: &str) -> Option<RequestId> {
        let mut id = MessageId::default();
        // In pieces, as it arrives.
        for piece in message.as_bytes().chunks(3) {
            id.read(piece);
        }
        id.found()
    }

    #[test]
    fn an_id_is_found_wherever_it_is() {
        for message in [
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":8,"list":[{"id":9}]}}"#,
            r#"{ "params" : {"id":8, "text":"\"id\":9,}"}, "method":"x", "id" : 7 }"#,
            r#"{"method":"\\","id":7}"#,
        ] {
            assert_eq!(id_of(message), Some(RequestId::Number(7)), "{message}");
        }
        let text = Some(RequestId::String("a,\"}".into()));
        assert_eq!(id_of(r#"{"id":"a,\"}","x":1}"#), text);
    }

    #[test]
    fn what_is_no_id_is_not_found() {
        let long = format!(r#"{{"id":"{}"}}"#, "a".repeat(1000));
        for message in [
            r#"{"jsonrpc":"2.0","method":"x","params":{"id":8}}"#,
            r#"[{"id":7}]"#,
            r#"{"id":{"id":7}}"#,
            r#"{"id":null}"#,
            "}}}]]:,",
            r#"{"id":7"#,
            "",
            &long,
        ] {
            assert_eq!(id_of(message), None, "{message}");
        }
    }
}
