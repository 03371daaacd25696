use super::{
    file::{FilePatch, FilePatchKind},
    hunk::{Hunk, HunkLine, HunkLineKind},
    line::{Lines, TextLine},
    mismatch::{HunkMismatch, Mismatch, MismatchKind, MismatchReason, line_number},
    nearest::nearest,
    search::{Anchor, Search, SearchResult},
};

/// How exactly a patch must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// How many lines at the start and the end of a hunk's context may differ,
    /// as with `patch --fuzz`. The default is 0.
    pub fuzz: u32,
}

impl FilePatch<'_> {
    /// Applies the patch to the content of a file, or to the target of a
    /// symlink. `None` means that the file does not exist, before and after.
    ///
    /// Looks for each hunk at its stated line, shifted by the offset of the
    /// hunk before it, then at the nearest other place. A hunk with context,
    /// but without trailing context, matches only at the end of the file. A
    /// hunk for line 1 without leading context matches only at the start. With
    /// [`ApplyOptions::fuzz`] these two rules do not apply, and some but not
    /// all context lines may differ.
    ///
    /// # Errors
    ///
    /// If the patch does not match. The error contains the closest match.
    pub fn apply(
        &self,
        old: Option<&[u8]>,
        options: ApplyOptions,
    ) -> Result<Option<Vec<u8>>, Mismatch> {
        let mismatch = |reason| Mismatch::new(self.path(), reason);
        let old = match (self.kind, old) {
            (FilePatchKind::Added, Some(_)) => return Err(mismatch(MismatchReason::Exists)),
            (FilePatchKind::Added, None) => b"",
            (_, Some(old)) => old,
            (_, None) if self.may_create => b"",
            (_, None) => return Err(mismatch(MismatchReason::Missing)),
        };
        let lines = Lines::split(old).ok_or_else(|| mismatch(MismatchReason::TooLarge))?;
        let new = self.apply_hunks(&lines, options).map_err(mismatch)?;
        match (self.kind, new.is_empty()) {
            (FilePatchKind::Deleted, true) => Ok(None),
            (FilePatchKind::Deleted, false) => Err(mismatch(MismatchReason::ExtraContent)),
            _ => Ok(Some(new)),
        }
    }

    fn apply_hunks(
        &self,
        lines: &Lines<'_>,
        options: ApplyOptions,
    ) -> Result<Vec<u8>, MismatchReason> {
        let carriage_returns = match lines.get(0) {
            _ if !self.has_carriage_returns => CarriageReturns::Keep,
            Some(line) if line.text.ends_with(b"\r") => CarriageReturns::KeepBeforeNewline,
            _ => CarriageReturns::Remove,
        };
        let mut search = Search::new(lines);
        let mut new = Vec::new();
        let mut done = 0;
        let mut offset: i64 = 0;
        for (index, hunk) in self.hunks.iter().enumerate() {
            let body = HunkBody::new(hunk, carriage_returns);
            let stated = i64::try_from(hunk.old.first_index()).unwrap_or(i64::MAX);
            let expected = usize::try_from(stated.saturating_add(offset)).unwrap_or(0);
            let found = body
                .locate(&mut search, expected, done, options.fuzz)
                .map_err(|kind| body.mismatch(&mut search, kind, index, expected, done))?;
            new.extend_from_slice(lines.bytes(done..found.at));
            done = found.write(&body, lines, &mut new);
            let begin = found.at.saturating_sub(found.skipped_first);
            offset = i64::try_from(begin)
                .unwrap_or(i64::MAX)
                .saturating_sub(stated);
        }
        new.extend_from_slice(lines.bytes(done..lines.len()));
        Ok(new)
    }
}

/// How to treat carriage returns that were added to the patch, for example by a
/// mail program.
#[derive(Clone, Copy)]
enum CarriageReturns {
    /// None were added.
    Keep,
    /// The file has them too, except on a last line without newline.
    KeepBeforeNewline,
    /// The file has none, so remove them from the hunk.
    Remove,
}

/// A hunk with added carriage returns removed, as it is compared with the file.
struct HunkBody<'a> {
    hunk: &'a Hunk<'a>,
    lines: Vec<(HunkLineKind, TextLine<'a>)>,
    old: Vec<TextLine<'a>>,
    /// The number of context lines at its start and its end.
    leading: usize,
    trailing: usize,
}

/// Where a hunk matches.
struct HunkMatch {
    /// The index of the first compared line in the file.
    at: usize,
    /// The number of context lines that fuzz skipped.
    skipped_first: usize,
    skipped_last: usize,
}

