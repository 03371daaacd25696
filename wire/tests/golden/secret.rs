use vmcell_wire::{Capabilities, SecretVariable};

use super::hex;

#[test]
fn a_secret_variable() {
    let entry = SecretVariable::mask(b"TOKEN=hunter2", 0x0123_4567_89ab_cdef);
    let (header, masked) = entry.split_at(17);
    assert_eq!(header, b"=0123456789abcdef");
    assert_eq!(hex(masked), "9fc083eff5c5ebc952656a1ef7");
    assert_eq!(Capabilities::SECRETS.bits(), 0x2000);
}
