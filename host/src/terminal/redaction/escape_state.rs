/// Finds the visible bytes of a stream: those that are neither control characters
/// nor part of a control sequence (ECMA-48, 5.3 to 5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EscapeState {
    /// Text.
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In a control sequence.
    Sequence,
    /// In a control string, for example a title.
    String,
    /// After an escape character in such a string.
    StringEnd,
}

const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
pub(super) const ESCAPE: u8 = 0x1b;

impl EscapeState {
    /// Processes the next byte. Returns whether it is visible.
    pub(super) fn feed(&mut self, byte: u8) -> bool {
        let (next, is_visible) = match (*self, byte) {
            (_, CANCEL | SUBSTITUTE) => (Self::Text, false),
            (Self::String, ESCAPE) => (Self::StringEnd, false),
            (Self::String, BELL) | (Self::StringEnd, b'\\') => (Self::Text, false),
            (Self::String, _) => (Self::String, false),
            (_, ESCAPE) => (Self::Escape, false),
            (Self::Text, ..0x20 | 0x7f) => (Self::Text, false),
            (Self::Text, _) => (Self::Text, true),
            (Self::Escape | Self::StringEnd, b'[') => (Self::Sequence, false),
            (Self::Escape | Self::StringEnd, b']' | b'P' | b'X' | b'^' | b'_') => {
                (Self::String, false)
            }
            // Control characters take effect within a sequence.
            (state, ..0x20) => (state, false),
            (Self::Escape | Self::StringEnd, 0x20..0x30) => (Self::Escape, false),
            (Self::Sequence, 0x20..0x40) => (Self::Sequence, false),
            // Not part of a sequence: text.
            (_, 0x80..) => (Self::Text, true),
            _ => (Self::Text, false),
        };
        *self = next;
        is_visible
    }
}
