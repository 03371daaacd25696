use super::{CursorKeys, Key, KeyError, KeyPress, Modifiers, name::shown};

const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;
const BACKSPACE: u8 = 0x08;

impl KeyPress {
    /// The bytes that xterm sends for it, in its default state.
    ///
    /// # Errors
    /// [`KeyError`] if a terminal has no bytes for it.
    pub fn encode(&self, cursor_keys: CursorKeys) -> Result<Vec<u8>, KeyError> {
        let held = self.modifiers;
        Ok(match self.key {
            Key::Enter => held.plain(b"\r"),
            Key::Tab if held.shift => held.plain(b"\x1b[Z"),
            Key::Tab => held.plain(b"\t"),
            Key::Escape => held.plain(&[ESCAPE]),
            Key::Backspace if held.control => held.plain(&[BACKSPACE]),
            Key::Backspace => held.plain(&[DELETE]),
            Key::Up => held.letter('A', cursor_keys),
            Key::Down => held.letter('B', cursor_keys),
            Key::Right => held.letter('C', cursor_keys),
            Key::Left => held.letter('D', cursor_keys),
            Key::End => held.letter('F', cursor_keys),
            Key::Home => held.letter('H', cursor_keys),
            Key::Insert => held.number(2),
            Key::Delete => held.number(3),
            Key::PageUp => held.number(5),
            Key::PageDown => held.number(6),
            Key::F(number) => held.function(number)?,
            Key::Char(character) => held.character(character)?,
        })
    }
}

impl Modifiers {
    /// Keys that send the same bytes with every modifier but alt.
    fn plain(self, bytes: &[u8]) -> Vec<u8> {
        let escape = self.alt.then_some(ESCAPE);
        escape.into_iter().chain(bytes.iter().copied()).collect()
    }

    /// Keys whose sequence ends in a letter of their own.
    fn letter(self, letter: char, cursor_keys: CursorKeys) -> Vec<u8> {
        let sequence = match (self, cursor_keys) {
            (Self::NONE, CursorKeys::Normal) => format!("\x1b[{letter}"),
            (Self::NONE, CursorKeys::Application) => format!("\x1bO{letter}"),
            _ => format!("\x1b[1;{}{letter}", self.parameter()),
        };
        sequence.into_bytes()
    }

    /// Keys whose sequence tells a number.
    fn number(self, number: u8) -> Vec<u8> {
        let sequence = match self {
            Self::NONE => format!("\x1b[{number}~"),
            _ => format!("\x1b[{number};{}~", self.parameter()),
        };
        sequence.into_bytes()
    }

    fn function(self, number: u8) -> Result<Vec<u8>, KeyError> {
        // The first four are the keys PF1 to PF4 of a VT100. Gaps in the
        // numbers are keys that a VT220 had between its groups.
        Ok(match number {
            1 => self.letter('P', CursorKeys::Application),
            2 => self.letter('Q', CursorKeys::Application),
            3 => self.letter('R', CursorKeys::Application),
            4 => self.letter('S', CursorKeys::Application),
            5 => self.number(15),
            6..=10 => self.number(number + 11),
            11 | 12 => self.number(number + 12),
            13..=24 => self.shift().function(number - 12)?,
            _ => return Err(KeyError::NoFunction { number }),
        })
    }

    fn character(self, character: char) -> Result<Vec<u8>, KeyError> {
        if self.control {
            let code = control(character).ok_or_else(|| KeyError::NoControl {
                character: shown(character),
            })?;
            return Ok(self.plain(&[code]));
        }
        let character = match self.shift && character != ' ' {
            true => upper(character)?,
            false => character,
        };
        Ok(self.plain(character.encode_utf8(&mut [0; 4]).as_bytes()))
    }

    /// How the modifiers are told in a sequence.
    fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

/// The code of a character with control, of those that ASCII and X11 know.
fn control(character: char) -> Option<u8> {
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
            character: shown(character),
        }),
    }
}
