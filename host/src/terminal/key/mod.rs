//! Keys with names, and the bytes that a terminal sends for them.

mod code;
mod name;
#[cfg(test)]
mod tests;

/// A key, alone or with modifiers.
///
/// It is made from its name, whose case does not matter: `enter`, `ctrl+c`,
/// `alt+left`, `shift+tab`, `f5`, `page-up`. A single character is itself, so
/// `a` and `A` are different.
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
    /// What is held down with it.
    pub modifiers: Modifiers,
}

/// A key of a keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Ends a line.
    Enter,
    /// With shift, it goes back.
    Tab,
    /// Also the beginning of what most other keys send.
    Escape,
    /// Deletes what is left of the cursor.
    Backspace,
    /// Deletes what is under the cursor.
    Delete,
    /// Inserts.
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
    /// A function key, 1 to 24. As in xterm, those from 13 on are the first
    /// twelve with shift.
    F(u8),
    /// A character, the space among them.
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

/// What the cursor keys send. A program chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorKeys {
    /// As in line editors.
    #[default]
    Normal,
    /// As in most full-screen programs.
    Application,
}

/// Why something is no key that can be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no key of this name.
    #[error(
        "there is no key {name:?}: a key is a single character, enter, tab, escape, backspace, \
         delete, insert, home, end, page-up, page-down, up, down, left, right, space or f1 to \
         f24, after any of ctrl+, alt+ and shift+"
    )]
    Unknown {
        /// The name that was given, or the beginning of a long one.
        name: String,
    },
    /// Terminals have no code for control with this character.
    #[error(
        "a terminal has no code for ctrl+{character}: it has them for letters and @ [ \\ ] ^ _ ? \
         and space"
    )]
    NoControl {
        /// The character, in a form that can be printed.
        character: String,
    },
    /// What shift makes of a character that is no letter depends on the
    /// keyboard.
    #[error("shift+{character} depends on the keyboard: name the character that it gives")]
    NoShift {
        /// The character, in a form that can be printed.
        character: String,
    },
    /// There are no more than 24 function keys.
    #[error("there is no function key {number}: there are f1 to f24")]
    NoFunction {
        /// The number that was given.
        number: u8,
    },
}

impl KeyPress {
    /// A key with these modifiers.
    pub fn new(key: Key, modifiers: Modifiers) -> Self {
        Self { key, modifiers }
    }

    /// A character with control: `c` interrupts, `d` ends the input, `z` stops,
    /// `[` is escape.
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
    /// Nothing is held down.
    pub const NONE: Self = Self {
        shift: false,
        alt: false,
        control: false,
    };

    /// With shift.
    pub fn shift(self) -> Self {
        Self {
            shift: true,
            ..self
        }
    }

    /// With alt.
    pub fn alt(self) -> Self {
        Self { alt: true, ..self }
    }

    /// With control.
    pub fn control(self) -> Self {
        Self {
            control: true,
            ..self
        }
    }
}
