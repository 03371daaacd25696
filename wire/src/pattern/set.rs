use super::PatternFault;

/// A set of bytes: what stands between `[` and `]`.
#[derive(Clone, Copy)]
pub(super) struct Set<'p> {
    negated: bool,
    members: &'p [u8],
}

impl<'p> Set<'p> {
    /// Splits a set off the bytes that follow its `[`.
    pub(super) fn split(source: &'p [u8]) -> Result<(Self, &'p [u8]), PatternFault> {
        let (negated, members) = match source {
            [b'!' | b'^', members @ ..] => (true, members),
            members => (false, members),
        };
        let mut rest = members;
        // A `]` can only close the set behind its first member: `[]]` holds one.
        loop {
            let (member, behind) = Member::split(rest).ok_or(PatternFault::UnclosedBracket)?;
            if member.holds(0).is_none() {
                return Err(PatternFault::UnknownClass);
            }
            rest = behind;
            if let [b']', behind @ ..] = rest {
                let length = members.len().saturating_sub(rest.len());
                let members = members.get(..length).unwrap_or_default();
                return Ok((Self { negated, members }, behind));
            }
        }
    }

    /// Whether the byte is one that the set means.
    pub(super) fn holds(self, byte: u8) -> bool {
        let mut rest = self.members;
        while let Some((member, behind)) = Member::split(rest) {
            if member.holds(byte) == Some(true) {
                return !self.negated;
            }
            rest = behind;
        }
        self.negated
    }
}

/// What a set is made of.
enum Member<'p> {
    /// A byte, and those from it up to the other.
    Range(u8, u8),
    /// All bytes of the class that has this name.
    Class(&'p [u8]),
}

impl<'p> Member<'p> {
    /// Splits one member off. None: there is none, or it is cut off.
    fn split(source: &'p [u8]) -> Option<(Self, &'p [u8])> {
        if let Some((name, rest)) = split_class(source) {
            return Some((Self::Class(name), rest));
        }
        let (low, rest) = split_byte(source)?;
        match rest {
            // At the end a `-` stands for itself.
            [b'-'] | [b'-', b']', ..] => {}
            [b'-', high @ ..] => {
                let (high, rest) = split_byte(high)?;
                return Some((Self::Range(low, high), rest));
            }
            _ => {}
        }
        Some((Self::Range(low, low), rest))
    }

    /// Whether the byte belongs to it. None: there is no class of this name.
    fn holds(&self, byte: u8) -> Option<bool> {
        match *self {
            // The first byte counts even if the range is upside down.
            Self::Range(low, high) => Some(byte == low || (low..=high).contains(&byte)),
            Self::Class(name) => class_holds(name, byte),
        }
    }
}

/// The name in `[:name:]`, and what follows. Without its end, `[` is a byte as
/// any other.
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

fn class_holds(name: &[u8], byte: u8) -> Option<bool> {
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
        // Neither form feed nor vertical tab: git's own idea of a space.
        b"space" => matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
