//! Parses the part of a patch for one file in git's format.

use std::path::PathBuf;

use super::{
    error::{PatchError, PatchErrorKind},
    file::{FilePatch, FilePatchKind},
    hunk::Hunk,
    name::{BadName, quote_path, stripped, unquote},
    parse::{Part, Strip},
    plain::HeaderName,
    reader::Reader,
};

/// The file type bits of a mode, and the types that a patch can describe.
const TYPE_MASK: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Parses from `diff --git` to the end of the last hunk, or to the line that
/// shows that the file is binary.
pub(super) fn parse<'a>(reader: &mut Reader<'a>, strip: Strip) -> Result<Part<'a>, PatchError> {
    let begin = reader.clone();
    let levels = match strip {
        Strip::Automatic => 1,
        Strip::Exactly(levels) => levels,
    };
    let first = reader.current().map_or(&b""[..], |line| line.text);
    let mut header = GitHeader {
        levels,
        ..GitHeader::default()
    };
    let names = first.get(b"diff --git ".len()..).unwrap_or_default();
    header.diff_line_path = diff_line_path(names.strip_suffix(b"\r").unwrap_or(names), levels)
        .map_err(|bad| reader.error(bad.into()))?;
    reader.advance();
    while let Some(line) = reader.current() {
        let text = line.without_carriage_return().text;
        if text == b"GIT binary patch" || text.starts_with(b"Binary files ") {
            let path = header.known_path();
            let path = path.ok_or_else(|| begin.error(PatchErrorKind::NoName))?;
            // What follows a `GIT binary patch` has no line that starts a part.
            reader.advance();
            return Ok(Part::Binary(path));
        }
        let is_header = if text.starts_with(b"--- ") && reader.next_starts_with(b"+++ ") {
            let old = HeaderName::parse(line);
            header.add_old_name(old).map(|()| true)
        } else if text.starts_with(b"+++ ") {
            header.add_new_name(HeaderName::parse(line)).map(|()| true)
        } else {
            header.add(text)
        };
        if !is_header.map_err(|kind| reader.error(kind))? {
            break;
        }
        reader.advance();
    }
    if header.has_names && !reader.starts_with(b"@@ -") {
        return Err(reader.error(PatchErrorKind::FileWithoutHunk));
    }
    let hunks = Hunk::parse_all(reader)?;
    header
        .into_file(hunks, first.ends_with(b"\r"))
        .map(Part::Text)
        .map_err(|kind| begin.error(kind))
}

/// The header lines before the hunks.
#[derive(Default)]
struct GitHeader {
    levels: usize,
    /// The path in the `diff --git` line, if it is the same twice.
    diff_line_path: Option<PathBuf>,
    /// From `---`, `rename from` or `copy from`, and from their counterparts.
    old: Option<PathBuf>,
    new: Option<PathBuf>,
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    index_mode: Option<u32>,
    kind: Option<FilePatchKind>,
    /// Whether there is a `---` line.
    has_names: bool,
}

impl GitHeader {
    /// Adds a header line. Returns whether the line belongs to the header.
    fn add(&mut self, line: &[u8]) -> Result<bool, PatchErrorKind> {
        let value = |key: &str| line.strip_prefix(key.as_bytes());
        if let Some(mode) = value("old mode ") {
            self.old_mode = Some(parse_mode(mode)?);
        } else if let Some(mode) = value("new mode ") {
            self.new_mode = Some(parse_mode(mode)?);
        } else if let Some(mode) = value("deleted file mode ") {
            self.old_mode = Some(parse_mode(mode)?);
            self.kind = Some(FilePatchKind::Deleted);
        } else if let Some(mode) = value("new file mode ") {
            self.new_mode = Some(parse_mode(mode)?);
            self.kind = Some(FilePatchKind::Added);
        } else if let Some(name) = value("rename from ") {
            self.kind = Some(FilePatchKind::Renamed);
            self.add_old(unprefixed_path(name, self.levels)?)?;
        } else if let Some(name) = value("rename to ") {
            self.kind = Some(FilePatchKind::Renamed);
            self.add_new(unprefixed_path(name, self.levels)?)?;
        } else if let Some(name) = value("copy from ") {
            self.kind = Some(FilePatchKind::Copied);
            self.add_old(unprefixed_path(name, self.levels)?)?;
        } else if let Some(name) = value("copy to ") {
            self.kind = Some(FilePatchKind::Copied);
            self.add_new(unprefixed_path(name, self.levels)?)?;
        } else if let Some(index) = value("index ") {
            // It has a mode if the mode does not change.
            if let Some(blank) = memchr::memchr(b' ', index) {
                self.index_mode = Some(parse_mode(&index[blank + 1..])?);
            }
        } else {
            let is_known = ["similarity index ", "dissimilarity index "]
                .iter()
                .any(|key| value(key).is_some());
            return Ok(is_known);
        }
        Ok(true)
    }

