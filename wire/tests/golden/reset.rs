use vmcell_wire::reset::ResetKey;

use super::hex;

#[test]
fn reset() {
    let key = ResetKey::new([0x11, 1, 2, 0x11, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(
        hex(&key.reset([7; 16])),
        concat!(
            "110102ee0405060708090a0b0c0d0e0f", // no second 11
            "07070707070707070707070707070707",
        )
    );
}
