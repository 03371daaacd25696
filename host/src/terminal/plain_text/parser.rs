/// Separates escape sequences from text. Of a sequence it keeps only the parser
/// state and the first number.
///
/// The sequences are those of ECMA-48 and xterm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parser {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Ground,
    /// After an escape.
    Escape,
    /// In an escape sequence with intermediate characters.
    Intermediate,
    /// In a control sequence (CSI).
    Csi(Parameters),
    /// In a string of any length: a title, an image.
    String { bell_ends: bool },
    /// After an escape in a string, which may be the first half of ST.
    StringEscape,
}

#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    first: u16,
    /// Whether the first number is complete.
    first_complete: bool,
    /// Whether it is a private sequence, or has intermediates; none of them edit
    /// text.
    private: bool,
}

/// The meaning of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Character(char),
    Control(char),
    /// A control sequence: its final character and its first number, 0 if it has
    /// none.
    Csi {
        kind: char,
        number: u16,
    },
}

impl Parser {
    #[inline]
    pub(super) fn step(&mut self, character: char) -> Step {
        // The most frequent case.
        if let (State::Ground, ' '..='~') = (self.state, character) {
            return Step::Character(character);
        }
        let (state, step) = self.state.next(character);
        self.state = state;
        step
    }
}

impl State {
    fn next(self, character: char) -> (Self, Step) {
        match (self, character) {
            (_, '\x18' | '\x1a') => (Self::Ground, Step::Nothing),
            (Self::String { .. }, '\x1b') => (Self::StringEscape, Step::Nothing),
            (Self::String { bell_ends: true }, '\x07') => (Self::Ground, Step::Nothing),
            (Self::String { .. }, '\u{9c}') => (Self::Ground, Step::Nothing),
            (Self::String { .. }, _) => (self, Step::Nothing),
            (Self::StringEscape, '\\') => (Self::Ground, Step::Nothing),
            // Another sequence aborts the string.
            (Self::StringEscape, _) => Self::after_escape(character),
            (_, '\x1b') => (Self::Escape, Step::Nothing),
            // A control character in a sequence takes effect at once.
            (_, '\0'..='\x1f' | '\x7f') => (self, Step::Control(character)),
            (_, '\u{80}'..='\u{9f}') => Self::after_escape(character),
            (Self::Ground, _) => (Self::Ground, Step::Character(character)),
            (Self::Escape, _) => Self::after_escape(character),
            (Self::Intermediate, ' '..='/') => (self, Step::Nothing),
            (Self::Intermediate, '0'..='~') => (Self::Ground, Step::Nothing),
            (Self::Csi(parameters), ' '..='~') => parameters.next(character),
            // Not part of a sequence.
            (Self::Intermediate | Self::Csi(_), _) => (Self::Ground, Step::Character(character)),
        }
    }

    /// Handles the character after an escape.
    fn after_escape(character: char) -> (Self, Step) {
        match character {
            '\x1b' => (Self::Escape, Step::Nothing),
            '\0'..='\x1f' | '\x7f' => (Self::Escape, Step::Control(character)),
            // A C1 control: the 8-bit form of an escape and a letter.
            '\u{80}'..='\u{9f}' => Self::after_escape(char::from(
                u8::try_from(character).unwrap_or_default() - 0x40,
            )),
            '[' => (Self::Csi(Parameters::default()), Step::Nothing),
            ']' => (Self::String { bell_ends: true }, Step::Nothing),
            'P' | 'X' | '^' | '_' => (Self::String { bell_ends: false }, Step::Nothing),
            ' '..='/' => (Self::Intermediate, Step::Nothing),
            // IND and NEL.
            'D' | 'E' => (Self::Ground, Step::Control('\n')),
            // RI, DECRC and RIS move the cursor to another row.
            'M' | '8' | 'c' => (
                Self::Ground,
                Step::Csi {
                    kind: 'A',
                    number: 1,
                },
            ),
            '0'..='~' => (Self::Ground, Step::Nothing),
            _ => (Self::Ground, Step::Character(character)),
        }
    }
}

impl Parameters {
    fn next(mut self, character: char) -> (State, Step) {
        match character {
            '0'..='9' if !self.first_complete => {
                let digit = u16::try_from(u32::from(character) - u32::from('0')).unwrap_or(0);
                self.first = self.first.saturating_mul(10).saturating_add(digit);
            }
            '0'..='9' => {}
            ':' | ';' => self.first_complete = true,
            '<'..='?' | ' '..='/' => self.private = true,
            _ if self.private => return (State::Ground, Step::Nothing),
            kind => {
                let number = self.first;
                return (State::Ground, Step::Csi { kind, number });
            }
        }
        (State::Csi(self), Step::Nothing)
    }
}
