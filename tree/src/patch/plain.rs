//! Parses the part of a patch for one file in the format of `diff -u` or
//! `diff -c`.

use std::{borrow::Cow, path::PathBuf};

use super::{
    context,
    epoch::is_epoch,
    error::{PatchError, PatchErrorKind},
    file::{FilePatch, FilePatchKind},
    hunk::Hunk,
    line::TextLine,
    name::{BadName, quote, stripped, unquote},
    parse::Strip,
    reader::Reader,
};

/// The name in a `---` or `+++` line.
pub(super) struct HeaderName<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// The rest of the line after the name.
    timestamp: &'a [u8],
}

impl<'a> HeaderName<'a> {
    /// Parses the name in a line that starts with `--- `, `+++ ` or `*** `.
    pub(super) fn parse(line: TextLine<'a>) -> Result<Self, BadName> {
        let text = line.without_carriage_return().text;
        let text = text.get(4..).unwrap_or_default();
        if let Some((name, timestamp)) = unquote(text)? {
            return Ok(Self {
                bytes: name.into(),
                timestamp,
            });
        }
        let end = memchr::memchr(b'\t', text).unwrap_or(text.len());
        let (name, timestamp) = text.split_at(end);
        Ok(Self {
            bytes: name.into(),
            timestamp,
        })
    }

    /// Returns a name without a timestamp.
    pub(super) fn new(name: &'a [u8]) -> Self {
        Self {
            bytes: name.into(),
            timestamp: b"",
        }
    }

    pub(super) fn is_dev_null(&self) -> bool {
        *self.bytes == *b"/dev/null"
    }

    /// Returns whether there is no such file. A timestamp alone does not show
    /// that, because a file may have that time.
    fn is_absent(&self, has_lines: bool) -> bool {
        self.is_dev_null() || !has_lines && is_epoch(self.timestamp)
    }
}

/// Parses from `---` to the end of the last hunk.
pub(super) fn parse_unified<'a>(
    reader: &mut Reader<'a>,
    strip: Strip,
) -> Result<FilePatch<'a>, PatchError> {
    parse(reader, strip, b"@@ -", Hunk::parse_all)
}

/// Parses a context diff from `***` to the end of the last hunk.
pub(super) fn parse_context<'a>(
    reader: &mut Reader<'a>,
    strip: Strip,
) -> Result<FilePatch<'a>, PatchError> {
    parse(reader, strip, context::HUNK_START, context::parse_hunks)
}

fn parse<'a>(
    reader: &mut Reader<'a>,
    strip: Strip,
    hunk_start: &[u8],
    parse_hunks: fn(&mut Reader<'a>) -> Result<Vec<Hunk<'a>>, PatchError>,
) -> Result<FilePatch<'a>, PatchError> {
    let mut has_carriage_returns = false;
    let mut name = |reader: &mut Reader<'a>| {
        let line = reader.current().unwrap_or(TextLine {
            text: b"",
            has_newline: false,
        });
        has_carriage_returns = line.text.ends_with(b"\r");
        let name = HeaderName::parse(line).map_err(|bad| reader.error(bad.into()))?;
        reader.advance();
        Ok(name)
    };
    let begin = reader.clone();
    let old = name(reader)?;
    let new = name(reader)?;
    let path = choose(&old, &new, strip).map_err(|kind| begin.error(kind))?;
    if !reader.starts_with(hunk_start) {
        return Err(reader.error(PatchErrorKind::FileWithoutHunk));
    }
    let hunks = parse_hunks(reader)?;
    let has_old_lines = hunks.iter().any(|hunk| hunk.old.count > 0);
    let has_new_lines = hunks.iter().any(|hunk| hunk.new.count > 0);
    let kind = match (old.is_absent(has_old_lines), new.is_absent(has_new_lines)) {
        (true, false) => FilePatchKind::Added,
        (false, true) => FilePatchKind::Deleted,
        _ => FilePatchKind::Modified,
    };
    Ok(FilePatch {
        kind,
        old_path: (kind != FilePatchKind::Added).then(|| path.clone()),
        new_path: (kind != FilePatchKind::Deleted).then_some(path),
        old_mode: None,
        new_mode: None,
        may_create: hunks.iter().all(|hunk| hunk.old.start == 0),
        hunks,
        has_carriage_returns,
    })
}

/// Returns the path of the file that both names stand for.
pub(super) fn choose(
    old: &HeaderName<'_>,
    new: &HeaderName<'_>,
    strip: Strip,
) -> Result<PathBuf, PatchErrorKind> {
    let levels = |automatic: bool| match strip {
        Strip::Automatic => usize::from(automatic),
        Strip::Exactly(levels) => levels,
    };
    match (old.is_dev_null(), new.is_dev_null()) {
        (true, true) => Err(PatchErrorKind::NoName),
        (true, false) => Ok(stripped(&new.bytes, levels(new.bytes.starts_with(b"b/")))?),
        (false, true) => Ok(stripped(&old.bytes, levels(old.bytes.starts_with(b"a/")))?),
        (false, false) => {
            let levels = levels(differ_in_first(&old.bytes, &new.bytes));
            let old = stripped(&old.bytes, levels)?;
            let new = stripped(&new.bytes, levels)?;
            // Of `x.orig` and `x`, or `x` and `x.new`, the file is `x`.
            let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();
            if bytes(&new).starts_with(&bytes(&old)) {
                return Ok(old);
            }
            if bytes(&old).starts_with(&bytes(&new)) {
                return Ok(new);
            }
            Err(PatchErrorKind::NamesDiffer {
                first: quote(&bytes(&old)),
                second: quote(&bytes(&new)),
            })
        }
    }
}

fn differ_in_first(old: &[u8], new: &[u8]) -> bool {
    let split = |name| memchr::memchr(b'/', name).and_then(|at| name.split_at_checked(at));
    match (split(old), split(new)) {
        (Some((old_first, old_rest)), Some((new_first, new_rest))) => {
            old_first != new_first
                && (old_rest == new_rest || old_first == b"a" && new_first == b"b")
        }
        _ => false,
    }
}
