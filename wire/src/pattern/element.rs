use super::{PatternErrorKind, set::Set};

/// The smallest part of a pattern.
pub(super) enum Element<'p> {
    /// This byte.
    Byte(u8),
    /// Any one byte.
    Any,
    /// Any number of bytes, including none.
    Star,
    /// One byte of a set.
    Set(Set<'p>),
    /// The end of a component.
    Slash(Slash),
}

/// The slash that ends a component. Git distinguishes the two only after `**`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Plain,
    Escaped,
}

impl<'p> Element<'p> {
    /// Splits the first element off; `None` at the end.
    pub(super) fn split(source: &'p [u8]) -> Result<Option<(Self, &'p [u8])>, PatternErrorKind> {
        Ok(Some(match source {
            [] => return Ok(None),
            [b'/', rest @ ..] => (Self::Slash(Slash::Plain), rest),
            [b'*', rest @ ..] => (Self::Star, rest),
            [b'?', rest @ ..] => (Self::Any, rest),
            [b'[', rest @ ..] => {
                let (set, rest) = Set::split(rest)?;
                (Self::Set(set), rest)
            }
            [b'\\'] => return Err(PatternErrorKind::TrailingBackslash),
            [b'\\', b'/', rest @ ..] => (Self::Slash(Slash::Escaped), rest),
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Self::Byte(*byte), rest),
        }))
    }

    /// Returns whether it matches this byte of a name. Stars and slashes do not.
    pub(super) fn matches(&self, byte: u8) -> bool {
        match *self {
            Self::Byte(wanted) => wanted == byte,
            Self::Any => true,
            Self::Set(set) => set.contains(byte),
            Self::Star | Self::Slash(_) => false,
        }
    }
}

/// The kind of a component of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Matches one name.
    Literal,
    /// Matches names with this suffix: the most common use of wildcards, which
    /// takes a single comparison.
    Suffix,
    /// Matches names by wildcards.
    Wild,
    /// `**`: matches any number of components, including none.
    Deep,
}

/// One component of a pattern, unparsed.
pub(super) struct Component<'p> {
    pub(super) source: &'p [u8],
    pub(super) kind: Kind,
    /// The slash that ends it, and the rest; `None` for the last component.
    pub(super) next: Option<(Slash, &'p [u8])>,
}

impl<'p> Component<'p> {
    /// Splits the first component off. A slash in brackets does not end it.
    pub(super) fn split(pattern: &'p [u8]) -> Result<Self, PatternErrorKind> {
        let mut rest = pattern;
        let mut next = None;
        let mut kind = Kind::Literal;
        while let Some((element, after)) = Element::split(rest)? {
            match element {
                Element::Slash(slash) => {
                    next = Some((slash, after));
                    break;
                }
                Element::Byte(_) => {}
                Element::Star if rest.len() == pattern.len() => kind = Kind::Suffix,
                Element::Any | Element::Star | Element::Set(_) => kind = Kind::Wild,
            }
            rest = after;
        }
        let length = pattern.len().saturating_sub(rest.len());
        let source = pattern.get(..length).unwrap_or_default();
        if source.len() > 1 && source.iter().all(|&byte| byte == b'*') {
            kind = Kind::Deep;
        }
        Ok(Self { source, kind, next })
    }
}
