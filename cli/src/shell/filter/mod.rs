//! Makes a guest's output safe for the user's terminal.
//!
//! The guest is untrusted, and a terminal interprets what is printed on it: it
//! answers queries as if the user had typed the answer, writes to the
//! clipboard, moves its window, opens files. So only what draws passes: text,
//! some control characters, and the sequences that `escape.rs` and `osc.rs`
//! list. Unknown sequences are dropped. A sequence passes only when it is
//! complete, so the output never ends in the middle of one.
//!
//! ```text
//!   Ground ─ESC─> Escape ─[─> Csi ──final──> Ground
//!                    ├───]──> Osc ──BEL or ESC \──> Ground
//!                    ├─P X ^ _─> IgnoredString ──ESC──> Escape
//!                    └─final─> Ground
//! ```
//! CAN and SUB lead back to `Ground` from everywhere.

mod escape;
mod osc;
mod state;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use state::{Change, Changes};

/// The longest escape or control sequence that passes, without its first two
/// bytes and its last.
const MAX_SEQUENCE: usize = 256;

/// The longest OSC that passes: a title, a colour, a link.
const MAX_OSC: usize = 4096;

const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// Passes what draws, and records how to undo changes of the terminal's state.
/// Input may be split anywhere.
#[derive(Default)]
pub(super) struct Filter {
    state: State,
    /// The bytes of an unfinished sequence. At its limit it is too long to
    /// pass.
    sequence: Vec<u8>,
    /// The first bytes of an unfinished UTF-8 character.
    partial_character: Vec<u8>,
    changes: Changes,
}

/// The state of the parser.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Text.
    #[default]
    Ground,
    /// After an escape character.
    Escape,
    /// In a control sequence.
    Csi,
    /// In an OSC.
    Osc,
    /// After an escape character in an OSC.
    OscEscape,
    /// In another string (DCS, SOS, PM, APC), which does not pass.
    IgnoredString,
}

/// What happened to a byte.
#[derive(PartialEq, Eq)]
enum Step {
    Consumed,
    /// The byte ended a sequence and must be processed again.
    Reprocess,
}

