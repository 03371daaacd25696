use super::{
    display::Display,
    sequence::Sequence,
    utf8::{Decoded, Utf8},
};

/// How many bytes of a command are kept. The rest of a longer one is dropped.
const MAX_COMMAND: usize = 1024;

/// Tells text from controls, in bytes that are cut anywhere.
///
/// ```text
///            ESC            [                 @ … ~
///  Ground ────────> Escape ───> Control ────────────────> Ground
///    ▲                │  └ ] ─> Command ── BEL or ESC ──┐
///    │                ├─── P ─> Request ── @ … ~ ──┐    │
///    │                └ X ^ _ ───────> Ignored <───┘    │
///    └── CAN, SUB: from everywhere      └ ESC ──────────┴─> Escape
/// ```
///
/// What it holds does not grow with what arrives: numbers and strings are bounded,
/// and what is longer is read to its end and dropped.
#[derive(Debug)]
pub(super) struct Parser {
    state: State,
    sequence: Sequence,
    command: Vec<u8>,
    utf8: Utf8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Text.
    Ground,
    /// Behind ESC.
    Escape,
    /// A control sequence (CSI).
    Control,
    /// A control sequence with something in it that cannot be.
    Malformed,
    /// An operating system command (OSC).
    Command,
    /// The head of a device control string (DCS).
    Request,
    /// A string that means nothing to us.
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
            command: Vec::new(),
            utf8: Utf8::new(),
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], display: &mut Display) {
        loop {
            if self.state == State::Ground && !self.utf8.is_amid() {
                let plain = bytes.iter().position(|byte| !matches!(byte, b' '..=b'~'));
                let (text, rest) = bytes.split_at(plain.unwrap_or(bytes.len()));
                display.write_ascii(text);
                bytes = rest;
            }
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            bytes = rest;
            self.take(byte, display);
        }
    }

    /// How many bytes it keeps of what is not complete.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.command.capacity()
    }

    fn take(&mut self, byte: u8, display: &mut Display) {
        if self.state == State::Ground && (self.utf8.is_amid() || byte >= 0x80) {
            match self.utf8.decode(byte) {
                Decoded::Part => return,
                Decoded::Character(character) => return display.write(character),
                Decoded::Cut => {
                    display.write(char::REPLACEMENT_CHARACTER);
                    if byte >= 0x80 {
                        return self.take(byte, display);
                    }
                }
            }
        }
        match (byte, self.state) {
            (CANCEL | SUBSTITUTE, _) => self.state = State::Ground,
            (ESCAPE, before) => {
                self.state = State::Escape;
                self.sequence.clear();
                if before == State::Command {
                    display.command(&self.command, false);
                }
            }
            (_, State::Ground) => match byte {
                b' '..=b'~' => display.write(char::from(byte)),
                _ => display.execute(byte),
            },
            (_, State::Command) => self.command(byte, display),
            (_, State::Ignored) | (DELETE, _) => {}
            (0..b' ', State::Escape | State::Control | State::Malformed) => display.execute(byte),
            (_, State::Escape) => self.escape(byte, display),
            (_, State::Control | State::Request) => self.sequence(byte, display),
            (b'@'.., State::Malformed) => self.state = State::Ground,
            (_, State::Malformed) => {}
        }
    }

    fn escape(&mut self, byte: u8, display: &mut Display) {
        let begun = match self.sequence.marks() {
            // Only what stands right behind ESC begins something.
            Some([]) => begun_by(byte),
            _ => None,
        };
        if let Some(state) = begun {
            self.state = state;
            self.command.clear();
            return;
        }
        match byte {
            b' '..=b'/' => self.sequence.mark(byte),
            b'0'..=b'~' => {
                self.state = State::Ground;
                if let Some(marks) = self.sequence.marks() {
                    display.escape(marks, byte);
                }
            }
            _ => self.state = State::Ground,
        }
    }

    fn command(&mut self, byte: u8, display: &mut Display) {
        match byte {
            BELL => {
                self.state = State::Ground;
                display.command(&self.command, true);
            }
            // Other control characters are not part of it.
            0..b' ' => {}
            _ if self.command.len() < MAX_COMMAND => self.command.push(byte),
            _ => {}
        }
    }

    fn sequence(&mut self, byte: u8, display: &mut Display) {
        match byte {
            b'0'..=b'9' => self.sequence.digit(byte),
            b';' => self.sequence.separate(false),
            b':' => self.sequence.separate(true),
            b'<'..=b'?' | b' '..=b'/' => self.sequence.mark(byte),
            b'@'..=b'~' if self.state == State::Control => {
                self.state = State::Ground;
                display.control(&self.sequence, byte);
            }
            b'@'..=b'~' => {
                self.state = State::Ignored;
                display.request(&self.sequence, byte);
            }
            // Control characters within the head of a string.
            0..b' ' => {}
            _ => self.state = State::Malformed,
        }
    }
}

fn begun_by(byte: u8) -> Option<State> {
    match byte {
        b'[' => Some(State::Control),
        b']' => Some(State::Command),
        b'P' => Some(State::Request),
        b'X' | b'^' | b'_' => Some(State::Ignored),
        _ => None,
    }
}
