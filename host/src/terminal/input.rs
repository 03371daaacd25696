use bytes::Bytes;

use super::Terminal;

/// Types on a terminal without waiting for output: see [`Terminal::input`].
#[derive(Clone, Debug)]
pub struct TerminalInput(Terminal);

impl TerminalInput {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self(terminal)
    }

    /// Types bytes unchanged, as fast as the program reads them. Returns false if
    /// the terminal takes no more input.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, part of it may have been typed.
    pub async fn write(&self, bytes: impl Into<Bytes>) -> bool {
        self.0.send(bytes.into()).await
    }
}
