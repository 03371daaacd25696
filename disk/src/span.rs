use super::ext4::{Error, Ext4, Inode, Run, RunPlace, Runs};

/// A part of a file that is either all data or all hole. Adjacent runs of the
/// same kind are merged, wherever they are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) is_hole: bool,
}

impl Span {
    fn new(run: &Run) -> Self {
        Self {
            offset: run.offset,
            length: run.length,
            is_hole: matches!(run.place, RunPlace::Hole | RunPlace::Unwritten(_)),
        }
    }
}

/// Maximum number of runs merged into one span, so that a file with very many
/// runs cannot delay the caller.
const MAX_RUNS: usize = 1024;

/// Iterates over the spans of a file, in order and without gaps.
pub(super) struct Spans<'d> {
    runs: Runs<'d>,
    next: Option<Span>,
}

impl<'d> Spans<'d> {
    pub(super) fn new(ext4: &'d Ext4, inode: &Inode) -> Self {
        Self {
            runs: ext4.runs(inode),
            next: None,
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Result<Span, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut span = match self.next.take() {
            Some(span) => span,
            None => match self.runs.next()? {
                Ok(run) => Span::new(&run),
                Err(error) => return Some(Err(error)),
            },
        };
        for _ in 0..MAX_RUNS {
            match self.runs.next() {
                Some(Ok(run)) => {
                    let next = Span::new(&run);
                    if next.is_hole != span.is_hole {
                        self.next = Some(next);
                        break;
                    }
                    span.length = span.length.saturating_add(next.length);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        Some(Ok(span))
    }
}
