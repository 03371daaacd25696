/// Tells escape sequences from text. It keeps where it is within a sequence,
/// and nothing of what is in it but one number.
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
    /// Behind an escape.
    Escape,
    /// Within an escape sequence that only its last character ends.
    Intermediate,
    /// Within a control sequence.
    Control(Parameters),
    /// Within a string, which may be of any length: a title, a picture.
    String { bell_ends: bool },
    /// Behind an escape in a string, which may be the first half of its end.
    StringEscape,
}

#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    first: u16,
    /// Whether the first number is complete.
    more: bool,
    /// Whether it is a sequence of a kind that edits no text.
    private: bool,
}

/// What a character means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Character(char),
    Control(char),
    /// A control sequence, by its last character and its first number, 0 if
    /// there is none.
    Edit {
        kind: char,
        count: u16,
    },
}

impl Parser {
    #[inline]
    pub(super) fn step(&mut self, character: char) -> Step {
        // Most of what is printed.
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
            // The string is broken off by another sequence.
            (Self::StringEscape, _) => Self::escaped(character),
            (_, '\x1b') => (Self::Escape, Step::Nothing),
            // A control character within a sequence counts as if before it.
            (_, '\0'..='\x1f' | '\x7f') => (self, Step::Control(character)),
            (_, '\u{80}'..='\u{9f}') => Self::escaped(character),
            (Self::Ground, _) => (Self::Ground, Step::Character(character)),
            (Self::Escape, _) => Self::escaped(character),
            (Self::Intermediate, ' '..='/') => (self, Step::Nothing),
            (Self::Intermediate, '0'..='~') => (Self::Ground, Step::Nothing),
            (Self::Control(parameters), ' '..='~') => parameters.next(character),
            // No sequence goes on like this.
            (Self::Intermediate | Self::Control(_), _) => {
                (Self::Ground, Step::Character(character))
            }
        }
    }

    /// The character behind an escape.
    fn escaped(character: char) -> (Self, Step) {
        match character {
            '\x1b' => (Self::Escape, Step::Nothing),
            '\0'..='\x1f' | '\x7f' => (Self::Escape, Step::Control(character)),
            // The short form of an escape and a letter.
            '\u{80}'..='\u{9f}' => Self::escaped(char::from(
                u8::try_from(character).unwrap_or_default() - 0x40,
            )),
            '[' => (Self::Control(Parameters::default()), Step::Nothing),
            ']' => (Self::String { bell_ends: true }, Step::Nothing),
            'P' | 'X' | '^' | '_' => (Self::String { bell_ends: false }, Step::Nothing),
            ' '..='/' => (Self::Intermediate, Step::Nothing),
            // To the next line, and to the one after it.
            'D' | 'E' => (Self::Ground, Step::Control('\n')),
            // To the line before, to where it was once, and a reset, which clears
            // the screen.
            'M' | '8' | 'c' => (
                Self::Ground,
                Step::Edit {
                    kind: 'A',
                    count: 1,
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
            '0'..='9' if !self.more => {
                let digit = u16::try_from(u32::from(character) - u32::from('0')).unwrap_or(0);
                self.first = self.first.saturating_mul(10).saturating_add(digit);
            }
            '0'..='9' => {}
            ':' | ';' => self.more = true,
            '<'..='?' | ' '..='/' => self.private = true,
            _ if self.private => return (State::Ground, Step::Nothing),
            kind => {
                let count = self.first;
                return (State::Ground, Step::Edit { kind, count });
            }
        }
        (State::Control(self), Step::Nothing)
    }
}
