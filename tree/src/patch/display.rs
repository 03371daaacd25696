//! Prints patches in git's format.

use std::{
    fmt,
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{
    file::{FilePatch, FilePatchKind},
    hunk::{Hunk, HunkLineKind, LineRange},
    name::{name_terminator, quote, quote_path},
    parse::Patch,
};

/// The mode that a created or deleted file has if the patch does not state it.
const DEFAULT_MODE: u32 = 0o100_644;

impl Patch<'_> {
    /// Writes the patch in git's format, which [`Patch::parse`] reads. Binary
    /// files are not part of it.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn write_patch(&self, mut out: impl Write) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|file| out.write_all(&file.to_text()))
    }
}

/// Prints the patch in git's format, with bytes that are not UTF-8 replaced.
impl fmt::Display for Patch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| file.fmt(formatter))
    }
}

/// Prints this part in git's format, with bytes that are not UTF-8 replaced.
impl fmt::Display for FilePatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.to_text()))
    }
}

impl FilePatch<'_> {
    fn to_text(&self) -> Vec<u8> {
        let mut text = PatchText {
            bytes: Vec::new(),
            line_end: if self.has_carriage_returns {
                "\r\n"
            } else {
                "\n"
            },
        };
        let old = prefixed("a/", self.old_path().unwrap_or(self.path()));
        let names = format!("{old} {}", prefixed("b/", self.path()));
        // Only a plain patch may create a file without stating so. Its first
        // line keeps the others apart from the header of the part before.
        if self.may_create && self.kind == FilePatchKind::Modified {
            text.line(&format!("diff -u {names}"));
        } else {
            text.line(&format!("diff --git {names}"));
            self.write_git_header(&mut text);
        }
        if !self.hunks.is_empty() {
            let name = |prefix, path: Option<&Path>| match path {
                Some(path) => prefixed(prefix, path),
                None => "/dev/null".to_owned(),
            };
            let old = name("a/", self.old_path());
            let new = name("b/", self.new_path());
            text.line(&format!("--- {old}{}", name_terminator(&old)));
            text.line(&format!("+++ {new}{}", name_terminator(&new)));
        }
        for hunk in &self.hunks {
            text.hunk(hunk);
        }
        text.bytes
    }

    /// Writes the lines after `diff --git`.
    fn write_git_header(&self, text: &mut PatchText) {
        let (old, new) = (self.old_path().unwrap_or(self.path()), self.path());
        match self.kind {
            FilePatchKind::Added => {
                let mode = self.new_mode.unwrap_or(DEFAULT_MODE);
                return text.line(&format!("new file mode {mode:o}"));
            }
            FilePatchKind::Deleted => {
                let mode = self.old_mode.unwrap_or(DEFAULT_MODE);
                return text.line(&format!("deleted file mode {mode:o}"));
            }
            FilePatchKind::Modified => {}
            FilePatchKind::Renamed => {
                text.line(&format!("rename from {}", quote_path(old)));
                text.line(&format!("rename to {}", quote_path(new)));
            }
            FilePatchKind::Copied => {
                text.line(&format!("copy from {}", quote_path(old)));
                text.line(&format!("copy to {}", quote_path(new)));
            }
        }
        match (self.old_mode, self.new_mode) {
            (Some(old), None) => text.line(&format!("index 0000000..0000000 {old:o}")),
            (old, new) => {
                old.into_iter()
                    .for_each(|mode| text.line(&format!("old mode {mode:o}")));
                new.into_iter()
                    .for_each(|mode| text.line(&format!("new mode {mode:o}")));
            }
        }
    }
}

/// The text of a patch.
struct PatchText {
    bytes: Vec<u8>,
    line_end: &'static str,
}

impl PatchText {
    /// Adds a line that is not part of a hunk.
    fn line(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.extend_from_slice(self.line_end.as_bytes());
    }

    fn hunk(&mut self, hunk: &Hunk<'_>) {
        let (old, new) = (range_text(hunk.old), range_text(hunk.new));
        self.line(&format!("@@ -{old} +{new} @@"));
        for line in &hunk.lines {
            self.bytes.push(match line.kind {
                HunkLineKind::Context => b' ',
                HunkLineKind::Removed => b'-',
                HunkLineKind::Added => b'+',
            });
            self.bytes.extend_from_slice(line.text);
            self.bytes.push(b'\n');
            if !line.has_newline {
                self.line("\\ No newline at end of file");
            }
        }
    }
}

fn range_text(range: LineRange) -> String {
    match range.count {
        1 => range.start.to_string(),
        count => format!("{},{count}", range.start),
    }
}

fn prefixed(prefix: &str, path: &Path) -> String {
    quote(&[prefix.as_bytes(), path.as_os_str().as_bytes()].concat())
}
