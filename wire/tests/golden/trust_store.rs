use vmcell_wire::{Capabilities, Request, TrustStore};

use super::{open, packed};

#[test]
fn the_trust_store() {
    let mounts = packed(&[b"/a", b"/b"]);
    let env = packed(&[b"A=b"]);
    let store = TrustStore {
        mounts: mounts.as_packed(),
        env: env.as_packed(),
    };
    assert_eq!(
        open(Request::SetTrustStore(store)),
        concat!("0d0000000c0b0a02", "15", "062f61002f6200", "04413d6200")
    );
    assert_eq!(Capabilities::TRUST_STORE.bits(), 0x4000);
}