impl<'a> HunkBody<'a> {
    fn new(hunk: &'a Hunk<'a>, carriage_returns: CarriageReturns) -> Self {
        let line = |hunk_line: &HunkLine<'a>| match carriage_returns {
            CarriageReturns::Keep => hunk_line.line(),
            CarriageReturns::KeepBeforeNewline if hunk_line.has_newline => hunk_line.line(),
            _ => hunk_line.line().without_carriage_return(),
        };
        let lines: Vec<_> = hunk
            .lines
            .iter()
            .map(|hunk_line| (hunk_line.kind, line(hunk_line)))
            .collect();
        let is_context = |line: &&HunkLine<'_>| line.kind == HunkLineKind::Context;
        Self {
            hunk,
            lines,
            old: hunk
                .lines
                .iter()
                .filter(|line| line.is_old())
                .map(line)
                .collect(),
            leading: hunk.lines.iter().take_while(is_context).count(),
            trailing: hunk.lines.iter().rev().take_while(is_context).count(),
        }
    }

    fn locate(
        &self,
        search: &mut Search<'_>,
        expected: usize,
        earliest: usize,
        fuzz: u32,
    ) -> Result<HunkMatch, MismatchKind> {
        let context = self.leading.max(self.trailing);
        let fuzz = usize::try_from(fuzz).map_or(context, |fuzz| fuzz.min(context));
        for fuzz in 0..=fuzz {
            // Fuzz first skips lines of the longer context.
            let skip = |length: usize| (fuzz + length).saturating_sub(context).min(length);
            let (skipped_first, skipped_last) = (skip(self.leading), skip(self.trailing));
            let compared = self.old.len().saturating_sub(skipped_last);
            let Some(pattern) = self.old.get(skipped_first..compared) else {
                break;
            };
            if fuzz > 0 && pattern.is_empty() {
                break;
            }
            let anchor = self.anchor(fuzz);
            match search.find(pattern, expected + skipped_first, earliest, anchor) {
                SearchResult::At(at)
                    if self.keeps_lines_apart(search.lines(), at + pattern.len()) =>
                {
                    return Ok(HunkMatch {
                        at,
                        skipped_first,
                        skipped_last,
                    });
                }
                SearchResult::LimitReached => return Err(MismatchKind::TooSlow),
                _ => {}
            }
        }
        Err(MismatchKind::Differs)
    }

    fn anchor(&self, fuzz: usize) -> Anchor {
        let ends_file = self
            .hunk
            .lines
            .iter()
            .any(|line| line.is_new() && !line.has_newline);
        let has_context = self.leading > 0 || self.trailing > 0;
        let may_move = fuzz > 0 || !has_context;
        let start = !may_move && self.leading == 0 && self.hunk.old.start <= 1;
        // A line without newline must be the last one.
        let end = !may_move && self.trailing == 0 || ends_file && !self.old.is_empty();
        match (start, end) {
            (true, true) => Anchor::Both,
            (true, false) => Anchor::Start,
            (false, true) => Anchor::End,
            (false, false) => Anchor::Anywhere,
        }
    }

    /// Returns whether the hunk would not join two lines of the new file.
    fn keeps_lines_apart(&self, lines: &Lines<'_>, end: usize) -> bool {
        let at_end = end == lines.len();
        let added = self
            .lines
            .iter()
            .rev()
            .find(|(kind, _)| *kind != HunkLineKind::Removed);
        match added {
            Some((_, line)) if !line.has_newline => {
                at_end && (lines.ends_with_newline() || !self.old.is_empty())
            }
            Some(_) if at_end && self.old.is_empty() => lines.ends_with_newline(),
            _ => true,
        }
    }

    fn mismatch(
        &self,
        search: &mut Search<'_>,
        kind: MismatchKind,
        index: usize,
        expected: usize,
        earliest: usize,
    ) -> MismatchReason {
        let nearest = nearest(search, &self.old, expected, self.anchor(0));
        let kind = match kind {
            MismatchKind::Differs if self.is_applied(search, expected, earliest) => {
                MismatchKind::Applied
            }
            MismatchKind::Differs if self.differs_in_line_endings(search.lines(), expected) => {
                MismatchKind::LineEndings
            }
            kind => kind,
        };
        MismatchReason::Hunk(Box::new(HunkMismatch {
            hunk: index + 1,
            patch_line: self.hunk.patch_line,
            file_line: line_number(expected),
            kind,
            nearest,
        }))
    }

    fn is_applied(&self, search: &mut Search<'_>, expected: usize, earliest: usize) -> bool {
        let new: Vec<_> = self
            .lines
            .iter()
            .filter(|(kind, _)| *kind != HunkLineKind::Removed)
            .map(|(_, line)| *line)
            .collect();
        !new.is_empty()
            && matches!(
                search.find(&new, expected, earliest, Anchor::Anywhere),
                SearchResult::At(_)
            )
    }

    fn differs_in_line_endings(&self, lines: &Lines<'_>, expected: usize) -> bool {
        let found = (expected..).map_while(|index| lines.get(index));
        let pairs: Vec<_> = self.old.iter().copied().zip(found).collect();
        let has_same_text = |(line, found): &(TextLine<'_>, TextLine<'_>)| {
            line.without_carriage_return().text == found.without_carriage_return().text
        };
        pairs.len() == self.old.len()
            && pairs.iter().all(has_same_text)
            && pairs.iter().any(|(line, found)| line != found)
    }
}

impl HunkMatch {
    /// Writes the new lines of the hunk. Returns the index of the line after
    /// it.
    fn write(&self, body: &HunkBody<'_>, lines: &Lines<'_>, new: &mut Vec<u8>) -> usize {
        let mut next = self.at;
        let compared = body.lines.len().saturating_sub(self.skipped_last);
        let changes = body.lines.get(self.skipped_first..compared);
        for (kind, line) in changes.unwrap_or_default() {
            match kind {
                HunkLineKind::Context => {
                    new.extend_from_slice(lines.bytes(next..next + 1));
                    next += 1;
                }
                HunkLineKind::Removed => next += 1,
                HunkLineKind::Added => {
                    new.extend_from_slice(line.text);
                    if line.has_newline {
                        new.push(b'\n');
                    }
                }
            }
        }
        next
    }
}
