use tar::GnuSparseHeader;

use crate::{ArchiveError, number::unsigned};

/// The maximum number of parts of a sparse file.
pub(crate) const MAX_PARTS: u64 = 1 << 20;

/// The map of a sparse file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseMap {
    /// Offsets and lengths of the data: sorted, and each one not empty.
    pub parts: Vec<(u64, u64)>,
    /// The length of the file, at least the end of the last part.
    pub length: u64,
}

impl SparseMap {
    /// Checks that the parts are sorted and within the file, and that their sum
    /// is the stored size.
    pub(crate) fn new(
        mut parts: Vec<(u64, u64)>,
        length: u64,
        stored: u64,
    ) -> Result<Self, ArchiveError> {
        let (mut end, mut sum) = (0, 0_u64);
        for (offset, part) in &parts {
            if *offset < end {
                return Err(ArchiveError::BadNumber);
            }
            end = offset.checked_add(*part).ok_or(ArchiveError::BadNumber)?;
            // No part overlaps another, so the sum is no larger than the end.
            sum += part;
        }
        if end > length || sum != stored {
            return Err(ArchiveError::BadNumber);
        }
        parts.retain(|(_, part)| *part > 0);
        Ok(Self { parts, length })
    }
}

/// Adds the parts in a header of GNU's old format, up to the first unused one.
pub(crate) fn add_gnu_parts(
    parts: &mut Vec<(u64, u64)>,
    headers: &[GnuSparseHeader],
) -> Result<(), ArchiveError> {
    for part in headers.iter().take_while(|part| part.offset[0] != 0) {
        parts.push((unsigned(&part.offset)?, unsigned(&part.numbytes)?));
    }
    Ok(())
}