impl Filter {
    /// Returns the bytes that may be printed.
    pub(super) fn pass<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let unfinished = self.state != State::Ground || !self.partial_character.is_empty();
        if !unfinished && plain_length(bytes) == bytes.len() {
            return Cow::Borrowed(bytes);
        }
        let mut passed = Vec::with_capacity(bytes.len());
        if self.partial_character.is_empty() {
            self.process(bytes, &mut passed);
        } else {
            let mut joined = std::mem::take(&mut self.partial_character);
            joined.extend_from_slice(bytes);
            self.process(&joined, &mut passed);
        }
        Cow::Owned(passed)
    }

    /// Returns the sequences that restore the terminal's state.
    pub(super) fn undo(&mut self) -> Vec<u8> {
        self.changes.take_undo_sequences()
    }

    fn process(&mut self, mut bytes: &[u8], passed: &mut Vec<u8>) {
        while let [first, rest @ ..] = bytes {
            if self.state == State::Ground {
                bytes = self.process_text(bytes, passed);
            } else if self.step(*first, passed) == Step::Consumed {
                bytes = rest;
            }
        }
    }

    /// Processes text and a control character after it. Returns the rest.
    fn process_text<'a>(&mut self, bytes: &'a [u8], passed: &mut Vec<u8>) -> &'a [u8] {
        let (plain, rest) = bytes.split_at(plain_length(bytes));
        passed.extend_from_slice(plain);
        let [first, after @ ..] = rest else {
            return rest;
        };
        match *first {
            0x80.. => {
                let end = rest.iter().position(u8::is_ascii);
                let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                self.process_non_ascii(text, after.is_empty(), passed);
                after
            }
            ESCAPE => {
                self.begin(State::Escape);
                after
            }
            byte => {
                self.execute(byte, passed);
                after
            }
        }
    }

    /// Processes text that is not ASCII. Invalid UTF-8 is replaced, because
    /// some terminals interpret single bytes as control characters.
    fn process_non_ascii(&mut self, mut text: &[u8], is_last: bool, passed: &mut Vec<u8>) {
        while !text.is_empty() {
            let error = match std::str::from_utf8(text) {
                Ok(text) => return push_characters(text, passed),
                Err(error) => error,
            };
            let (valid, rest) = text.split_at(error.valid_up_to());
            push_characters(&String::from_utf8_lossy(valid), passed);
            if error.error_len().is_none() && is_last {
                self.partial_character = rest.to_vec();
                return;
            }
            passed.extend_from_slice("\u{fffd}".as_bytes());
            text = rest
                .get(error.error_len().unwrap_or(rest.len())..)
                .unwrap_or_default();
        }
    }

    /// Processes a byte of an unfinished sequence.
    fn step(&mut self, byte: u8, passed: &mut Vec<u8>) -> Step {
        if matches!(byte, CANCEL | SUBSTITUTE) {
            self.state = State::Ground;
            return Step::Consumed;
        }
        match (self.state, byte) {
            (State::IgnoredString, ESCAPE) => self.begin(State::Escape),
            (State::IgnoredString, _) => {}
            (State::Osc, BELL) | (State::OscEscape, b'\\') => {
                self.state = State::Ground;
                if self.sequence.len() < MAX_OSC {
                    osc::pass(&self.sequence, &mut self.changes, passed);
                }
            }
            (State::Osc, ESCAPE) => self.state = State::OscEscape,
            (State::Osc, byte) => self.append(byte, MAX_OSC),
            (State::OscEscape, _) => {
                self.begin(State::Escape);
                return Step::Reprocess;
            }
            // The rest is for sequences that a terminal reads to their end.
            (_, ESCAPE) => self.begin(State::Escape),
            (_, ..0x20) => self.execute(byte, passed),
            (_, 0x7f) => {}
            (_, 0x80..) => {
                self.state = State::Ground;
                return Step::Reprocess;
            }
            (State::Escape, b'[') if self.sequence.is_empty() => self.begin(State::Csi),
            (State::Escape, b']') if self.sequence.is_empty() => self.begin(State::Osc),
            (State::Escape, b'P' | b'X' | b'^' | b'_') if self.sequence.is_empty() => {
                self.begin(State::IgnoredString);
            }
            (State::Escape, 0x20..0x30) | (State::Csi, 0x20..0x40) => {
                self.append(byte, MAX_SEQUENCE)
            }
            (state, last) => {
                self.state = State::Ground;
                if self.sequence.len() < MAX_SEQUENCE {
                    let decide = match state {
                        State::Escape => escape::pass_escape,
                        _ => escape::pass_csi,
                    };
                    decide(&self.sequence, last, &mut self.changes, passed);
                }
            }
        }
        Step::Consumed
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.sequence.clear();
    }

    fn append(&mut self, byte: u8, limit: usize) {
        if self.sequence.len() < limit {
            self.sequence.push(byte);
        }
    }

    /// Passes a control character, also within a sequence, if it only moves the
    /// cursor, rings the bell or selects a character set.
    fn execute(&mut self, byte: u8, passed: &mut Vec<u8>) {
        match byte {
            SHIFT_OUT => self.changes.record(Change::CharacterSet),
            SHIFT_IN => {}
            _ if is_plain(byte) => {}
            _ => return,
        }
        passed.push(byte);
    }
}

/// Returns whether a byte is text or a control character that always passes:
/// bell, backspace, tab, newline, vertical tab, form feed and carriage return.
fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x7f | 0x07..0x0e)
}

/// Returns how many bytes at the start are plain. Checks blocks, because most
/// bytes are plain.
fn plain_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let is_plain_block = |block: &&[u8]| block.iter().fold(true, |all, byte| all & is_plain(*byte));
    let blocks = bytes.chunks_exact(BLOCK).take_while(is_plain_block).count();
    let rest = bytes.iter().skip(blocks * BLOCK);
    blocks * BLOCK + rest.take_while(|byte| is_plain(**byte)).count()
}

/// Passes characters except U+0080 to U+009F, the C1 controls, which begin
/// sequences as an escape character does.
fn push_characters(text: &str, passed: &mut Vec<u8>) {
    // The first byte of their UTF-8 encoding.
    if !text.as_bytes().contains(&0xc2) {
        passed.extend_from_slice(text.as_bytes());
        return;
    }
    let is_control = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    for harmless in text.split(is_control) {
        passed.extend_from_slice(harmless.as_bytes());
    }
}
