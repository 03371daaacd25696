use alloc::vec::Vec;
use core::ops::Range;

use super::{
    MAX_PATTERN, PatternError, PatternErrorKind,
    element::{Component, Element, Kind, Slash},
    wildcard,
};

/// A compiled [pattern](super) of paths.
///
/// ```
/// use vmcell_wire::pattern::Glob;
///
/// let sources = Glob::new(b"src/**/*.rs")?;
/// assert!(sources.matches(b"src/main.rs"));
/// assert!(sources.matches(b"src/disk/ext4/inode.rs"));
/// assert!(!sources.matches(b"tests/main.rs"));
/// # Ok::<(), vmcell_wire::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    /// The components, separated by slashes: names and suffixes without escapes,
    /// wildcards as they were written, `**` as an empty text.
    text: Vec<u8>,
    parts: Vec<Part>,
}

/// A component of the pattern, and the range of its text.
#[derive(Clone, Copy, Debug)]
struct Part {
    kind: Kind,
    start: u16,
    end: u16,
}

impl Part {
    fn range(self) -> Range<usize> {
        self.start.into()..self.end.into()
    }
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The pattern is too long or malformed, or has a component that no path can
    /// have: one that is empty, `.` or `..`.
    pub fn new(pattern: &[u8]) -> Result<Self, PatternError> {
        let glob = Self::compile(pattern)?;
        let is_bad = |part: &Part| {
            part.kind == Kind::Literal && matches!(glob.text_of(*part), b"" | b"." | b"..")
        };
        if glob.parts.iter().any(is_bad) {
            return Err(PatternErrorKind::BadComponent.into());
        }
        Ok(glob)
    }

    /// Compiles a pattern. Accepts components that cannot match anything.
    pub(super) fn compile(pattern: &[u8]) -> Result<Self, PatternErrorKind> {
        let mut glob = Self::empty(pattern)?;
        glob.append(pattern)?;
        Ok(glob)
    }

    /// Compiles a pattern that matches in any directory.
    pub(super) fn compile_anywhere(pattern: &[u8]) -> Result<Self, PatternErrorKind> {
        let mut glob = Self::empty(pattern)?;
        glob.push(Kind::Deep, b"")?;
        glob.append(pattern)?;
        Ok(glob)
    }

    fn empty(pattern: &[u8]) -> Result<Self, PatternErrorKind> {
        if pattern.len() > MAX_PATTERN {
            return Err(PatternErrorKind::TooLong);
        }
        if pattern.contains(&0) {
            return Err(PatternErrorKind::ZeroByte);
        }
        Ok(Self {
            text: Vec::with_capacity(pattern.len()),
            parts: Vec::new(),
        })
    }

    fn append(&mut self, pattern: &[u8]) -> Result<(), PatternErrorKind> {
        let mut next = Some(pattern);
        while let Some(pattern) = next {
            let component = Component::split(pattern)?;
            self.push(component.kind, component.source)?;
            // `**` matches zero components only before an unescaped slash.
            let may_be_empty = matches!(component.next, Some((Slash::Plain, _)));
            if component.kind == Kind::Deep && !may_be_empty {
                self.push(Kind::Suffix, b"*")?;
            }
            next = component.next.map(|(_, rest)| rest);
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, source: &[u8]) -> Result<(), PatternErrorKind> {
        if !self.parts.is_empty() {
            self.text.push(b'/');
        }
        let start = self.text.len();
        match kind {
            Kind::Deep => {}
            Kind::Wild => self.text.extend_from_slice(source),
            Kind::Literal | Kind::Suffix => {
                let mut rest = source.strip_prefix(b"*").unwrap_or(source);
                while let Some((Element::Byte(byte), after)) = Element::split(rest)? {
                    self.text.push(byte);
                    rest = after;
                }
            }
        }
        self.parts.push(Part {
            kind,
            start: u16::try_from(start).map_err(|_| PatternErrorKind::TooLong)?,
            end: u16::try_from(self.text.len()).map_err(|_| PatternErrorKind::TooLong)?,
        });
        Ok(())
    }

    /// Returns whether the pattern matches the whole path.
    pub fn matches(&self, path: &[u8]) -> bool {
        let mut names = names(path);
        let mut runs = self.parts.split(|part| part.kind == Kind::Deep);
        // The components before the first `**` must match at the start, those
        // after the last one at the end. For each run in between, the earliest
        // match is the best, because it leaves the most names to later runs.
        let mut first = runs.next().unwrap_or_default().iter();
        if !first.all(|part| self.matches_next(*part, names.next())) {
            return false;
        }
        let Some(last) = runs.next_back() else {
            return names.next().is_none();
        };
        let mut last = last.iter().rev();
        if !last.all(|part| self.matches_next(*part, names.next_back())) {
            return false;
        }
        for run in runs {
            loop {
                let mut ahead = names.clone();
                let mut run = run.iter();
                if run.all(|part| self.matches_next(*part, ahead.next())) {
                    names = ahead;
                    break;
                }
                if names.next().is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether a path below this directory could match, judging by the
    /// directory's path. A walk can skip directories for which it is false.
    ///
    /// ```
    /// # use vmcell_wire::pattern::Glob;
    /// let glob = Glob::new(b"src/*/x.c")?;
    /// assert!(glob.could_match_below(b""));
    /// assert!(glob.could_match_below(b"src/disk"));
    /// assert!(!glob.could_match_below(b"doc"));
    /// assert!(!glob.could_match_below(b"src/disk/ext4"));
    /// # Ok::<(), vmcell_wire::pattern::PatternError>(())
    /// ```
    pub fn could_match_below(&self, directory: &[u8]) -> bool {
        let mut parts = self.parts.iter();
        for name in names(directory) {
            match parts.next() {
                Some(part) if part.kind == Kind::Deep => return true,
                Some(part) if self.matches_next(*part, Some(name)) => {}
                _ => return false,
            }
        }
        parts.next().is_some()
    }

    /// Returns the leading components without wildcards, unescaped. Nothing
    /// outside that path can match, so a walk can begin there. Without wildcards
    /// it is the whole pattern.
    ///
    /// ```
    /// # use vmcell_wire::pattern::Glob;
    /// assert_eq!(Glob::new(b"src/disk/**/*.rs")?.literal_prefix(), b"src/disk");
    /// assert_eq!(Glob::new(b"*.rs")?.literal_prefix(), b"");
    /// # Ok::<(), vmcell_wire::pattern::PatternError>(())
    /// ```
    pub fn literal_prefix(&self) -> &[u8] {
        let is_literal = |part: &&Part| part.kind == Kind::Literal;
        let last = self.parts.iter().take_while(is_literal).last();
        last.and_then(|part| self.text.get(..part.end.into()))
            .unwrap_or_default()
    }

    fn matches_next(&self, part: Part, name: Option<&[u8]>) -> bool {
        name.is_some_and(|name| match part.kind {
            Kind::Deep => true,
            Kind::Literal => name == self.text_of(part),
            Kind::Suffix => name.ends_with(self.text_of(part)),
            Kind::Wild => wildcard::matches(self.text_of(part), name),
        })
    }

    fn text_of(&self, part: Part) -> &[u8] {
        self.text.get(part.range()).unwrap_or_default()
    }
}

/// Iterates over the names in a path; the empty path has none.
fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    let is_root = path.is_empty();
    path.split(|&byte| byte == b'/').filter(move |_| !is_root)
}
