use super::{
    file::{FilePatch, FilePatchKind},
    hunk::{Hunk, HunkLine, HunkLineKind},
    line::{Lines, TextLine},
    mismatch::{HunkMismatch, HunkState, Mismatch, MismatchReason, line_number},
    nearest::nearest,
    search::{Anchor, Found, Search},
};

/// How exact a patch must fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// How many lines at the beginning and the end of a hunk's context may
    /// differ, as with `patch --fuzz`. None by default.
    pub fuzz: u32,
}

impl FilePatch<'_> {
    /// Applies the patch to the content of a file, or the target of a symlink.
    /// `None` stands for no file, before and after.
    ///
    /// Each hunk is looked for where its first line says, moved as far as the
    /// hunk before it was; then at the nearest other place. A hunk that has
    /// context, but none behind its changes, fits only the end of the file; one
    /// for the first line that has none before them only its beginning. With
    /// [`ApplyOptions::fuzz`] neither counts, and lines of the context may
    /// differ, but not all.
    ///
    /// # Errors
    ///
    /// If it does not fit. The error tells where it came closest.
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
            (FilePatchKind::Deleted, false) => Err(mismatch(MismatchReason::Remains)),
            _ => Ok(Some(new)),
        }
    }

    fn apply_hunks(
        &self,
        lines: &Lines<'_>,
        options: ApplyOptions,
    ) -> Result<Vec<u8>, MismatchReason> {
        let returns = match lines.get(0) {
            _ if !self.has_returns => Returns::Keep,
            Some(line) if line.text.ends_with(b"\r") => Returns::KeepIfEnded,
            _ => Returns::Remove,
        };
        let mut search = Search::new(lines);
        let mut new = Vec::new();
        let mut done = 0;
        let mut moved: i64 = 0;
        for (index, hunk) in self.hunks.iter().enumerate() {
            let body = Body::new(hunk, returns);
            let told = i64::try_from(hunk.old.first_index()).unwrap_or(i64::MAX);
            let wanted = usize::try_from(told.saturating_add(moved)).unwrap_or(0);
            let place = body
                .locate(&mut search, wanted, done, options.fuzz)
                .map_err(|state| body.mismatch(&mut search, state, index, wanted, done))?;
            new.extend_from_slice(lines.bytes(done..place.at));
            done = place.write(&body, lines, &mut new);
            let begin = place.at.saturating_sub(place.skipped_first);
            moved = i64::try_from(begin)
                .unwrap_or(i64::MAX)
                .saturating_sub(told);
        }
        new.extend_from_slice(lines.bytes(done..lines.len()));
        Ok(new)
    }
}

/// What is done with carriage returns that a patch got on its way.
#[derive(Clone, Copy)]
enum Returns {
    /// It got none.
    Keep,
    /// The file has them too, but for a last line without newline.
    KeepIfEnded,
    /// The file has none.
    Remove,
}

/// The lines of a hunk, as they are compared with the file.
struct Body<'a> {
    hunk: &'a Hunk<'a>,
    lines: Vec<(HunkLineKind, TextLine<'a>)>,
    old: Vec<TextLine<'a>>,
    /// How many lines of context it begins and ends with.
    leading: usize,
    trailing: usize,
}

/// Where a hunk fits.
struct HunkMatch {
    /// The line of the file that is the first of those compared.
    at: usize,
    /// Lines of context that were not compared.
    skipped_first: usize,
    skipped_last: usize,
}

impl<'a> Body<'a> {
    fn new(hunk: &'a Hunk<'a>, returns: Returns) -> Self {
        let line = |hunk_line: &HunkLine<'a>| match returns {
            Returns::Keep => hunk_line.line(),
            Returns::KeepIfEnded if hunk_line.ended => hunk_line.line(),
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
        wanted: usize,
        first: usize,
        fuzz: u32,
    ) -> Result<HunkMatch, HunkState> {
        let context = self.leading.max(self.trailing);
        let fuzz = usize::try_from(fuzz).map_or(context, |fuzz| fuzz.min(context));
        for fuzz in 0..=fuzz {
            // The longer side loses its lines first.
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
            match search.find(pattern, wanted + skipped_first, first, anchor) {
                Found::At(at) if self.ends_well(search.lines(), at + pattern.len()) => {
                    return Ok(HunkMatch {
                        at,
                        skipped_first,
                        skipped_last,
                    });
                }
                Found::TooSlow => return Err(HunkState::TooSlow),
                _ => {}
            }
        }
        Err(HunkState::Differs)
    }

    fn anchor(&self, fuzz: usize) -> Anchor {
        let makes_end = self
            .hunk
            .lines
            .iter()
            .any(|line| line.is_new() && !line.ended);
        let has_context = self.leading > 0 || self.trailing > 0;
        let may_move = fuzz > 0 || !has_context;
        let start = !may_move && self.leading == 0 && self.hunk.old.start <= 1;
        // A line without newline can only be the last.
        let end = !may_move && self.trailing == 0 || makes_end && !self.old.is_empty();
        match (start, end) {
            (true, true) => Anchor::Both,
            (true, false) => Anchor::Start,
            (false, true) => Anchor::End,
            (false, false) => Anchor::Anywhere,
        }
    }

    /// Whether no two lines of the new file would run into one.
    fn ends_well(&self, lines: &Lines<'_>, end: usize) -> bool {
        let at_end = end == lines.len();
        let added = self
            .lines
            .iter()
            .rev()
            .find(|(kind, _)| *kind != HunkLineKind::Removed);
        match added {
            Some((_, line)) if !line.ended => at_end && (lines.is_ended() || !self.old.is_empty()),
            Some(_) if at_end && self.old.is_empty() => lines.is_ended(),
            _ => true,
        }
    }

    fn mismatch(
        &self,
        search: &mut Search<'_>,
        state: HunkState,
        index: usize,
        wanted: usize,
        first: usize,
    ) -> MismatchReason {
        let nearest = nearest(search, &self.old, wanted, self.anchor(0));
        let state = match state {
            HunkState::Differs if self.is_applied(search, wanted, first) => HunkState::Applied,
            HunkState::Differs if self.differs_in_ends(search.lines(), wanted) => {
                HunkState::LineEnds
            }
            state => state,
        };
        MismatchReason::Hunk(Box::new(HunkMismatch {
            hunk: index + 1,
            patch_line: self.hunk.patch_line,
            file_line: line_number(wanted),
            state,
            nearest,
        }))
    }

    fn is_applied(&self, search: &mut Search<'_>, wanted: usize, first: usize) -> bool {
        let new: Vec<_> = self
            .lines
            .iter()
            .filter(|(kind, _)| *kind != HunkLineKind::Removed)
            .map(|(_, line)| *line)
            .collect();
        !new.is_empty()
            && matches!(
                search.find(&new, wanted, first, Anchor::Anywhere),
                Found::At(_)
            )
    }

    fn differs_in_ends(&self, lines: &Lines<'_>, wanted: usize) -> bool {
        let found = (wanted..).map_while(|index| lines.get(index));
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
    /// Writes the new lines of the hunk, and tells which line of the file is
    /// behind it.
    fn write(&self, body: &Body<'_>, lines: &Lines<'_>, new: &mut Vec<u8>) -> usize {
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
                    if line.ended {
                        new.push(b'\n');
                    }
                }
            }
        }
        next
    }
}
