use std::{fmt, os::unix::ffi::OsStrExt};

use super::{
    change::Change,
    hunks::hunks,
    manifest::{ManifestEntry, ManifestKind},
};
use crate::patch::{name_terminator, quote};

/// The file types in `st_mode`, as git writes them.
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// How many bytes are searched for a NUL to detect a binary file; git uses the
/// same number.
const BINARY_CHECK_BYTES: usize = 8000;

/// How to write a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// The number of context lines around each change. The default is three.
    pub context: usize,
    /// Larger files are treated like binary files. The default is 16 MiB.
    pub max_size: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            context: 3,
            max_size: 16 << 20,
        }
    }
}

/// A change at one path, with the patch for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    change: Change,
    detail: PatchDetail,
    patch: Vec<u8>,
}

/// How much of a change a patch contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchDetail {
    /// The whole change.
    Full,
    /// Only the fact that the file changed: it is binary, or too large, or its
    /// content was not kept, or all patches together are too large. A
    /// [`Patch`](crate::patch::Patch) leaves the file out, and `git apply`
    /// refuses it.
    NameOnly,
    /// Nothing: patches cannot describe directories, devices, sockets and
    /// pipes.
    None,
}

impl FileDiff {
    /// Writes the patch for a change. `old` and `new` are the contents of
    /// regular files, or `None` if there is no such file or its content is
    /// unknown.
    pub fn new(
        change: Change,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        options: DiffOptions,
    ) -> Self {
        let old_side = change.old.as_ref().and_then(|entry| Side::new(entry, old));
        let new_side = change.new.as_ref().and_then(|entry| Side::new(entry, new));
        let mut patch = PatchWriter {
            path: change.path.as_os_str().as_bytes(),
            options,
            text: Vec::new(),
            detail: PatchDetail::Full,
        };
        match (old_side, new_side) {
            (None, None) => patch.detail = PatchDetail::None,
            (Some(old), Some(new)) if old.mode < SYMLINK && new.mode < SYMLINK => {
                let is_same = change.old.as_ref().map(|entry| &entry.kind)
                    == change.new.as_ref().map(|entry| &entry.kind);
                patch.modify(old, new, is_same);
            }
            // A change of type is a removal and an addition, as in git.
            (old, new) => {
                if let Some(old) = old {
                    patch.delete(old);
                }
                if let Some(new) = new {
                    patch.add(new);
                }
            }
        }
        Self {
            detail: patch.detail,
            patch: patch.text,
            change,
        }
    }

    /// Returns the same change without the lines of files.
    pub fn without_texts(self, options: DiffOptions) -> Self {
        Self::new(self.change, None, None, options)
    }

    /// Returns the change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// Returns how much of the change the patch contains.
    pub fn detail(&self) -> PatchDetail {
        self.detail
    }

    /// Returns the patch for this path in git's format. It contains bytes from
    /// the guest: print it through [`printable`](crate::printable()).
    pub fn patch(&self) -> &[u8] {
        &self.patch
    }
}

/// Prints the [`patch`](FileDiff::patch), with bytes that are not UTF-8 replaced.
impl fmt::Display for FileDiff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.patch))
    }
}

/// The old or new file, if a patch can describe it.
#[derive(Clone, Copy)]
struct Side<'a> {
    mode: u32,
    content: Option<&'a [u8]>,
}

impl<'a> Side<'a> {
    fn new(entry: &'a ManifestEntry, content: Option<&'a [u8]>) -> Option<Self> {
        match &entry.kind {
            ManifestKind::File { size, .. } => Some(Self {
                mode: REGULAR | entry.mode,
                content: if *size == 0 { Some(b"") } else { content },
            }),
            ManifestKind::Symlink { target } => Some(Self {
                mode: SYMLINK,
                content: Some(target),
            }),
            ManifestKind::Directory | ManifestKind::Other => None,
        }
    }
}

/// Writes the patch for one path.
struct PatchWriter<'a> {
    path: &'a [u8],
    options: DiffOptions,
    text: Vec<u8>,
    detail: PatchDetail,
}

impl PatchWriter<'_> {
    fn add(&mut self, new: Side<'_>) {
        self.begin();
        self.line(&format!("new file mode {:o}", new.mode));
        self.body("/dev/null", &self.name("b/"), Some(b""), new.content);
    }

    fn delete(&mut self, old: Side<'_>) {
        self.begin();
        self.line(&format!("deleted file mode {:o}", old.mode));
        self.body(&self.name("a/"), "/dev/null", old.content, Some(b""));
    }

    fn modify(&mut self, old: Side<'_>, new: Side<'_>, is_same: bool) {
        self.begin();
        if old.mode != new.mode {
            self.line(&format!("old mode {:o}", old.mode));
            self.line(&format!("new mode {:o}", new.mode));
        }
        if !is_same {
            self.body(&self.name("a/"), &self.name("b/"), old.content, new.content);
        }
    }

    fn begin(&mut self) {
        let (old, new) = (self.name("a/"), self.name("b/"));
        self.line(&format!("diff --git {old} {new}"));
    }

    fn body(&mut self, old_name: &str, new_name: &str, old: Option<&[u8]>, new: Option<&[u8]>) {
        let hunks = match (self.text_of(old), self.text_of(new)) {
            (Some(old), Some(new)) => hunks(old, new, self.options.context),
            _ => None,
        };
        let Some(hunks) = hunks else {
            self.detail = PatchDetail::NameOnly;
            self.line(&format!("Binary files {old_name} and {new_name} differ"));
            return;
        };
        if hunks.is_empty() {
            return;
        }
        self.line(&format!("--- {old_name}{}", name_terminator(old_name)));
        self.line(&format!("+++ {new_name}{}", name_terminator(new_name)));
        self.text.extend_from_slice(&hunks);
    }

    fn text_of<'c>(&self, content: Option<&'c [u8]>) -> Option<&'c [u8]> {
        let content = content.filter(|content| content.len() <= self.options.max_size)?;
        let start = content.get(..BINARY_CHECK_BYTES).unwrap_or(content);
        memchr::memchr(0, start).is_none().then_some(content)
    }

    fn name(&self, prefix: &str) -> String {
        quote(&[prefix.as_bytes(), self.path].concat())
    }

    fn line(&mut self, line: &str) {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
    }
}
