//! CRC-32C as ext4 and its journal use it: without the final inversion, so that
//! a checksum can be continued.

/// Initial value of a checksum.
pub(super) const START: u32 = !0;

/// Tables for eight bytes at a time ("slicing-by-8").
const TABLES: [[u32; 256]; 8] = tables();

/// Continues a checksum with more bytes.
#[expect(
    clippy::indexing_slicing,
    reason = "a byte is a place in a table of 256"
)]
pub(super) fn crc32c(sum: u32, bytes: &[u8]) -> u32 {
    let table = |number: usize, byte: u8| TABLES[number][usize::from(byte)];
    let (chunks, rest) = bytes.as_chunks::<8>();
    let sum = chunks.iter().fold(sum, |sum, chunk| {
        let [a, b, c, d, e, f, g, h] = *chunk;
        let [i, j, k, l] = (sum ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        table(7, i)
            ^ table(6, j)
            ^ table(5, k)
            ^ table(4, l)
            ^ table(3, e)
            ^ table(2, f)
            ^ table(1, g)
            ^ table(0, h)
    });
    rest.iter().fold(sum, |sum, byte| {
        let [low, ..] = sum.to_le_bytes();
        table(0, low ^ byte) ^ (sum >> 8)
    })
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

#[expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "computed by the compiler, which would notice"
)]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(sum & 1));
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut number = 1;
    while number < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[number - 1][byte];
            tables[number][byte] = tables[0][(before & 0xff) as usize] ^ (before >> 8);
            byte += 1;
        }
        number += 1;
    }
    tables
}
