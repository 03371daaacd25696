use vmcell_wire::pattern::{Filter, Glob, PatternError, Selection};

use super::DiskError;
use vmcell_tree::FilterLines;

/// Selects entries by glob and by include and exclude lines, with the same
/// rules as for the files of a guest.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryFilter {
    glob: Option<Glob>,
    filter: Filter,
}

impl EntryFilter {
    pub(super) fn new(glob: &[u8], lines: &FilterLines) -> Result<Self, DiskError> {
        let glob = match glob {
            b"" => None,
            glob => Some(Glob::new(glob).map_err(bad_pattern)?),
        };
        Ok(Self {
            glob,
            filter: compile_filter(lines)?,
        })
    }

    pub(super) fn has_glob(&self) -> bool {
        self.glob.is_some()
    }

    pub(super) fn at_root(&self) -> Selection {
        self.filter.select_root()
    }

    pub(super) fn select(&self, parent: Selection, path: &[u8], is_directory: bool) -> Selection {
        self.filter.select_within(parent, path, is_directory)
    }

    pub(super) fn includes(&self, selection: Selection, path: &[u8]) -> bool {
        let matches = |glob: &Glob| glob.matches(path);
        selection == Selection::Include && self.glob.as_ref().is_none_or(matches)
    }

    /// Returns whether an entry that cannot be read is left out, whatever it is:
    /// neither it nor anything that could be below it is selected.
    pub(super) fn leaves_out(&self, parent: Selection, path: &[u8]) -> bool {
        let as_file = self.select(parent, path, false);
        let as_directory = self.select(parent, path, true);
        !self.includes(as_file, path) && !self.descends_into(as_directory, path)
    }

    pub(super) fn descends_into(&self, selection: Selection, path: &[u8]) -> bool {
        let could_match = |glob: &Glob| glob.could_match_below(path);
        selection != Selection::Skip && self.glob.as_ref().is_none_or(could_match)
    }
}

/// Returns whether an entry that cannot be read is left out by include and
/// exclude lines, whatever it is.
pub(super) fn is_left_out(filter: &Filter, parent: Selection, path: &[u8]) -> bool {
    [false, true]
        .into_iter()
        .all(|is_directory| filter.select_within(parent, path, is_directory) == Selection::Skip)
}

pub(super) fn compile_filter(lines: &FilterLines) -> Result<Filter, DiskError> {
    Filter::new(lines.included(), lines.excluded()).map_err(bad_pattern)
}

pub(super) fn bad_pattern(error: PatternError) -> DiskError {
    DiskError::Invalid(error.to_string())
}
