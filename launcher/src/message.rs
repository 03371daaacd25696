use serde::{Deserialize, Serialize};

use crate::layer::{Layer, LayerStatus};

/// What the launcher reports. After the last message it closes the socket, which the VMM does
/// not inherit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The VMM will be this process, another child of the caller. The launcher exits.
    Child(i32),
    /// The VMM is about to be executed, confined like this.
    Confined(Vec<LayerStatus>),
    /// It is not executed.
    Failed(Failure),
}

/// Why a VMM was not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The layer that could not be set up, if it was one.
    pub layer: Option<Layer>,
    /// What was being done: `mount /proc`.
    pub doing: String,
    /// Why it failed.
    pub reason: String,
}

impl Message {
    /// Encodes it.
    ///
    /// # Errors
    /// If it is too large for memory.
    pub fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }
}

/// Decodes everything that a launcher has reported, up to the first message that is cut off.
pub fn decode_messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Ok((message, rest)) = postcard::take_from_bytes(bytes) {
        messages.push(message);
        bytes = rest;
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_one_another_and_the_last_may_be_cut_off() {
        let layers = vec![LayerStatus::active(Layer::Landlock, "ABI 7")];
        let messages = [Message::Child(7), Message::Confined(layers)];
        let bytes: Vec<u8> = messages
            .iter()
            .flat_map(|message| message.encode().unwrap())
            .collect();
        assert_eq!(decode_messages(&bytes), messages);
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(decode_messages(cut), messages[..1]);
    }
}
