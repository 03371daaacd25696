use alloc::vec::Vec;

use super::{Glob, MAX_PATTERN, MAX_RULES, MAX_RULES_BYTES, PatternError, PatternFault};

/// Lines of [patterns](super), read as git reads a `.gitignore` at the root of
/// the tree: gitignore(5).
///
/// - The last line that matches decides. A line that begins with `!` takes back
///   what the lines before it say.
/// - A pattern with a slash before its end is compared with the whole path, any
///   other with the name alone, in whichever directory.
/// - A pattern with a slash at its end matches directories only.
/// - Blank lines, lines that begin with `#`, spaces at the end of a line unless
///   there is a backslash before them, a carriage return at the end of a line
///   and a byte order mark at the start mean nothing.
///
/// Two things are not as git does them. A line that is not well-formed, such as
/// `[a`, is an error here and never matches there: nobody would notice a rule
/// that does nothing. And `a**/b`, of which git's documentation says that it
/// means `a*/b`, means that here, while git looks at any depth.
///
/// ```
/// use vmcell_wire::pattern::{Rules, Verdict};
///
/// let rules = Rules::parse(b"*.log\n!keep.log\n/target/\n")?;
/// assert_eq!(rules.verdict(b"log/a.log", false), Verdict::Excluded);
/// assert_eq!(rules.verdict(b"log/keep.log", false), Verdict::Included);
/// assert_eq!(rules.verdict(b"target", true), Verdict::Excluded);
/// assert_eq!(rules.verdict(b"src/target", true), Verdict::Unmentioned);
/// # Ok::<(), vmcell_wire::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// What [`Rules`] say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The last line that matches is an ordinary one.
    Excluded,
    /// The last line that matches begins with `!`.
    Included,
    /// No line matches.
    Unmentioned,
}

impl Rules {
    /// Reads lines that are parted by newlines.
    ///
    /// # Errors
    ///
    /// A line is too long or not well-formed, which the error names, or there
    /// are too many of them.
    pub fn parse(lines: &[u8]) -> Result<Self, PatternError> {
        if lines.len() > MAX_RULES_BYTES {
            return Err(PatternFault::TooLarge.into());
        }
        let lines = lines.strip_prefix(b"\xef\xbb\xbf").unwrap_or(lines);
        let mut rules = Vec::new();
        for (line, number) in lines.split(|&byte| byte == b'\n').zip(1..) {
            let line = trim(line);
            if matches!(line, [] | [b'#', ..]) {
                continue;
            }
            if rules.len() == MAX_RULES {
                return Err(PatternFault::TooManyRules.into());
            }
            rules.push(Rule::parse(line).map_err(|fault| fault.in_line(number))?);
        }
        Ok(Self(rules))
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the rules say about this one path; what they say about its parents
    /// does not count.
    ///
    /// To git nothing below an excluded directory can be included again. A walk
    /// from the root does the same if it does not enter excluded directories.
    pub fn verdict(&self, path: &[u8], is_dir: bool) -> Verdict {
        let mut latest_first = self.0.iter().rev();
        latest_first
            .find(|rule| rule.matches(path, is_dir))
            .map_or(Verdict::Unmentioned, |rule| rule.verdict)
    }

    /// Whether a line without `!` could match a path below this directory.
    pub(super) fn could_exclude_below(&self, directory: &[u8]) -> bool {
        self.0
            .iter()
            .any(|rule| rule.verdict == Verdict::Excluded && rule.glob.could_match_below(directory))
    }
}

/// One line.
#[derive(Clone, Debug)]
struct Rule {
    glob: Glob,
    verdict: Verdict,
    directories_only: bool,
}

impl Rule {
    fn parse(line: &[u8]) -> Result<Self, PatternFault> {
        if line.len() > MAX_PATTERN {
            return Err(PatternFault::TooLong);
        }
        let (verdict, pattern) = match line {
            [b'!', pattern @ ..] => (Verdict::Included, pattern),
            pattern => (Verdict::Excluded, pattern),
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
            verdict,
            directories_only,
        })
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        (is_dir || !self.directories_only) && self.glob.matches(path)
    }
}

/// The line without what means nothing at its end. A backslash keeps the space
/// behind it.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut kept = line;
    while let [shorter @ .., b' '] = kept {
        kept = shorter;
    }
    let backslashes = kept.iter().rev().take_while(|&&byte| byte == b'\\').count();
    let escaped = usize::from(!backslashes.is_multiple_of(2));
    line.get(..kept.len().saturating_add(escaped))
        .unwrap_or(line)
}
