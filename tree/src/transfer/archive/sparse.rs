use super::ArchiveProblem;

/// The maximum number of parts of a sparse file.
pub(super) const MAX_PARTS: usize = 1 << 20;

/// Offsets and lengths of the data.
pub(super) type Parts = Vec<(u64, u64)>;

/// The map of a sparse file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SparseMap {
    /// Sorted and not empty.
    pub(super) parts: Parts,
    /// The length of the file.
    pub(super) length: u64,
}

impl SparseMap {
    /// Checks that the parts are sorted and within the file, and that their sum
    /// is the stored size.
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
