use std::{fmt, str::FromStr};

use super::{CursorKeys, Key, KeyError, KeyPress, Modifiers};

/// The names of keys. Comparison ignores case, dashes, underscores and spaces.
/// `Display` uses the first name of a key.
const NAMES: &[(&str, Key)] = &[
    ("enter", Key::Enter),
    ("return", Key::Enter),
    ("tab", Key::Tab),
    ("escape", Key::Escape),
    ("esc", Key::Escape),
    ("backspace", Key::Backspace),
    ("delete", Key::Delete),
    ("del", Key::Delete),
    ("insert", Key::Insert),
    ("ins", Key::Insert),
    ("home", Key::Home),
    ("end", Key::End),
    ("pageup", Key::PageUp),
    ("pgup", Key::PageUp),
    ("pagedown", Key::PageDown),
    ("pgdn", Key::PageDown),
    ("pgdown", Key::PageDown),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("space", Key::Char(' ')),
];

impl FromStr for KeyPress {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        let (modifiers, rest) = modifiers(name);
        let press = match normalized(rest).as_str() {
            "backtab" => Self::new(Key::Tab, modifiers.shift()),
            normalized => {
                let key = key(rest, normalized).ok_or_else(|| KeyError::Unknown {
                    name: name.chars().take(40).collect(),
                })?;
                Self::new(key, modifiers)
            }
        };
        press.encode(CursorKeys::Normal)?;
        Ok(press)
    }
}

/// Splits a name into its leading modifiers and the rest.
fn modifiers(name: &str) -> (Modifiers, &str) {
    let mut modifiers = Modifiers::NONE;
    let mut rest = name;
    if let Some(control) = name.strip_prefix('^')
        && control.chars().count() == 1
    {
        return (modifiers.control(), control);
    }
    while let Some((word, after)) = rest.split_once(['+', '-'])
        && !after.is_empty()
    {
        modifiers = match word.trim().to_ascii_lowercase().as_str() {
            "ctrl" | "control" => modifiers.control(),
            "alt" | "meta" | "option" => modifiers.alt(),
            "shift" => modifiers.shift(),
            _ => break,
        };
        rest = after;
    }
    (modifiers, rest)
}

fn key(name: &str, normalized: &str) -> Option<Key> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Some(Key::Char(character)).filter(|_| !character.is_control());
    }
    if let Some(number) = normalized.strip_prefix('f')
        && let Ok(number) = number.parse()
    {
        return Some(Key::F(number));
    }
    let (_, key) = NAMES.iter().find(|(name, _)| *name == normalized)?;
    Some(*key)
}

fn normalized(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '-' | '_' | ' '))
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Modifiers {
            shift,
            alt,
            control,
        } = self.modifiers;
        for (held, name) in [(control, "ctrl+"), (alt, "alt+"), (shift, "shift+")] {
            if held {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, key)| *key == self.key) {
            return f.write_str(name);
        }
        match self.key {
            Key::F(number) => write!(f, "f{number}"),
            Key::Char(character) => f.write_str(&escaped(character)),
            // Every other key has a name.
            _ => Ok(()),
        }
    }
}

/// Returns a character in printable form.
pub(super) fn escaped(character: char) -> String {
    match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    }
}
