//! The part of a patch for one file, as git writes it.

use std::path::PathBuf;

use super::{
    error::{PatchError, PatchErrorKind},
    file::{FilePatch, FilePatchKind},
    hunk::Hunk,
    name::{BadName, quote_path, stripped, unquote},
    parse::Strip,
    plain::Name,
    reader::Reader,
};

/// The type of a file in its mode, and those that a patch can be for.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Reads from `diff --git` to the end of the last hunk.
pub(super) fn parse<'a>(
    reader: &mut Reader<'a>,
    strip: Strip,
) -> Result<FilePatch<'a>, PatchError> {
    let begin = reader.clone();
    let levels = match strip {
        Strip::Automatic => 1,
        Strip::Exactly(levels) => levels,
    };
    let first = reader.current().map_or(&b""[..], |line| line.text);
    let mut header = Header {
        levels,
        ..Header::default()
    };
    let names = first.get(b"diff --git ".len()..).unwrap_or_default();
    header.same = same_name(names.strip_suffix(b"\r").unwrap_or(names), levels)
        .map_err(|bad| reader.error(bad.into()))?;
    reader.advance();
    while let Some(line) = reader.current() {
        let text = line.without_carriage_return().text;
        if text == b"GIT binary patch" || text.starts_with(b"Binary files ") {
            let path = header.any_path().ok_or(PatchErrorKind::NoName);
            return Err(begin.error(match path {
                Ok(path) => PatchErrorKind::Binary {
                    path: quote_path(&path),
                },
                Err(kind) => kind,
            }));
        }
        let is_header = if text.starts_with(b"--- ") && reader.before(b"+++ ") {
            let old = Name::parse(line);
            header.add_old_name(old).map(|()| true)
        } else if text.starts_with(b"+++ ") {
            header.add_new_name(Name::parse(line)).map(|()| true)
        } else {
            header.add(text)
        };
        if !is_header.map_err(|kind| reader.error(kind))? {
            break;
        }
        reader.advance();
    }
    if header.has_names && !reader.at(b"@@ -") {
        return Err(reader.error(PatchErrorKind::FileWithoutHunk));
    }
    let hunks = Hunk::parse_all(reader)?;
    header
        .into_file(hunks, first.ends_with(b"\r"))
        .map_err(|kind| begin.error(kind))
}

/// What git tells before the hunks.
#[derive(Default)]
struct Header {
    levels: usize,
    /// The name in the first line, if it is the same twice.
    same: Option<PathBuf>,
    /// From `---`, `rename from` or `copy from`, and from their counterparts.
    old: Option<PathBuf>,
    new: Option<PathBuf>,
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    index_mode: Option<u32>,
    kind: Option<FilePatchKind>,
    /// Whether there are `---` and `+++`.
    has_names: bool,
}

impl Header {
    /// Whether the line belongs to the header.
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
            self.add_old(whole_name(name, self.levels)?)?;
        } else if let Some(name) = value("rename to ") {
            self.kind = Some(FilePatchKind::Renamed);
            self.add_new(whole_name(name, self.levels)?)?;
        } else if let Some(name) = value("copy from ") {
            self.kind = Some(FilePatchKind::Copied);
            self.add_old(whole_name(name, self.levels)?)?;
        } else if let Some(name) = value("copy to ") {
            self.kind = Some(FilePatchKind::Copied);
            self.add_new(whole_name(name, self.levels)?)?;
        } else if let Some(index) = value("index ") {
            // The mode is there if it stays the same.
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

    fn add_old_name(&mut self, name: Result<Name<'_>, BadName>) -> Result<(), PatchErrorKind> {
        let name = name?;
        self.has_names = true;
        if name.is_null() {
            self.kind = Some(FilePatchKind::Added);
            return Ok(());
        }
        self.add_old(stripped(&name.bytes, self.levels)?)
    }

    fn add_new_name(&mut self, name: Result<Name<'_>, BadName>) -> Result<(), PatchErrorKind> {
        let name = name?;
        if name.is_null() {
            self.kind = Some(FilePatchKind::Deleted);
            return Ok(());
        }
        self.add_new(stripped(&name.bytes, self.levels)?)
    }

    fn add_old(&mut self, path: PathBuf) -> Result<(), PatchErrorKind> {
        settle(&mut self.old, path)
    }

    fn add_new(&mut self, path: PathBuf) -> Result<(), PatchErrorKind> {
        settle(&mut self.new, path)
    }

    fn any_path(&self) -> Option<PathBuf> {
        let path = self.new.as_ref().or(self.old.as_ref());
        path.or(self.same.as_ref()).cloned()
    }

    fn into_file(
        mut self,
        hunks: Vec<Hunk<'_>>,
        has_returns: bool,
    ) -> Result<FilePatch<'_>, PatchErrorKind> {
        let kind = self.kind.unwrap_or(FilePatchKind::Modified);
        let (old_path, new_path) = match kind {
            FilePatchKind::Renamed | FilePatchKind::Copied => {
                let old = self.old.ok_or(PatchErrorKind::NoName)?;
                let new = self.new.ok_or(PatchErrorKind::NoName)?;
                if old == new {
                    let path = quote_path(&new);
                    return Err(PatchErrorKind::Twice { path });
                }
                (Some(old), Some(new))
            }
            _ => {
                let mut path = self.same.take();
                for name in [self.old, self.new].into_iter().flatten() {
                    settle(&mut path, name)?;
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
            has_returns,
            may_create: false,
        })
    }
}

fn settle(known: &mut Option<PathBuf>, path: PathBuf) -> Result<(), PatchErrorKind> {
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
        .filter(|mode| matches!(mode & TYPE, REGULAR | SYMLINK) && *mode <= TYPE | 0o7777)
        .ok_or(PatchErrorKind::BadMode)
}

/// A name behind `rename from` and the like: these have no `a/` before them.
fn whole_name(text: &[u8], levels: usize) -> Result<PathBuf, BadName> {
    let levels = levels.saturating_sub(1);
    match unquote(text)? {
        Some((name, _)) => stripped(&name, levels),
        None => stripped(text, levels),
    }
}

/// The name in `a/name b/name`, if it is the same twice. Blanks in it make it
/// unclear where the second begins.
fn same_name(names: &[u8], levels: usize) -> Result<Option<PathBuf>, BadName> {
    if let Some((first, rest)) = unquote(names)? {
        let second = rest.strip_prefix(b" ").unwrap_or(rest);
        let second = unquote(second)?.map_or(second.to_vec(), |(name, _)| name);
        return both(&first, &second, levels);
    }
    if let Some(blank) = names.windows(2).position(|pair| pair == b" \"") {
        let second = unquote(&names[blank + 1..])?.map(|(name, _)| name);
        return both(&names[..blank], &second.unwrap_or_default(), levels);
    }
    // With the same name twice and prefixes of the same length, the blank is in
    // the middle.
    let (first, second) = names.split_at(names.len() / 2);
    match second.strip_prefix(b" ") {
        Some(second) => both(first, second, levels),
        None => Ok(None),
    }
}

fn both(first: &[u8], second: &[u8], levels: usize) -> Result<Option<PathBuf>, BadName> {
    let (first, second) = (stripped(first, levels)?, stripped(second, levels)?);
    Ok((first == second).then_some(first))
}