    fn add_old_name(
        &mut self,
        name: Result<HeaderName<'_>, BadName>,
    ) -> Result<(), PatchErrorKind> {
        let name = name?;
        self.has_names = true;
        if name.is_dev_null() {
            self.kind = Some(FilePatchKind::Added);
            return Ok(());
        }
        self.add_old(stripped(&name.bytes, self.levels)?)
    }

    fn add_new_name(
        &mut self,
        name: Result<HeaderName<'_>, BadName>,
    ) -> Result<(), PatchErrorKind> {
        let name = name?;
        if name.is_dev_null() {
            self.kind = Some(FilePatchKind::Deleted);
            return Ok(());
        }
        self.add_new(stripped(&name.bytes, self.levels)?)
    }

    fn add_old(&mut self, path: PathBuf) -> Result<(), PatchErrorKind> {
        set_consistent(&mut self.old, path)
    }

    fn add_new(&mut self, path: PathBuf) -> Result<(), PatchErrorKind> {
        set_consistent(&mut self.new, path)
    }

    fn known_path(&self) -> Option<PathBuf> {
        let path = self.new.as_ref().or(self.old.as_ref());
        path.or(self.diff_line_path.as_ref()).cloned()
    }

    fn into_file(
        mut self,
        hunks: Vec<Hunk<'_>>,
        has_carriage_returns: bool,
    ) -> Result<FilePatch<'_>, PatchErrorKind> {
        let kind = self.kind.unwrap_or(FilePatchKind::Modified);
        let (old_path, new_path) = match kind {
            FilePatchKind::Renamed | FilePatchKind::Copied => {
                let old = self.old.ok_or(PatchErrorKind::NoName)?;
                let new = self.new.ok_or(PatchErrorKind::NoName)?;
                if old == new {
                    let path = quote_path(&new);
                    return Err(PatchErrorKind::SamePath { path });
                }
                (Some(old), Some(new))
            }
            _ => {
                let mut path = self.diff_line_path.take();
                for name in [self.old, self.new].into_iter().flatten() {
                    set_consistent(&mut path, name)?;
                }
                let path = path.ok_or(PatchErrorKind::NoName)?;
                (
                    (kind != FilePatchKind::Added).then(|| path.clone()),
                    (kind != FilePatchKind::Deleted).then_some(path),
                )
            }
        };
        Ok(FilePatch {
            kind,
            old_path,
            new_path,
            old_mode: self.old_mode.or(self.index_mode),
            new_mode: self.new_mode,
            hunks,
            has_carriage_returns,
            may_create: false,
        })
    }
}

fn set_consistent(known: &mut Option<PathBuf>, path: PathBuf) -> Result<(), PatchErrorKind> {
    match known {
        Some(known) if *known != path => Err(PatchErrorKind::NamesDiffer {
            first: quote_path(known),
            second: quote_path(&path),
        }),
        _ => {
            *known = Some(path);
            Ok(())
        }
    }
}

fn parse_mode(text: &[u8]) -> Result<u32, PatchErrorKind> {
    str::from_utf8(text.trim_ascii())
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, 8).ok())
        .filter(|mode| matches!(mode & TYPE_MASK, REGULAR | SYMLINK) && *mode <= TYPE_MASK | 0o7777)
        .ok_or(PatchErrorKind::BadMode)
}

/// Parses the name after `rename from`, `copy to` and so on, which has no `a/`
/// or `b/` prefix.
fn unprefixed_path(text: &[u8], levels: usize) -> Result<PathBuf, BadName> {
    let levels = levels.saturating_sub(1);
    match unquote(text)? {
        Some((name, _)) => stripped(&name, levels),
        None => stripped(text, levels),
    }
}

/// Parses `a/name b/name`. Returns the path if it is the same twice. Spaces in
/// the name make it ambiguous where the second one starts.
fn diff_line_path(names: &[u8], levels: usize) -> Result<Option<PathBuf>, BadName> {
    if let Some((first, rest)) = unquote(names)? {
        let second = rest.strip_prefix(b" ").unwrap_or(rest);
        let second = unquote(second)?.map_or(second.to_vec(), |(name, _)| name);
        return path_if_equal(&first, &second, levels);
    }
    if let Some(blank) = names.windows(2).position(|pair| pair == b" \"") {
        let second = unquote(&names[blank + 1..])?.map(|(name, _)| name);
        return path_if_equal(&names[..blank], &second.unwrap_or_default(), levels);
    }
    // With equal names and prefixes of equal length, the separating space is in
    // the middle.
    let (first, second) = names.split_at(names.len() / 2);
    match second.strip_prefix(b" ") {
        Some(second) => path_if_equal(first, second, levels),
        None => Ok(None),
    }
}

fn path_if_equal(first: &[u8], second: &[u8], levels: usize) -> Result<Option<PathBuf>, BadName> {
    match (stripped(first, levels), stripped(second, levels)) {
        (Ok(first), Ok(second)) => Ok((first == second).then_some(first)),
        (Err(bad), Err(_)) => Err(bad),
        // Two names, or parts of names: the space in the middle may belong to one.
        _ => Ok(None),
    }
}
