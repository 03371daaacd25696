use super::PatternErrorKind;

/// A bracket expression: a set of bytes between `[` and `]`.
#[derive(Clone, Copy)]
pub(super) struct Set<'p> {
    negated: bool,
    members: &'p [u8],
}

impl<'p> Set<'p> {
    /// Splits a set off the bytes after its `[`.
    pub(super) fn split(source: &'p [u8]) -> Result<(Self, &'p [u8]), PatternErrorKind> {
        let (negated, members) = match source {
            [b'!' | b'^', members @ ..] => (true, members),
            members => (false, members),
        };
        let mut rest = members;
        // A `]` as the first member does not close the set: `[]]` contains `]`.
        loop {
            let (member, after) = Member::split(rest).ok_or(PatternErrorKind::UnclosedBracket)?;
            if member.contains(0).is_none() {
                return Err(PatternErrorKind::UnknownClass);
            }
            rest = after;
            if let [b']', after @ ..] = rest {
                let length = members.len().saturating_sub(rest.len());
                let members = members.get(..length).unwrap_or_default();
                return Ok((Self { negated, members }, after));
            }
        }
    }

    /// Returns whether the set matches the byte.
    pub(super) fn contains(self, byte: u8) -> bool {
        let mut rest = self.members;
        while let Some((member, after)) = Member::split(rest) {
            if member.contains(byte) == Some(true) {
                return !self.negated;
            }
            rest = after;
        }
        self.negated
    }
}

/// A member of a set.
enum Member<'p> {
    /// The bytes from the first to the second, inclusive.
    Range(u8, u8),
    /// All bytes of the class with this name.
    Class(&'p [u8]),
}

impl<'p> Member<'p> {
    /// Splits one member off; `None` if there is none or it is incomplete.
    fn split(source: &'p [u8]) -> Option<(Self, &'p [u8])> {
        if let Some((name, rest)) = split_class(source) {
            return Some((Self::Class(name), rest));
        }
        let (low, rest) = split_byte(source)?;
        match rest {
            // At the end of the set, `-` is a literal.
            [b'-'] | [b'-', b']', ..] => {}
            [b'-', high @ ..] => {
                let (high, rest) = split_byte(high)?;
                return Some((Self::Range(low, high), rest));
            }
            _ => {}
        }
        Some((Self::Range(low, low), rest))
    }

    /// Returns whether the byte belongs to it; `None` if the class is unknown.
    fn contains(&self, byte: u8) -> Option<bool> {
        match *self {
            // The first byte matches even if the range is reversed.
            Self::Range(low, high) => Some(byte == low || (low..=high).contains(&byte)),
            Self::Class(name) => class_contains(name, byte),
        }
    }
}

/// Splits off the name in `[:name:]`. Without `:]`, the `[` is a literal.
fn split_class(source: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = source.strip_prefix(b"[:")?;
    let end = inside.iter().position(|&byte| byte == b']')?;
    let (name, rest) = inside.split_at_checked(end)?;
    Some((name.strip_suffix(b":")?, rest.get(1..)?))
}

fn split_byte(source: &[u8]) -> Option<(u8, &[u8])> {
    match source {
        [b'\\', byte, rest @ ..] => Some((*byte, rest)),
        [b'\\'] | [] => None,
        [byte, rest @ ..] => Some((*byte, rest)),
    }
}

fn class_contains(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => matches!(byte, b' '..=b'~'),
        b"punct" => byte.is_ascii_punctuation(),
        // As in git, neither form feed nor vertical tab.
        b"space" => matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
