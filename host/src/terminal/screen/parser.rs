use super::{
    display::Display,
    sequence::Sequence,
    utf8::{Decoded, Utf8},
};

/// How many bytes of an OSC string are kept. The rest is dropped.
const MAX_OSC: usize = 1024;

/// Parses text and control sequences. Bytes may be split anywhere.
///
/// ```text
///            ESC            [             @ … ~
///  Ground ────────> Escape ───> Csi ────────────────────> Ground
///    ▲                │  └ ] ─> Osc ── BEL or ESC ──────┐
///    │                ├─── P ─> Dcs ── @ … ~ ──────┐    │
///    │                └ X ^ _ ───────> Ignored <───┘    │
///    └── CAN, SUB: from everywhere      └ ESC ──────────┴─> Escape
/// ```
///
/// Its memory is bounded: numbers and strings have limits, and what exceeds them
/// is parsed to its end and dropped.
#[derive(Debug)]
pub(super) struct Parser {
    state: State,
    sequence: Sequence,
    osc: Vec<u8>,
    utf8: Utf8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Text.
    Ground,
    /// After ESC.
    Escape,
    /// A control sequence (CSI).
    Csi,
    /// A control sequence with an invalid byte.
    Malformed,
    /// An operating system command (OSC).
    Osc,
    /// The head of a device control string (DCS).
    Dcs,
    /// A string that is not supported.
    Ignored,
}

const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

impl Parser {
    pub(super) fn new() -> Self {
        Self {
            state: State::Ground,
            sequence: Sequence::default(),
            osc: Vec::new(),
            utf8: Utf8::new(),
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], display: &mut Display) {
        loop {
            if self.state == State::Ground && !self.utf8.is_partial() {
                let plain = bytes.iter().position(|byte| !matches!(byte, b' '..=b'~'));
                let (text, rest) = bytes.split_at(plain.unwrap_or(bytes.len()));
                display.write_ascii(text);
                bytes = rest;
            }
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            bytes = rest;
            self.parse(byte, display);
        }
    }

    /// Returns how many bytes are allocated for an incomplete sequence.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.osc.capacity()
    }

    fn parse(&mut self, byte: u8, display: &mut Display) {
        if self.state == State::Ground && (self.utf8.is_partial() || byte >= 0x80) {
            match self.utf8.decode(byte) {
                Decoded::Incomplete => return,
                Decoded::Character(character) => return display.write(character),
                Decoded::Invalid => {
                    display.write(char::REPLACEMENT_CHARACTER);
                    if byte >= 0x80 {
                        return self.parse(byte, display);
                    }
                }
            }
        }
        match (byte, self.state) {
            (CANCEL | SUBSTITUTE, _) => self.state = State::Ground,
            (ESCAPE, before) => {
                self.state = State::Escape;
                self.sequence.clear();
                if before == State::Osc {
                    display.osc(&self.osc, false);
                }
            }
            (_, State::Ground) => match byte {
                b' '..=b'~' => display.write(char::from(byte)),
                _ => display.execute(byte),
            },
            (_, State::Osc) => self.osc_byte(byte, display),
            (_, State::Ignored) | (DELETE, _) => {}
            (0..b' ', State::Escape | State::Csi | State::Malformed) => display.execute(byte),
            (_, State::Escape) => self.escape_byte(byte, display),
            (_, State::Csi | State::Dcs) => self.sequence_byte(byte, display),
            (b'@'.., State::Malformed) => self.state = State::Ground,
            (_, State::Malformed) => {}
        }
    }

    fn escape_byte(&mut self, byte: u8, display: &mut Display) {
        let string_or_csi = match self.sequence.intermediates() {
            // Only a byte directly after ESC starts one.
            Some([]) => state_after_escape(byte),
            _ => None,
        };
        if let Some(state) = string_or_csi {
            self.state = state;
            self.osc.clear();
            return;
        }
        match byte {
            b' '..=b'/' => self.sequence.push_intermediate(byte),
            b'0'..=b'~' => {
                self.state = State::Ground;
                if let Some(intermediates) = self.sequence.intermediates() {
                    display.escape(intermediates, byte);
                }
            }
            _ => self.state = State::Ground,
        }
    }

    fn osc_byte(&mut self, byte: u8, display: &mut Display) {
        match byte {
            BELL => {
                self.state = State::Ground;
                display.osc(&self.osc, true);
            }
            // Other control characters are not part of it.
            0..b' ' => {}
            _ if self.osc.len() < MAX_OSC => self.osc.push(byte),
            _ => {}
        }
    }

    fn sequence_byte(&mut self, byte: u8, display: &mut Display) {
        match byte {
            b'0'..=b'9' => self.sequence.digit(byte),
            b';' => self.sequence.end_number(false),
            b':' => self.sequence.end_number(true),
            b'<'..=b'?' | b' '..=b'/' => self.sequence.push_intermediate(byte),
            b'@'..=b'~' if self.state == State::Csi => {
                self.state = State::Ground;
                display.csi(&self.sequence, byte);
            }
            b'@'..=b'~' => {
                self.state = State::Ignored;
                display.dcs(&self.sequence, byte);
            }
            // Control characters within the head of a string.
            0..b' ' => {}
            _ => self.state = State::Malformed,
        }
    }
}

fn state_after_escape(byte: u8) -> Option<State> {
    match byte {
        b'[' => Some(State::Csi),
        b']' => Some(State::Osc),
        b'P' => Some(State::Dcs),
        b'X' | b'^' | b'_' => Some(State::Ignored),
        _ => None,
    }
}
