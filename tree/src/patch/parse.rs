use std::collections::BTreeSet;

use super::{
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

/// A unified text patch, as `git diff` and `diff -u` write it.
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
/// Text around the patch, such as a mail, is ignored. The parts for the files
/// are independent: each of them reads the old tree, whatever their order, so
/// two files can swap their names. Therefore a patch can change or create each
/// file only once; deleting a file and creating another one with its name is
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch<'a> {
    pub(super) files: Vec<FilePatch<'a>>,
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
    /// If the text is not a patch, or is binary, or names a file that is not
    /// below the root.
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
        let mut files = Vec::new();
        let mut paths = Paths::default();
        while let Some(line) = reader.current() {
            let begin = reader.clone();
            let file = if reader.starts_with(b"diff --git ") {
                git::parse(&mut reader, strip)?
            } else if reader.starts_with(b"--- ") && reader.next_starts_with(b"+++ ") {
                plain::parse(&mut reader, strip)?
            } else if reader.starts_with(b"@@ -") {
                return Err(reader.error(PatchErrorKind::HunkWithoutFile));
            } else if let Some(path) = binary_file_names(line.text) {
                return Err(reader.error(PatchErrorKind::Binary { path: quote(path) }));
            } else {
                reader.advance();
                continue;
            };
            file.check()
                .and_then(|()| paths.add(&file))
                .map_err(|kind| begin.error(kind))?;
            if files.len() == MAX_FILES {
                return Err(begin.error(PatchErrorKind::TooLong {
                    what: "files",
                    limit: MAX_FILES,
                }));
            }
            files.push(file);
        }
        if files.is_empty() {
            return Err(Reader::new(text).error(PatchErrorKind::NoPatch));
        }
        paths.check().map_err(|kind| reader.error(kind))?;
        Ok(Self { files })
    }

    /// Returns the parts for the files, in the order of the text.
    pub fn files(&self) -> &[FilePatch<'a>] {
        &self.files
    }
}

/// Returns the names in `Binary files old/x and new/x differ`.
fn binary_file_names(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(b"Binary files ")?
        .strip_suffix(b" differ")
}

/// Checks that the parts for the files are independent.
#[derive(Default)]
struct Paths {
    /// Paths that are changed or deleted.
    old: BTreeSet<Vec<u8>>,
    /// Paths that exist afterwards.
    new: BTreeSet<Vec<u8>>,
}

impl Paths {
    fn add(&mut self, file: &FilePatch<'_>) -> Result<(), PatchErrorKind> {
        let old = file
            .old_path()
            .filter(|_| file.kind != FilePatchKind::Copied);
        for (path, paths) in [(old, &mut self.old), (file.new_path(), &mut self.new)] {
            let Some(path) = path else { continue };
            if !paths.insert(path.as_os_str().as_encoded_bytes().to_vec()) {
                let path = quote_path(path);
                return Err(PatchErrorKind::DuplicatePath { path });
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), PatchErrorKind> {
        let is_below_file = |path: &[u8]| {
            memchr::memchr_iter(b'/', path).any(|slash| self.new.contains(&path[..slash]))
        };
        match self.new.iter().find(|path| is_below_file(path)) {
            Some(path) => Err(PatchErrorKind::PathBelowFile { path: quote(path) }),
            None => Ok(()),
        }
    }
}
