use super::{
    error::{PatchError, PatchErrorKind},
    line::TextLine,
    reader::Reader,
};

/// No file has more lines.
const MAX_LINE_NUMBER: u64 = u32::MAX as u64;

/// One place of a file that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    pub(super) patch_line: u64,
    pub(super) old: LineRange,
    pub(super) new: LineRange,
    pub(super) lines: Vec<HunkLine<'a>>,
}

/// Lines of a file, as a hunk's first line tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, from 1; or the one before, if there are no lines.
    pub start: u64,
    /// How many lines.
    pub count: u64,
}

/// One line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// What the patch does with the line.
    pub kind: HunkLineKind,
    /// What is in it, without the newline.
    pub text: &'a [u8],
    /// Whether a newline ends it. If not, the file ends with it.
    pub ended: bool,
}

/// What a patch does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HunkLineKind {
    /// It must be there, and stays.
    Context,
    /// It must be there, and is taken out.
    Removed,
    /// It is put in.
    Added,
}

impl<'a> Hunk<'a> {
    /// The line of the patch with which the hunk begins.
    pub fn patch_line(&self) -> u64 {
        self.patch_line
    }

    /// The lines of the old file that it is about.
    pub fn old_lines(&self) -> LineRange {
        self.old
    }

    /// The lines of the new file that come of it.
    pub fn new_lines(&self) -> LineRange {
        self.new
    }

    /// The lines of the hunk.
    pub fn lines(&self) -> &[HunkLine<'a>] {
        &self.lines
    }

    /// Reads all hunks of a file.
    pub(super) fn parse_all(reader: &mut Reader<'a>) -> Result<Vec<Self>, PatchError> {
        let mut hunks: Vec<Self> = Vec::new();
        while reader.at(b"@@ -") {
            let begin = reader.clone();
            let hunk = Self::parse(reader)?;
            if let Some(last) = hunks.last() {
                if hunk.old.first_index() < last.old.end_index() {
                    return Err(begin.error(PatchErrorKind::OutOfOrder));
                }
                if last.lines.iter().any(|line| !line.ended) {
                    return Err(begin.error(PatchErrorKind::NewlineMissing));
                }
            }
            hunks.push(hunk);
        }
        let line = reader.current().map_or(&b""[..], |line| line.text);
        // What follows may be another file, or the signature of a mail.
        let is_other = line.starts_with(b"--- ") || line.trim_ascii_end() == b"--";
        if !hunks.is_empty() && !is_other && matches!(line.first(), Some(b' ' | b'+' | b'-')) {
            return Err(reader.error(PatchErrorKind::HunkTooLong));
        }
        Ok(hunks)
    }

    fn parse(reader: &mut Reader<'a>) -> Result<Self, PatchError> {
        let patch_line = reader.number();
        let header = reader.current().map_or(&b""[..], |line| line.text);
        let (old, new) =
            parse_header(header).ok_or_else(|| reader.error(PatchErrorKind::BadHunk))?;
        if !old.is_possible() || !new.is_possible() {
            return Err(reader.error(PatchErrorKind::BadRange));
        }
        reader.advance();
        let mut hunk = Self {
            patch_line,
            old,
            new,
            lines: Vec::new(),
        };
        hunk.parse_lines(reader)?;
        Ok(hunk)
    }

    fn parse_lines(&mut self, reader: &mut Reader<'a>) -> Result<(), PatchError> {
        let mut sides = Sides {
            old: self.old.count,
            new: self.new.count,
            old_ended: true,
            new_ended: true,
        };
        while sides.old > 0 || sides.new > 0 {
            let line = reader
                .current()
                .and_then(HunkLine::parse)
                .ok_or_else(|| reader.error(PatchErrorKind::HunkTooShort))?;
            sides.count(line.kind).map_err(|kind| reader.error(kind))?;
            reader.advance();
            self.lines.push(line);
            self.parse_missing_newline(reader, &mut sides);
        }
        Ok(())
    }

    /// `\ No newline at end of file`, in whatever language.
    fn parse_missing_newline(&mut self, reader: &mut Reader<'a>, sides: &mut Sides) {
        if !reader.at(b"\\") {
            return;
        }
        if let Some(last) = self.lines.last_mut() {
            last.ended = false;
            sides.end(last.kind);
        }
        reader.advance();
    }
}

impl<'a> HunkLine<'a> {
    fn parse(line: TextLine<'a>) -> Option<Self> {
        let (kind, text) = match line.text {
            [b' ', text @ ..] => (HunkLineKind::Context, text),
            [b'-', text @ ..] => (HunkLineKind::Removed, text),
            [b'+', text @ ..] => (HunkLineKind::Added, text),
            // Programs that trim lines take the blank of an empty one.
            [] | b"\r" => (HunkLineKind::Context, line.text),
            _ => return None,
        };
        Some(Self {
            kind,
            text,
            // The last line of a patch often lost its newline on the way. That
            // a file has none is always said.
            ended: true,
        })
    }

    pub(super) fn line(&self) -> TextLine<'a> {
        TextLine {
            text: self.text,
            ended: self.ended,
        }
    }

    pub(super) fn is_old(&self) -> bool {
        self.kind != HunkLineKind::Added
    }

    pub(super) fn is_new(&self) -> bool {
        self.kind != HunkLineKind::Removed
    }
}

impl LineRange {
    fn is_possible(self) -> bool {
        // There is no line 0, but lines can be put behind it.
        (self.start > 0 || self.count == 0)
            && self
                .start
                .checked_add(self.count)
                .is_some_and(|end| end <= MAX_LINE_NUMBER)
    }

    /// How many lines are before it.
    pub(super) fn first_index(self) -> u64 {
        self.start.saturating_sub(self.count.min(1))
    }

    fn end_index(self) -> u64 {
        self.first_index().saturating_add(self.count)
    }
}

/// What is still to come of a hunk.
struct Sides {
    old: u64,
    new: u64,
    /// Whether more lines can come.
    old_ended: bool,
    new_ended: bool,
}

impl Sides {
    fn count(&mut self, kind: HunkLineKind) -> Result<(), PatchErrorKind> {
        for (concerned, left, ended) in [
            (kind != HunkLineKind::Added, &mut self.old, self.old_ended),
            (kind != HunkLineKind::Removed, &mut self.new, self.new_ended),
        ] {
            if concerned {
                *left = left.checked_sub(1).ok_or(PatchErrorKind::HunkTooLong)?;
                if !ended {
                    return Err(PatchErrorKind::NewlineMissing);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, kind: HunkLineKind) {
        self.old_ended &= kind == HunkLineKind::Added;
        self.new_ended &= kind == HunkLineKind::Removed;
    }
}

/// `@@ -1,2 +3,4 @@ anything`, with `,1` left out if there is one line.
fn parse_header(line: &[u8]) -> Option<(LineRange, LineRange)> {
    let (old, rest) = parse_range(line.strip_prefix(b"@@ -")?)?;
    let (new, rest) = parse_range(rest.strip_prefix(b" +")?)?;
    rest.starts_with(b" @@").then_some((old, new))
}

fn parse_range(text: &[u8]) -> Option<(LineRange, &[u8])> {
    let (start, rest) = parse_number(text)?;
    let (count, rest) = match rest.strip_prefix(b",") {
        Some(rest) => parse_number(rest)?,
        None => (1, rest),
    };
    Some((LineRange { start, count }, rest))
}

/// A number too large to be one is the largest.
fn parse_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let number = digits.iter().fold(0u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add((digit - b'0').into())
    });
    (!digits.is_empty()).then_some((number, rest))
}
