use super::{
    error::{PatchError, PatchErrorKind},
    line::TextLine,
    reader::Reader,
};

/// The largest accepted line number.
const MAX_LINE_NUMBER: u64 = u32::MAX as u64;

/// One contiguous part of a file that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    pub(super) patch_line: u64,
    pub(super) old: LineRange,
    pub(super) new: LineRange,
    pub(super) lines: Vec<HunkLine<'a>>,
}

/// A range of lines in a hunk header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, counted from 1; for an empty range the line before it.
    pub start: u64,
    /// The number of lines.
    pub count: u64,
}

/// One line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// The kind of line.
    pub kind: HunkLineKind,
    /// The content without the newline.
    pub text: &'a [u8],
    /// Whether it ends with a newline. If not, it is the last line of the file.
    pub has_newline: bool,
}

/// The kind of a [`HunkLine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HunkLineKind {
    /// Must exist, and stays.
    Context,
    /// Must exist, and is removed.
    Removed,
    /// Is added.
    Added,
}

impl<'a> Hunk<'a> {
    /// Returns the line of the patch at which the hunk starts.
    pub fn patch_line(&self) -> u64 {
        self.patch_line
    }

    /// Returns the lines of the old file that it replaces.
    pub fn old_lines(&self) -> LineRange {
        self.old
    }

    /// Returns the lines of the new file that it makes.
    pub fn new_lines(&self) -> LineRange {
        self.new
    }

    /// Returns the lines of the hunk.
    pub fn lines(&self) -> &[HunkLine<'a>] {
        &self.lines
    }

    /// Parses all hunks of a file.
    pub(super) fn parse_all(reader: &mut Reader<'a>) -> Result<Vec<Self>, PatchError> {
        let mut hunks: Vec<Self> = Vec::new();
        while reader.starts_with(b"@@ -") {
            let begin = reader.clone();
            let hunk = Self::parse(reader)?;
            hunk.check_follows(hunks.last())
                .map_err(|kind| begin.error(kind))?;
            hunks.push(hunk);
        }
        let line = reader.current().map_or(&b""[..], |line| line.text);
        // The next line may start another file or a mail signature.
        let is_other = line.starts_with(b"--- ") || line.trim_ascii_end() == b"--";
        if !hunks.is_empty() && !is_other && matches!(line.first(), Some(b' ' | b'+' | b'-')) {
            return Err(reader.error(PatchErrorKind::HunkTooLong));
        }
        Ok(hunks)
    }

    /// Checks that a hunk can follow the one before it.
    pub(super) fn check_follows(&self, last: Option<&Self>) -> Result<(), PatchErrorKind> {
        let Some(last) = last else { return Ok(()) };
        if self.old.first_index() < last.old.end_index() {
            return Err(PatchErrorKind::OutOfOrder);
        }
        if last.lines.iter().any(|line| !line.has_newline) {
            return Err(PatchErrorKind::NoNewline);
        }
        Ok(())
    }

    fn parse(reader: &mut Reader<'a>) -> Result<Self, PatchError> {
        let patch_line = reader.number();
        let header = reader.current().map_or(&b""[..], |line| line.text);
        let (old, new) =
            parse_header(header).ok_or_else(|| reader.error(PatchErrorKind::BadHeader))?;
        if !old.is_possible() || !new.ends_in_range() {
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
        let mut left = LinesLeft {
            old: self.old.count,
            new: self.new.count,
            old_open: true,
            new_open: true,
        };
        while left.old > 0 || left.new > 0 {
            let line = reader
                .current()
                .and_then(HunkLine::parse)
                .ok_or_else(|| reader.error(PatchErrorKind::HunkTooShort))?;
            left.count(line.kind).map_err(|kind| reader.error(kind))?;
            reader.advance();
            self.lines.push(line);
            self.parse_missing_newline(reader, &mut left);
        }
        Ok(())
    }

    /// Parses `\ No newline at end of file`, in any language.
    fn parse_missing_newline(&mut self, reader: &mut Reader<'a>, left: &mut LinesLeft) {
        if !reader.starts_with(b"\\") {
            return;
        }
        if let Some(last) = self.lines.last_mut() {
            last.has_newline = false;
            left.forbid_more(last.kind);
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
            // Programs that trim lines remove the space of an empty context
            // line.
            [] | b"\r" => (HunkLineKind::Context, line.text),
            _ => return None,
        };
        Some(Self {
            kind,
            text,
            // The last line of a patch often lacks its newline. A missing
            // newline of the file always has a line of its own.
            has_newline: true,
        })
    }

    pub(super) fn line(&self) -> TextLine<'a> {
        TextLine {
            text: self.text,
            has_newline: self.has_newline,
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
    pub(super) fn is_possible(self) -> bool {
        // There is no line 0, but lines can be added after it.
        (self.start > 0 || self.count == 0) && self.ends_in_range()
    }

    /// Returns whether the numbers are small enough. New line numbers need not
    /// be right otherwise, because they only state what the old ones imply.
    pub(super) fn ends_in_range(self) -> bool {
        let end = self.start.checked_add(self.count);
        end.is_some_and(|end| end <= MAX_LINE_NUMBER)
    }

    /// Returns the number of lines before the range.
    pub(super) fn first_index(self) -> u64 {
        self.start.saturating_sub(self.count.min(1))
    }

    fn end_index(self) -> u64 {
        self.first_index().saturating_add(self.count)
    }
}

/// The number of lines that a hunk still lacks.
struct LinesLeft {
    old: u64,
    new: u64,
    /// Whether the last line so far has a newline, so that more may follow.
    old_open: bool,
    new_open: bool,
}

impl LinesLeft {
    fn count(&mut self, kind: HunkLineKind) -> Result<(), PatchErrorKind> {
        for (is_counted, left, is_open) in [
            (kind != HunkLineKind::Added, &mut self.old, self.old_open),
            (kind != HunkLineKind::Removed, &mut self.new, self.new_open),
        ] {
            if is_counted {
                *left = left.checked_sub(1).ok_or(PatchErrorKind::HunkTooLong)?;
                if !is_open {
                    return Err(PatchErrorKind::NoNewline);
                }
            }
        }
        Ok(())
    }

    fn forbid_more(&mut self, kind: HunkLineKind) {
        self.old_open &= kind == HunkLineKind::Added;
        self.new_open &= kind == HunkLineKind::Removed;
    }
}

/// Parses `@@ -1,2 +3,4 @@ anything`; `,1` may be missing.
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

/// Parses a number. One that is too large becomes `u64::MAX`.
pub(super) fn parse_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let number = digits.iter().fold(0u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add((digit - b'0').into())
    });
    (!digits.is_empty()).then_some((number, rest))
}
