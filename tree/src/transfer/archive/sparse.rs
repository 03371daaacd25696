use super::ArchiveProblem;

/// How many parts a sparse file may have.
pub(super) const MAX_PARTS: usize = 1 << 20;

/// Offsets and lengths of what has bytes.
pub(super) type Parts = Vec<(u64, u64)>;

/// Where a sparse file has bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SparseMap {
    /// In order, none of them empty.
    pub(super) parts: Parts,
    /// How long the file is.
    pub(super) length: u64,
}

impl SparseMap {
    /// Checks that the parts are in order, within the file, and as long
    /// together as what is stored.
    pub(super) fn new(mut parts: Parts, length: u64, stored: u64) -> Result<Self, ArchiveProblem> {
        let (mut end, mut sum) = (0, 0_u64);
        for (offset, part) in &parts {
            if *offset < end {
                return Err(ArchiveProblem::BadNumber);
            }
            end = offset.checked_add(*part).ok_or(ArchiveProblem::BadNumber)?;
            // No part overlaps another, so the sum is no larger than the end.
            sum += part;
        }
        if end > length || sum != stored {
            return Err(ArchiveProblem::BadNumber);
        }
        parts.retain(|(_, part)| *part > 0);
        Ok(Self { parts, length })
    }
}
