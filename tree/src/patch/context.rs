//! Parses the hunks of context diffs, as `diff -c` writes them. Each has the old
//! lines, then the new ones:
//!
//! ```text
//! ***************
//! *** 1,3 ****
//!   kept
//! ! old
//! - removed
//! --- 1,3 ----
//!   kept
//! ! new
//! + added
//! ```
//!
//! A half without changes may lack its lines, which the other half has too.

use super::{
    error::{PatchError, PatchErrorKind},
    hunk::{Hunk, HunkLine, HunkLineKind, LineRange, parse_number},
    line::TextLine,
    reader::Reader,
};

/// The start of the line before each hunk.
pub(super) const HUNK_START: &[u8] = b"***************";

/// Returns whether the reader is at the first of the three lines that start a
/// context diff.
pub(super) fn is_at_start(reader: &Reader<'_>) -> bool {
    if !reader.starts_with(b"*** ") || !reader.next_starts_with(b"--- ") {
        return false;
    }
    let mut ahead = reader.clone();
    ahead.advance();
    ahead.next_starts_with(HUNK_START)
}

/// Parses all hunks of a file.
pub(super) fn parse_hunks<'a>(reader: &mut Reader<'a>) -> Result<Vec<Hunk<'a>>, PatchError> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    while reader.starts_with(HUNK_START) {
        let begin = reader.clone();
        let hunk = parse_hunk(reader)?;
        hunk.check_follows(hunks.last())
            .map_err(|kind| begin.error(kind))?;
        hunks.push(hunk);
    }
    if is_half_line(reader) {
        return Err(reader.error(PatchErrorKind::HunkTooLong));
    }
    Ok(hunks)
}

fn parse_hunk<'a>(reader: &mut Reader<'a>) -> Result<Hunk<'a>, PatchError> {
    let patch_line = reader.number();
    reader.advance();
    let begin = reader.clone();
    let range = HalfRange::parse(reader, b"*** ", b" ****")?;
    let mut old = match reader.starts_with(b"--- ") {
        true => None,
        false => Some(parse_half(reader, range, HunkLineKind::Removed)?),
    };
    let new_range = HalfRange::parse(reader, b"--- ", b" ----")?;
    let kept: Option<Vec<_>> = old.as_deref().map(context_lines);
    let new = match kept {
        Some(kept) if new_range.fits(kept.len()) && !is_half_line(reader) => kept,
        _ => parse_half(reader, new_range, HunkLineKind::Added)?,
    };
    let old = old.get_or_insert_with(|| context_lines(&new));
    let hunk = Hunk {
        patch_line,
        old: range.with_lines(old.len()),
        new: new_range.with_lines(new.len()),
        lines: merge(old, &new).ok_or_else(|| begin.error(PatchErrorKind::HalvesDiffer))?,
    };
    match range.fits(old.len()) && hunk.old.is_possible() && hunk.new.ends_in_range() {
        true => Ok(hunk),
        false => Err(begin.error(PatchErrorKind::BadRange)),
    }
}

/// The range in the header of a half: its first and its last line. A range of
/// one line or none has only one number.
#[derive(Clone, Copy)]
struct HalfRange {
    first: u64,
    last: Option<u64>,
}

impl HalfRange {
    /// Parses a line like `*** 1,3 ****`.
    fn parse(reader: &mut Reader<'_>, start: &[u8], end: &[u8]) -> Result<Self, PatchError> {
        let line = reader.current().map(TextLine::without_carriage_return);
        let range = line.and_then(|line| {
            let (first, rest) = parse_number(line.text.strip_prefix(start)?)?;
            let (last, rest) = match rest.strip_prefix(b",") {
                Some(rest) => parse_number(rest).map(|(last, rest)| (Some(last), rest))?,
                None => (None, rest),
            };
            rest.starts_with(end).then_some(Self { first, last })
        });
        let range = range.ok_or_else(|| reader.error(PatchErrorKind::BadContextHeader))?;
        reader.advance();
        Ok(range)
    }

    /// Returns the largest possible number of lines.
    fn max_count(self) -> u64 {
        match self.last {
            Some(last) => last.saturating_add(1).saturating_sub(self.first),
            None => 1,
        }
    }

    /// Returns whether the range can have this number of lines.
    fn fits(self, count: usize) -> bool {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        count == self.max_count() || count == 0 && self.last.is_none()
    }

    fn with_lines(self, count: usize) -> LineRange {
        LineRange {
            start: self.first,
            count: u64::try_from(count).unwrap_or(u64::MAX),
        }
    }
}

/// Parses the lines of a half. `changed` is what its marks stand for.
fn parse_half<'a>(
    reader: &mut Reader<'a>,
    range: HalfRange,
    changed: HunkLineKind,
) -> Result<Vec<HunkLine<'a>>, PatchError> {
    let mut lines: Vec<HunkLine<'a>> = Vec::new();
    while !range.fits(lines.len()) || lines.is_empty() && is_half_line(reader) {
        if lines.last().is_some_and(|line| !line.has_newline) {
            return Err(reader.error(PatchErrorKind::NoNewline));
        }
        let line = reader.current().and_then(|line| parse_line(line, changed));
        let line = line.ok_or_else(|| reader.error(PatchErrorKind::HunkTooShort))?;
        lines.push(line);
        reader.advance();
        if let Some(last) = lines.last_mut().filter(|_| reader.starts_with(b"\\")) {
            last.has_newline = false;
            reader.advance();
        }
    }
    Ok(lines)
}

/// Returns whether the current line has a mark and a blank.
fn is_half_line(reader: &Reader<'_>) -> bool {
    let line = reader.current().map_or(&b""[..], |line| line.text);
    matches!(line, [b' ' | b'!' | b'+' | b'-', b' ' | b'\t', ..])
}

fn parse_line<'a>(line: TextLine<'a>, changed: HunkLineKind) -> Option<HunkLine<'a>> {
    let mark = match changed {
        HunkLineKind::Removed => b'-',
        _ => b'+',
    };
    let (kind, text) = match line.text {
        // Programs that trim lines remove the blanks of an empty line, and
        // those that fold blanks leave one of two.
        [] | b"\r" => (HunkLineKind::Context, line.text),
        [b' ', b' ', text @ ..] | [b' ', text @ ..] => (HunkLineKind::Context, text),
        [first, b' ' | b'\t', text @ ..] if *first == b'!' || *first == mark => (changed, text),
        [first] | [first, b'\r'] if *first == b'!' || *first == mark => {
            (changed, line.text.get(1..)?)
        }
        _ => return None,
    };
    Some(HunkLine {
        kind,
        text,
        has_newline: true,
    })
}

fn context_lines<'a>(lines: &[HunkLine<'a>]) -> Vec<HunkLine<'a>> {
    let lines = lines.iter().copied();
    lines
        .filter(|line| line.kind == HunkLineKind::Context)
        .collect()
}

/// Merges both halves to the lines of a unified hunk. Returns `None` if they do
/// not have the same context.
fn merge<'a>(old: &[HunkLine<'a>], new: &[HunkLine<'a>]) -> Option<Vec<HunkLine<'a>>> {
    let is_context = |line: &&HunkLine<'a>| line.kind == HunkLineKind::Context;
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    let mut lines = Vec::new();
    loop {
        while let Some(line) = old.next_if(|line| !is_context(line)) {
            lines.push(*line);
        }
        while let Some(line) = new.next_if(|line| !is_context(line)) {
            lines.push(*line);
        }
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => lines.push(*old),
            (None, None) => return Some(lines),
            _ => return None,
        }
    }
}
