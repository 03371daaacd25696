use alloc::vec::Vec;

use super::{Glob, MAX_PATTERN, MAX_RULES, MAX_RULES_BYTES, PatternError, PatternErrorKind};

/// Lines of [patterns](super) with the semantics of a `.gitignore` at the root
/// of the tree: gitignore(5).
///
/// - The last line that matches decides. A line that begins with `!` reverts the
///   decision of earlier lines.
/// - A pattern with a slash before its end is compared with the whole path, any
///   other with the name alone, in any directory.
/// - A pattern with a slash at its end matches directories only.
/// - Blank lines, lines that begin with `#`, trailing spaces that are not escaped
///   by a backslash, a carriage return at the end of a line and a byte order mark
///   at the start are ignored.
///
/// There are two differences from git. A malformed line, such as `[a`, is an
/// error here, while git silently never matches it. And `a**/b` means `a*/b`
/// here, as git's documentation says, while git matches at any depth.
///
/// ```
/// use vmcell_wire::pattern::{Rules, RuleMatch};
///
/// let rules = Rules::parse(b"*.log\n!keep.log\n/target/\n")?;
/// assert_eq!(rules.match_path(b"log/a.log", false), RuleMatch::Excluded);
/// assert_eq!(rules.match_path(b"log/keep.log", false), RuleMatch::Included);
/// assert_eq!(rules.match_path(b"target", true), RuleMatch::Excluded);
/// assert_eq!(rules.match_path(b"src/target", true), RuleMatch::Unmentioned);
/// # Ok::<(), vmcell_wire::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// The decision of [`Rules`] about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleMatch {
    /// The last line that matches is an ordinary one.
    Excluded,
    /// The last line that matches begins with `!`.
    Included,
    /// No line matches.
    Unmentioned,
}

impl Rules {
    /// Parses lines that are separated by newlines.
    ///
    /// # Errors
    ///
    /// A line is too long or malformed (the error contains its number), or there
    /// are too many lines.
    pub fn parse(lines: &[u8]) -> Result<Self, PatternError> {
        if lines.len() > MAX_RULES_BYTES {
            return Err(PatternErrorKind::TooLarge.into());
        }
        let lines = lines.strip_prefix(b"\xef\xbb\xbf").unwrap_or(lines);
        let mut rules = Vec::new();
        for (line, number) in lines.split(|&byte| byte == b'\n').zip(1..) {
            let line = trim(line);
            if matches!(line, [] | [b'#', ..]) {
                continue;
            }
            if rules.len() == MAX_RULES {
                return Err(PatternErrorKind::TooManyRules.into());
            }
            rules.push(Rule::parse(line).map_err(|kind| kind.in_line(number))?);
        }
        Ok(Self(rules))
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the decision about this path alone. Ignores decisions about its
    /// parents.
    ///
    /// With git, nothing below an excluded directory can be included again. A
    /// walk from the root has the same effect if it skips excluded directories.
    pub fn match_path(&self, path: &[u8], is_dir: bool) -> RuleMatch {
        let mut latest_first = self.0.iter().rev();
        latest_first
            .find(|rule| rule.matches(path, is_dir))
            .map_or(RuleMatch::Unmentioned, |rule| rule.result)
    }

    /// Returns whether a line without `!` could match a path below this directory.
    pub(super) fn could_exclude_below(&self, directory: &[u8]) -> bool {
        self.0.iter().any(|rule| {
            rule.result == RuleMatch::Excluded && rule.glob.could_match_below(directory)
        })
    }
}

/// One line.
#[derive(Clone, Debug)]
struct Rule {
    glob: Glob,
    result: RuleMatch,
    directories_only: bool,
}

impl Rule {
    fn parse(line: &[u8]) -> Result<Self, PatternErrorKind> {
        if line.len() > MAX_PATTERN {
            return Err(PatternErrorKind::TooLong);
        }
        let (result, pattern) = match line {
            [b'!', pattern @ ..] => (RuleMatch::Included, pattern),
            pattern => (RuleMatch::Excluded, pattern),
        };
        let (directories_only, pattern) = match pattern {
            [pattern @ .., b'/'] => (true, pattern),
            pattern => (false, pattern),
        };
        let glob = if pattern.contains(&b'/') {
            Glob::compile(pattern.strip_prefix(b"/").unwrap_or(pattern))
        } else {
            Glob::compile_anywhere(pattern)
        };
        Ok(Self {
            glob: glob?,
            result,
            directories_only,
        })
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        (is_dir || !self.directories_only) && self.glob.matches(path)
    }
}

/// Returns the line without a carriage return and unescaped spaces at its end.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut trimmed = line;
    while let [shorter @ .., b' '] = trimmed {
        trimmed = shorter;
    }
    let trailing = trimmed.iter().rev();
    let backslashes = trailing.take_while(|&&byte| byte == b'\\').count();
    let escaped = usize::from(!backslashes.is_multiple_of(2));
    line.get(..trimmed.len().saturating_add(escaped))
        .unwrap_or(line)
}
