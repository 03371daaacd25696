use std::{collections::BTreeSet, path::PathBuf};

use super::{
    binary, context,
    error::{PatchError, PatchErrorKind},
    file::{FilePatch, FilePatchKind},
    git,
    name::{quote, quote_path},
    plain,
    reader::Reader,
};

/// The limits of a patch. They bound its memory to some hundred MiB.
const MAX_LINES: usize = 1 << 22;
const MAX_FILES: usize = 100_000;

/// A text patch, as `git diff`, `diff -u` and `diff -c` write it.
///
/// ```
/// use vmcell_tree::patch::{ApplyOptions, Patch};
///
/// let text = b"--- a/greeting\n+++ b/greeting\n@@ -1 +1 @@\n-hello\n+good day\n";
/// let patch = Patch::parse(text)?;
/// let new = patch.files()[0].apply(Some(b"hello\n"), ApplyOptions::default())?;
/// assert_eq!(new.as_deref(), Some(&b"good day\n"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Text around the patch, such as a mail, is ignored. Binary files are left out,
/// see [`omitted`](Self::omitted). Printed, it is a patch in git's format.
///
/// The parts for different files are independent: each of them reads the old
/// tree, whatever their order, so two files can swap their names. If several
/// parts change one file, each of them changes what the one before has made. A
/// copy is always one of the old file, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch<'a> {
    pub(super) files: Vec<FilePatch<'a>>,
    omitted: Vec<OmittedFile>,
}

/// A binary file, which a [`Patch`] does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OmittedFile {
    /// The path. It is relative and has no `..`.
    pub path: PathBuf,
    /// The line of the patch, counted from 1.
    pub line: u64,
}

/// A part of the text.
pub(super) enum Part<'a> {
    Text(FilePatch<'a>),
    /// The path of a file of which the text has no lines.
    Binary(PathBuf),
}

/// How many leading directories to strip from the names in a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strip {
    /// One for patches in git's format. One too if the names differ only in
    /// their first directory (`a/x` and `b/x`, `old/x` and `new/x`), and none
    /// otherwise.
    #[default]
    Automatic,
    /// This number, as with `patch -p`.
    Exactly(usize),
}

impl<'a> Patch<'a> {
    /// Parses a patch.
    ///
    /// # Errors
    ///
    /// If the text is not a patch, or all its files are binary, or it names a
    /// file that is not below the root.
    pub fn parse(text: &'a [u8]) -> Result<Self, PatchError> {
        Self::parse_with(text, Strip::Automatic)
    }

    /// Parses a patch, with this number of directories stripped from its names.
    ///
    /// # Errors
    ///
    /// See [`Patch::parse`].
    pub fn parse_with(text: &'a [u8], strip: Strip) -> Result<Self, PatchError> {
        let mut reader = Reader::new(text);
        if memchr::memchr_iter(b'\n', text).count() > MAX_LINES {
            return Err(reader.error(PatchErrorKind::TooLong {
                what: "lines",
                limit: MAX_LINES,
            }));
        }
        let mut patch = Self {
            files: Vec::new(),
            omitted: Vec::new(),
        };
        let mut paths = Paths::default();
        while let Some(line) = reader.current() {
            let begin = reader.clone();
            let part = if reader.starts_with(b"diff --git ") {
                git::parse(&mut reader, strip)?
            } else if reader.starts_with(b"--- ") && reader.next_starts_with(b"+++ ") {
                Part::Text(plain::parse_unified(&mut reader, strip)?)
            } else if context::is_at_start(&reader) {
                Part::Text(plain::parse_context(&mut reader, strip)?)
            } else if reader.starts_with(b"@@ -") {
                return Err(reader.error(PatchErrorKind::HunkWithoutFile));
            } else if let Some(names) = binary::names(line.text) {
                let path = binary::path(names, strip).map_err(|kind| reader.error(kind))?;
                reader.advance();
                Part::Binary(path)
            } else {
                reader.advance();
                continue;
            };
            if patch.files.len() + patch.omitted.len() == MAX_FILES {
                return Err(begin.error(PatchErrorKind::TooLong {
                    what: "files",
                    limit: MAX_FILES,
                }));
            }
            match part {
                Part::Text(file) => {
                    file.check().map_err(|kind| begin.error(kind))?;
                    paths.add(&file);
                    patch.files.push(file);
                }
                Part::Binary(path) => {
                    let line = begin.number();
                    patch.omitted.push(OmittedFile { path, line });
                }
            }
        }
        if patch.files.is_empty() {
            return Err(patch.error_without_files());
        }
        paths.check().map_err(|kind| reader.error(kind))?;
        Ok(patch)
    }

    fn error_without_files(&self) -> PatchError {
        match self.omitted.first() {
            Some(omitted) => PatchError {
                line: omitted.line,
                kind: PatchErrorKind::Binary {
                    path: quote_path(&omitted.path),
                },
            },
            None => PatchError {
                line: 1,
                kind: PatchErrorKind::NoPatch,
            },
        }
    }

    /// Returns the parts for the files, in the order of the text.
    pub fn files(&self) -> &[FilePatch<'a>] {
        &self.files
    }

    /// Returns the binary files that the text names, in its order. The patch
    /// leaves them as they are.
    pub fn omitted(&self) -> &[OmittedFile] {
        &self.omitted
    }
}

/// The paths that exist after a patch.
#[derive(Default)]
struct Paths(BTreeSet<Vec<u8>>);

impl Paths {
    fn add(&mut self, file: &FilePatch<'_>) {
        if matches!(file.kind, FilePatchKind::Deleted | FilePatchKind::Renamed) {
            let old = file.old_path().map(|path| path.as_os_str());
            self.0.remove(old.unwrap_or_default().as_encoded_bytes());
        }
        if let Some(path) = file.new_path() {
            self.0.insert(path.as_os_str().as_encoded_bytes().to_vec());
        }
    }

    /// Checks that none of them is below another one.
    fn check(&self) -> Result<(), PatchErrorKind> {
        let is_below_file = |path: &[u8]| {
            memchr::memchr_iter(b'/', path).any(|slash| self.0.contains(&path[..slash]))
        };
        match self.0.iter().find(|path| is_below_file(path)) {
            Some(path) => Err(PatchErrorKind::PathBelowFile { path: quote(path) }),
            None => Ok(()),
        }
    }
}
