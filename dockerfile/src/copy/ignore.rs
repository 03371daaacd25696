use vmcell_wire::pattern::Glob;

/// The lines of a `.dockerignore`.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignore(Vec<Line>);

#[derive(Clone, Debug)]
struct Line {
    pattern: Glob,
    /// It includes again what others exclude.
    includes: bool,
}

impl Ignore {
    /// Reads the lines. An error has the number of its line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (includes, pattern) = match line.strip_prefix('!') {
                Some(pattern) => (true, pattern.trim()),
                None => (false, line),
            };
            let parts = pattern.split('/').filter(|part| !matches!(*part, "" | "."));
            let pattern = parts.collect::<Vec<_>>().join("/");
            if pattern.is_empty() {
                continue;
            }
            let pattern = Glob::new(pattern.as_bytes());
            let pattern = pattern.map_err(|error| format!("line {}: {error}", index + 1))?;
            lines.push(Line { pattern, includes });
        }
        Ok(Self(lines))
    }

    /// Returns whether a path is not part of the context: the last line that matches it, or a
    /// directory that it is in, decides.
    pub(super) fn excludes(&self, path: &[u8]) -> bool {
        let matches = |pattern: &Glob| {
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            let parents = ends.map(|(at, _)| path.get(..at).unwrap_or_default());
            pattern.matches(path) || parents.into_iter().any(|parent| pattern.matches(parent))
        };
        let mut lines = self.0.iter().rev();
        let decides = lines.find(|line| matches(&line.pattern));
        decides.is_some_and(|line| !line.includes)
    }

    /// Returns whether something in a directory that is excluded may be included.
    pub(super) fn has_exceptions(&self) -> bool {
        self.0.iter().any(|line| line.includes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_matches_decides() {
        let text = "# no\n/target/\n*.log\n!keep.log\n**/secret\ndocs\n!docs/api\ndocs/api/old\n";
        let ignore = Ignore::parse(text).unwrap();
        for (path, is_excluded) in [
            ("target", true),
            ("target/debug/x", true),
            ("src/target", false),
            ("a.log", true),
            ("keep.log", false),
            ("src/a.log", false),
            ("secret", true),
            ("a/b/secret/c", true),
            ("docs/a", true),
            ("docs/api/a", false),
            ("docs/api/old/a", true),
        ] {
            assert_eq!(ignore.excludes(path.as_bytes()), is_excluded, "{path}");
        }
        let all = Ignore::parse("**\n!src/main.rs").unwrap();
        assert!(all.excludes(b"src/lib.rs") && !all.excludes(b"src/main.rs"));
    }
}
