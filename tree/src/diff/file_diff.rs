use std::os::unix::ffi::OsStrExt;

use super::{
    change::Change,
    hunks::hunks,
    manifest::{ManifestEntry, ManifestKind},
};
use crate::patch::quote;

/// The types of files in their modes, as git writes them.
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// A text has no zero byte among as many bytes, as git sees it.
const LOOKED_AT: usize = 8000;

/// How differences are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// How many lines that did not change are shown around those that did.
    /// Three by default.
    pub context: usize,
    /// Files with more bytes are treated as if they were binary. 16 MiB by
    /// default.
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

/// What has changed at one path, as far as it can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    change: Change,
    shown: Shown,
    patch: Vec<u8>,
}

/// How much of a change is in a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// All of it.
    Whole,
    /// Only that there is one: the file is binary, or too large, or its content
    /// was not kept, or all patches together have become too large. Such a patch is refused when it is to be applied.
    Named,
    /// Nothing: patches know no directories, devices, sockets and pipes.
    Nothing,
}

impl FileDiff {
    /// Shows a change. The contents are those of regular files, or `None` if
    /// there is no such file or its content is not known.
    pub fn new(
        change: Change,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        options: DiffOptions,
    ) -> Self {
        let old_side = change.old.as_ref().and_then(|entry| Side::new(entry, old));
        let new_side = change.new.as_ref().and_then(|entry| Side::new(entry, new));
        let mut page = Page {
            path: change.path.as_os_str().as_bytes(),
            options,
            text: Vec::new(),
            shown: Shown::Whole,
        };
        match (old_side, new_side) {
            (None, None) => page.shown = Shown::Nothing,
            (Some(old), Some(new)) if old.mode < SYMLINK && new.mode < SYMLINK => {
                let is_same = change.old.as_ref().map(|entry| &entry.kind)
                    == change.new.as_ref().map(|entry| &entry.kind);
                page.modify(old, new, is_same);
            }
            // As git has it, one that becomes another is removed first.
            (old, new) => {
                if let Some(old) = old {
                    page.delete(old);
                }
                if let Some(new) = new {
                    page.add(new);
                }
            }
        }
        Self {
            shown: page.shown,
            patch: page.text,
            change,
        }
    }

    /// The same change, with the texts of files only named.
    pub fn without_texts(self, options: DiffOptions) -> Self {
        Self::new(self.change, None, None, options)
    }

    /// What has changed.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// How much of it is in the patch.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// The part of a patch for this path, as git writes it. It holds bytes of
    /// the guest: print it for people through [`printable`](crate::printable).
    pub fn patch(&self) -> &[u8] {
        &self.patch
    }
}

/// What is at a path, if a patch can tell.
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

/// The part of a patch for one path, while it is written.
struct Page<'a> {
    path: &'a [u8],
    options: DiffOptions,
    text: Vec<u8>,
    shown: Shown,
}

impl Page<'_> {
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
            self.shown = Shown::Named;
            self.line(&format!("Binary files {old_name} and {new_name} differ"));
            return;
        };
        if hunks.is_empty() {
            return;
        }
        self.line(&format!("--- {old_name}{}", end_of_name(old_name)));
        self.line(&format!("+++ {new_name}{}", end_of_name(new_name)));
        self.text.extend_from_slice(&hunks);
    }

    fn text_of<'c>(&self, content: Option<&'c [u8]>) -> Option<&'c [u8]> {
        let content = content.filter(|content| content.len() <= self.options.max_size)?;
        let start = content.get(..LOOKED_AT).unwrap_or(content);
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

/// A name with blanks would be taken for one with a time behind it.
fn end_of_name(name: &str) -> &'static str {
    let is_quoted = name.starts_with('"');
    if name.contains(' ') && !is_quoted {
        "\t"
    } else {
        ""
    }
}
