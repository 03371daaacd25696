use bytes::Bytes;

use super::Terminal;

/// The keyboard of a terminal, for who does not wait for what comes of each
/// key: see [`Terminal::input`].
#[derive(Clone, Debug)]
pub struct TerminalInput(Terminal);

impl TerminalInput {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self(terminal)
    }

    /// Types bytes as they are, as fast as the program reads them. The answer
    /// is false if nobody does any more.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, a part may have been typed.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> bool {
        self.0.send(bytes.into()).await
    }
}
