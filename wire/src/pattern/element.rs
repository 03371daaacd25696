use super::{PatternFault, set::Set};

/// The smallest part of a pattern.
pub(super) enum Element<'p> {
    /// This byte, as it is.
    Byte(u8),
    /// One byte, whichever it is.
    Any,
    /// Any bytes, or none.
    Star,
    /// One byte of a set.
    Set(Set<'p>),
    /// The end of a component.
    Slash(Slash),
}

/// What ends a component. Git tells the two apart behind `**` only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Plain,
    Escaped,
}

impl<'p> Element<'p> {
    /// Splits an element off. None: there is none.
    pub(super) fn split(source: &'p [u8]) -> Result<Option<(Self, &'p [u8])>, PatternFault> {
        Ok(Some(match source {
            [] => return Ok(None),
            [b'/', rest @ ..] => (Self::Slash(Slash::Plain), rest),
            [b'*', rest @ ..] => (Self::Star, rest),
            [b'?', rest @ ..] => (Self::Any, rest),
            [b'[', rest @ ..] => {
                let (set, rest) = Set::split(rest)?;
                (Self::Set(set), rest)
            }
            [b'\\'] => return Err(PatternFault::TrailingBackslash),
            [b'\\', b'/', rest @ ..] => (Self::Slash(Slash::Escaped), rest),
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Self::Byte(*byte), rest),
        }))
    }

    /// Whether it matches this byte of a name. What is no single byte does not.
    pub(super) fn matches(&self, byte: u8) -> bool {
        match *self {
            Self::Byte(wanted) => wanted == byte,
            Self::Any => true,
            Self::Set(set) => set.holds(byte),
            Self::Star | Self::Slash(_) => false,
        }
    }
}

/// What a component of a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One name.
    Literal,
    /// The names that end so. It is what most wildcards are used for, and it
    /// takes but one comparison.
    Suffix,
    /// The names that fit.
    Wild,
    /// Any number of components, or none.
    Deep,
}

/// One component of a pattern, as it is written.
pub(super) struct Component<'p> {
    pub(super) source: &'p [u8],
    pub(super) kind: Kind,
    /// How it ends, and what follows. None: the pattern ends with it.
    pub(super) next: Option<(Slash, &'p [u8])>,
}

impl<'p> Component<'p> {
    /// Splits the first component off. A slash within brackets does not end it.
    pub(super) fn split(pattern: &'p [u8]) -> Result<Self, PatternFault> {
        let mut rest = pattern;
        let mut next = None;
        let mut kind = Kind::Literal;
        while let Some((element, behind)) = Element::split(rest)? {
            match element {
                Element::Slash(slash) => {
                    next = Some((slash, behind));
                    break;
                }
                Element::Byte(_) => {}
                Element::Star if rest.len() == pattern.len() => kind = Kind::Suffix,
                Element::Any | Element::Star | Element::Set(_) => kind = Kind::Wild,
            }
            rest = behind;
        }
        let length = pattern.len().saturating_sub(rest.len());
        let source = pattern.get(..length).unwrap_or_default();
        if source.len() > 1 && source.iter().all(|&byte| byte == b'*') {
            kind = Kind::Deep;
        }
        Ok(Self { source, kind, next })
    }
}
