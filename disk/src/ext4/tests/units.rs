//! Unit tests of small parts.

use super::super::{
    acl,
    checksum::{START, crc32c, crc32c_without},
    entry,
    fields::Fields,
};
use super::*;

#[test]
fn the_checksum_is_the_one_of_its_specification() {
    // The check value that catalogues give for CRC-32C.
    assert_eq!(!crc32c(START, b"123456789"), 0xe306_9283);
    let bytes = sample::random_bytes(1000, 1);
    for split in [0, 1, 7, 8, 9, 500, 1000] {
        let (first, second) = bytes.split_at(split);
        assert_eq!(crc32c(crc32c(7, first), second), crc32c(7, &bytes));
    }
    let mut zeroed = bytes.clone();
    zeroed[100..104].fill(0);
    assert_eq!(crc32c_without(3, &bytes, 100, 4), crc32c(3, &zeroed));
    assert_eq!(crc32c_without(3, &bytes, 2000, 4), crc32c(3, &bytes));
}

#[test]
fn times_reach_from_1901_to_2446() {
    let time = |seconds: i32, extra| Timestamp::of_inode(seconds.cast_unsigned(), extra);
    assert_eq!(time(-1, 0).seconds, -1);
    assert_eq!(time(i32::MIN, 0).seconds, -2_147_483_648);
    assert_eq!(time(i32::MIN, 1).seconds, 2_147_483_648);
    assert_eq!(time(i32::MAX, 3).seconds, 15_032_385_535);
    assert_eq!(time(0, 999_999_999 << 2).nanoseconds, 999_999_999);
    assert_eq!(time(0, u32::MAX).nanoseconds, 999_999_999);
}

#[test]
fn fields_beyond_the_end_are_zero() {
    let fields = Fields(&[1, 2, 3, 4, 5]);
    assert_eq!(fields.u32(1), 0x0504_0302);
    assert_eq!((fields.u32(2), fields.u16(4), fields.u8(5)), (0, 0, 0));
    assert_eq!(fields.u64(usize::MAX), 0);
    assert_eq!(fields.bytes(1, usize::MAX), None);
}

#[test]
fn a_broken_access_control_list_is_none() {
    for bytes in [
        &[][..],
        &[2, 0, 0, 0],
        &[1, 0, 0, 0, 1],
        &[1, 0, 0, 0, 2, 0, 7, 0, 1],
    ] {
        assert_eq!(acl::from_disk(bytes), None);
    }
    assert_eq!(acl::from_disk(&[1, 0, 0, 0]), Some(vec![2, 0, 0, 0]));
}

#[test]
fn any_encrypted_name_becomes_one_that_a_file_can_have() {
    assert_eq!(entry::base64_name(b"\xff\xfe\xfd\xfc"), b"__79_A");
    assert_eq!(entry::base64_name(&[0; 255]).len(), 252);
    assert_eq!(entry::base64_name(&[0; 189]), b"A".repeat(252));
    // Long names with the same start stay distinct.
    let mut other = [0; 255];
    other[254] = 1;
    assert_ne!(entry::base64_name(&[0; 255]), entry::base64_name(&other));
}

#[test]
fn damage_is_told_in_words() {
    let damage = Damage::new(Structure::BlockMap, DamageKind::Block(99))
        .of(12)
        .at(7);
    assert_eq!(
        damage.to_string(),
        "the block map of inode 12 in block 7 is damaged: it points to block 99, which does not exist"
    );
}
