/// Tells text from control sequences, character by character.
///
/// ```text
///           ESC                [         @ … ~
///  Ground ───────> Escape ──────> Csi ──────────────────────────> Ground
///    ▲               ├─ ] P X ^ _ ─> String ── BEL (OSC only) ──> Ground
///    │               │                 └─ ESC ─> StringEscape ─ \ ─> Ground
///    │               │                              └─ else as after ESC
///    │               └─ space … / ──> Intermediate ── 0 … ~ ────> Ground
///    └── CAN, SUB: from everywhere. Characters that are not ASCII: from everywhere
///        except String
/// ```
///
/// It stores no part of a sequence, so hostile output cannot make it grow. Its
/// users store what they need, up to their own limits.
///
/// C1 controls are text for it, because most current terminals ignore them in
/// UTF-8. Bytes can be passed instead of characters: those from 0x80 on are text.
///
/// ```
/// use vmcell_tree::escape::{SequenceKind, Token, Tokenizer};
///
/// let mut tokenizer = Tokenizer::default();
/// let tokens: Vec<Token> = "a\x1b[1m".chars().map(|next| tokenizer.step(next)).collect();
/// let csi = SequenceKind::Csi;
/// let expected = [Token::Text, Token::Nothing, Token::Start(csi), Token::Part(csi), Token::End(csi)];
/// assert_eq!(tokens, expected);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokenizer {
    state: State,
}

/// The meaning of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Text. Ends a sequence that it interrupts.
    Text,
    /// A control character (C0). It takes effect at once, even within a sequence.
    Control,
    /// No effect of its own: an escape character, delete, a cancelled sequence, or
    /// an escape sequence that no terminal supports.
    Nothing,
    /// The final character of an escape sequence, and the intermediate before it.
    Escape(Option<char>),
    /// The character after ESC that starts a control sequence or a string.
    Start(SequenceKind),
    /// A parameter or intermediate of a control sequence, or a character of a
    /// string.
    Part(SequenceKind),
    /// The final character of a control sequence, or the terminator of a string.
    /// A string without one has no effect.
    End(SequenceKind),
}

/// A control sequence or a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceKind {
    /// A control sequence: `ESC [`.
    Csi,
    /// An operating system command: `ESC ]`. BEL ends it too.
    Osc,
    /// A device control string: `ESC P`.
    Dcs,
    /// Another string: SOS, PM or APC.
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// In an escape sequence. `None` after more than one intermediate.
    Intermediate(Option<char>),
    Csi,
    String(SequenceKind),
    /// After an escape in a string, which may be the first half of ST.
    StringEscape(SequenceKind),
}

const BELL: char = '\x07';
const CANCEL: char = '\x18';
const SUBSTITUTE: char = '\x1a';
const ESCAPE: char = '\x1b';
const DELETE: char = '\x7f';

impl Tokenizer {
    /// Takes the next character.
    #[inline]
    pub fn step(&mut self, next: impl Into<char>) -> Token {
        let (state, token) = self.state.next(next.into());
        self.state = state;
        token
    }

    /// Returns how many of the next bytes are parameters or intermediates of an
    /// incomplete control sequence. They may be skipped instead of taken one by one:
    /// each is a [`Part`](Token::Part), and the next character means the same after
    /// them.
    #[inline]
    pub fn csi_parts(&self, next: &[u8]) -> usize {
        let is_other = |byte: &u8| !matches!(byte, b' '..=b'?');
        match self.state {
            State::Csi => next.iter().position(is_other).unwrap_or(next.len()),
            _ => 0,
        }
    }

    /// Returns whether no sequence is incomplete.
    #[inline]
    pub fn is_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// Returns whether a string is incomplete.
    pub fn is_in_string(&self) -> bool {
        matches!(self.state, State::String(_))
    }
}

impl State {
    #[inline]
    fn next(self, next: char) -> (Self, Token) {
        match (self, next) {
            (_, CANCEL | SUBSTITUTE) => (Self::Ground, Token::Nothing),
            (Self::String(kind), ESCAPE) => (Self::StringEscape(kind), Token::Nothing),
            (Self::String(SequenceKind::Osc), BELL) => {
                (Self::Ground, Token::End(SequenceKind::Osc))
            }
            (Self::String(kind), _) => (self, Token::Part(kind)),
            (Self::StringEscape(kind), '\\') => (Self::Ground, Token::End(kind)),
            (_, ESCAPE) => (Self::Escape, Token::Nothing),
            (_, '\u{80}'..) | (Self::Ground, ' '..='~') => (Self::Ground, Token::Text),
            (Self::Escape | Self::StringEscape(_), _) => Self::after_escape(next),
            (_, ..' ') => (self, Token::Control),
            (_, DELETE) => (self, Token::Nothing),
            (Self::Csi, ' '..='?') => (self, Token::Part(SequenceKind::Csi)),
            (Self::Csi, _) => (Self::Ground, Token::End(SequenceKind::Csi)),
            (Self::Intermediate(_), ' '..='/') => (Self::Intermediate(None), Token::Nothing),
            (Self::Intermediate(None), _) => (Self::Ground, Token::Nothing),
            (Self::Intermediate(some), _) => (Self::Ground, Token::Escape(some)),
        }
    }

    fn after_escape(next: char) -> (Self, Token) {
        let string = |kind| (Self::String(kind), Token::Start(kind));
        match next {
            ..' ' => (Self::Escape, Token::Control),
            DELETE => (Self::Escape, Token::Nothing),
            '[' => (Self::Csi, Token::Start(SequenceKind::Csi)),
            ']' => string(SequenceKind::Osc),
            'P' => string(SequenceKind::Dcs),
            'X' | '^' | '_' => string(SequenceKind::Other),
            ' '..='/' => (Self::Intermediate(Some(next)), Token::Nothing),
            _ => (Self::Ground, Token::Escape(None)),
        }
    }
}
