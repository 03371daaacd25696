//! CRC-32C as ext4 and its journal use it: without the final inversion, so that
//! a checksum can be continued.

/// Initial value of a checksum.
pub(super) const START: u32 = !0;

/// Continues a checksum with more bytes.
pub(super) fn crc32c(sum: u32, bytes: &[u8]) -> u32 {
    // The crate inverts the checksum before and after.
    !crc32c::crc32c_append(!sum, bytes)
}

/// Continues a checksum with bytes in which one field, the checksum itself,
/// counts as zeros.
pub(super) fn crc32c_without(sum: u32, bytes: &[u8], at: usize, length: usize) -> u32 {
    let (before, rest) = bytes.split_at(at.min(bytes.len()));
    let (field, after) = rest.split_at(length.min(rest.len()));
    let mut sum = crc32c(sum, before);
    for _ in field {
        sum = crc32c(sum, &[0]);
    }
    crc32c(sum, after)
}
