use super::{CursorKeys, Key, KeyError, KeyPress, Modifiers, name::escaped};

const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;
const BACKSPACE: u8 = 0x08;

impl KeyPress {
    /// Returns the bytes that xterm sends for it in its default configuration.
    ///
    /// # Errors
    /// [`KeyError`] if a terminal has no bytes for it.
    pub fn encode(&self, cursor_keys: CursorKeys) -> Result<Vec<u8>, KeyError> {
        let modifiers = self.modifiers;
        Ok(match self.key {
            Key::Enter => modifiers.alt_prefixed(b"\r"),
            Key::Tab if modifiers.shift => modifiers.alt_prefixed(b"\x1b[Z"),
            Key::Tab => modifiers.alt_prefixed(b"\t"),
            Key::Escape => modifiers.alt_prefixed(&[ESCAPE]),
            Key::Backspace if modifiers.control => modifiers.alt_prefixed(&[BACKSPACE]),
            Key::Backspace => modifiers.alt_prefixed(&[DELETE]),
            Key::Up => modifiers.letter_sequence('A', cursor_keys),
            Key::Down => modifiers.letter_sequence('B', cursor_keys),
            Key::Right => modifiers.letter_sequence('C', cursor_keys),
            Key::Left => modifiers.letter_sequence('D', cursor_keys),
            Key::End => modifiers.letter_sequence('F', cursor_keys),
            Key::Home => modifiers.letter_sequence('H', cursor_keys),
            Key::Insert => modifiers.tilde_sequence(2),
            Key::Delete => modifiers.tilde_sequence(3),
            Key::PageUp => modifiers.tilde_sequence(5),
            Key::PageDown => modifiers.tilde_sequence(6),
            Key::F(number) => modifiers.function_key(number)?,
            Key::Char(character) => modifiers.character(character)?,
        })
    }
}

impl Modifiers {
    /// Encodes a key that ignores modifiers other than alt, which prefixes ESC.
    fn alt_prefixed(self, bytes: &[u8]) -> Vec<u8> {
        let escape = self.alt.then_some(ESCAPE);
        escape.into_iter().chain(bytes.iter().copied()).collect()
    }

    /// Encodes a key whose sequence ends in a letter, such as `CSI A`.
    fn letter_sequence(self, letter: char, cursor_keys: CursorKeys) -> Vec<u8> {
        let sequence = match (self, cursor_keys) {
            (Self::NONE, CursorKeys::Normal) => format!("\x1b[{letter}"),
            (Self::NONE, CursorKeys::Application) => format!("\x1bO{letter}"),
            _ => format!("\x1b[1;{}{letter}", self.parameter()),
        };
        sequence.into_bytes()
    }

    /// Encodes a key whose sequence has a number, such as `CSI 2 ~`.
    fn tilde_sequence(self, number: u8) -> Vec<u8> {
        let sequence = match self {
            Self::NONE => format!("\x1b[{number}~"),
            _ => format!("\x1b[{number};{}~", self.parameter()),
        };
        sequence.into_bytes()
    }

    fn function_key(self, number: u8) -> Result<Vec<u8>, KeyError> {
        // F1 to F4 are the keys PF1 to PF4 of a VT100. Numbers are skipped
        // where a VT220 has a gap between its groups of keys.
        Ok(match number {
            1 => self.letter_sequence('P', CursorKeys::Application),
            2 => self.letter_sequence('Q', CursorKeys::Application),
            3 => self.letter_sequence('R', CursorKeys::Application),
            4 => self.letter_sequence('S', CursorKeys::Application),
            5 => self.tilde_sequence(15),
            6..=10 => self.tilde_sequence(number + 11),
            11 | 12 => self.tilde_sequence(number + 12),
            13..=24 => self.shift().function_key(number - 12)?,
            _ => return Err(KeyError::NoFunction { number }),
        })
    }

    fn character(self, character: char) -> Result<Vec<u8>, KeyError> {
        if self.control {
            let code = control_code(character).ok_or_else(|| KeyError::NoControl {
                character: escaped(character),
            })?;
            return Ok(self.alt_prefixed(&[code]));
        }
        let character = match self.shift && character != ' ' {
            true => upper(character)?,
            false => character,
        };
        Ok(self.alt_prefixed(character.encode_utf8(&mut [0; 4]).as_bytes()))
    }

    /// Returns the parameter that encodes the modifiers in a sequence.
    fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

/// Returns the code of control with a character, as ASCII and X11 define it.
fn control_code(character: char) -> Option<u8> {
    let byte = u8::try_from(character).ok()?;
    match byte {
        b'@'..=b'~' | b' ' => Some(byte & 0x1f),
        b'?' | b'8' => Some(DELETE),
        b'2' => Some(0),
        b'3'..=b'7' => Some(byte - b'3' + ESCAPE),
        b'/' => Some(0x1f),
        _ => None,
    }
}

fn upper(character: char) -> Result<char, KeyError> {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) if character.is_alphabetic() => Ok(upper),
        _ => Err(KeyError::NoShift {
            character: escaped(character),
        }),
    }
}
