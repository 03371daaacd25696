//! The part of a patch for one file, as `diff -u` writes it.

use std::{borrow::Cow, path::PathBuf};

use super::{
    epoch::is_epoch,
    error::{PatchError, PatchErrorKind},
    file::{FilePatch, FilePatchKind},
    hunk::Hunk,
    line::TextLine,
    name::{BadName, quote, stripped, unquote},
    parse::Strip,
    reader::Reader,
};

/// A name behind `---` or `+++`.
pub(super) struct Name<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// What is behind the name.
    stamp: &'a [u8],
}

impl<'a> Name<'a> {
    /// The name in a line of which the first four bytes are known.
    pub(super) fn parse(line: TextLine<'a>) -> Result<Self, BadName> {
        let text = line.without_carriage_return().text;
        let text = text.get(4..).unwrap_or_default();
        if let Some((name, stamp)) = unquote(text)? {
            return Ok(Self {
                bytes: name.into(),
                stamp,
            });
        }
        let end = memchr::memchr(b'\t', text).unwrap_or(text.len());
        let (name, stamp) = text.split_at(end);
        Ok(Self {
            bytes: name.into(),
            stamp,
        })
    }

    pub(super) fn is_null(&self) -> bool {
        *self.bytes == *b"/dev/null"
    }

    fn is_no_file(&self) -> bool {
        self.is_null() || is_epoch(self.stamp)
    }
}

/// Reads from `---` to the end of the last hunk.
pub(super) fn parse<'a>(
    reader: &mut Reader<'a>,
    strip: Strip,
) -> Result<FilePatch<'a>, PatchError> {
    let mut has_returns = false;
    let mut name = |reader: &mut Reader<'a>| {
        let line = reader.current().unwrap_or(TextLine {
            text: b"",
            ended: false,
        });
        has_returns = line.text.ends_with(b"\r");
        let name = Name::parse(line).map_err(|bad| reader.error(bad.into()))?;
        reader.advance();
        Ok(name)
    };
    let begin = reader.clone();
    let old = name(reader)?;
    let new = name(reader)?;
    let path = choose(&old, &new, strip).map_err(|kind| begin.error(kind))?;
    if !reader.at(b"@@ -") {
        return Err(reader.error(PatchErrorKind::FileWithoutHunk));
    }
    let hunks = Hunk::parse_all(reader)?;
    let kind = match (old.is_no_file(), new.is_no_file()) {
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
        has_returns,
    })
}

/// The one file that both names mean.
fn choose(old: &Name<'_>, new: &Name<'_>, strip: Strip) -> Result<PathBuf, PatchErrorKind> {
    let levels = |automatic: bool| match strip {
        Strip::Automatic => usize::from(automatic),
        Strip::Exactly(levels) => levels,
    };
    match (old.is_null(), new.is_null()) {
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
