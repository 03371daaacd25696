//! Keys, their names, and the bytes that a terminal sends for them.

mod encode;
mod name;
#[cfg(test)]
mod tests;

/// A key, alone or with modifiers.
///
/// It is parsed from its name, which ignores case: `enter`, `ctrl+c`,
/// `alt+left`, `shift+tab`, `f5`, `page-up`. A single character means itself, so
/// `a` and `A` differ.
///
/// ```
/// # use vmcell::terminal::KeyPress;
/// let interrupt: KeyPress = "ctrl+c".parse()?;
/// assert_eq!(interrupt, KeyPress::control('c'));
/// assert!("ctrl+everything".parse::<KeyPress>().is_err());
/// # Ok::<(), vmcell::terminal::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    /// The key.
    pub key: Key,
    /// The modifiers that are held down with it.
    pub modifiers: Modifiers,
}

/// A key of a keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Ends a line.
    Enter,
    /// Goes forward; with shift, back.
    Tab,
    /// Sends ESC, with which the sequences of most other keys begin.
    Escape,
    /// Deletes the character left of the cursor.
    Backspace,
    /// Deletes the character under the cursor.
    Delete,
    /// The Insert key.
    Insert,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A function key, 1 to 24. As in xterm, F13 to F24 are F1 to F12 with
    /// shift.
    F(u8),
    /// A character, including the space.
    Char(char),
}

/// Keys that are held down while another is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers {
    /// Shift.
    pub shift: bool,
    /// Alt, which is also called meta or option.
    pub alt: bool,
    /// Control.
    pub control: bool,
}

/// The cursor key mode (DECCKM), which a program selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorKeys {
    /// As in line editors.
    #[default]
    Normal,
    /// As in most full-screen programs.
    Application,
}

/// Why a key cannot be parsed or sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No key has this name.
    #[error(
        "there is no key {name:?}: a key is a single character, enter, tab, escape, backspace, \
         delete, insert, home, end, page-up, page-down, up, down, left, right, space or f1 to \
         f24, after any of ctrl+, alt+ and shift+"
    )]
    Unknown {
        /// The name that was given, truncated if it is long.
        name: String,
    },
    /// Terminals have no code for this character with control.
    #[error(
        "a terminal has no code for ctrl+{character}: it has them for letters and @ [ \\ ] ^ _ ? \
         and space"
    )]
    NoControl {
        /// The character, in a form that can be printed.
        character: String,
    },
    /// The result of shift with a character that is not a letter depends on the
    /// keyboard layout.
    #[error("shift+{character} depends on the keyboard: name the character that it gives")]
    NoShift {
        /// The character, in a form that can be printed.
        character: String,
    },
    /// The number of a function key is not from 1 to 24.
    #[error("there is no function key {number}: there are f1 to f24")]
    NoFunction {
        /// The number that was given.
        number: u8,
    },
}

impl KeyPress {
    /// Returns a key with these modifiers.
    pub fn new(key: Key, modifiers: Modifiers) -> Self {
        Self { key, modifiers }
    }

    /// Returns a character with control: `c` interrupts, `d` ends the input, `z`
    /// stops, `[` is escape.
    pub fn control(character: char) -> Self {
        Self::new(Key::Char(character), Modifiers::NONE.control())
    }
}

impl From<Key> for KeyPress {
    fn from(key: Key) -> Self {
        Self::new(key, Modifiers::NONE)
    }
}

impl Modifiers {
    /// No modifiers.
    pub const NONE: Self = Self {
        shift: false,
        alt: false,
        control: false,
    };

    /// Adds shift.
    pub fn shift(self) -> Self {
        Self {
            shift: true,
            ..self
        }
    }

    /// Adds alt.
    pub fn alt(self) -> Self {
        Self { alt: true, ..self }
    }

    /// Adds control.
    pub fn control(self) -> Self {
        Self {
            control: true,
            ..self
        }
    }
}
