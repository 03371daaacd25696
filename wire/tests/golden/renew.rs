use vmcell_wire::{Capabilities, Renew, Request};

use super::open;

#[test]
fn snapshots() {
    assert_eq!(open(Request::Freeze), "010000000c0b0a0210");
    assert_eq!(open(Request::Thaw), "010000000c0b0a0211");
    let renew = Renew {
        boot_id: [1; 16],
        reset_key: [3; 16],
        seed: [2; 32],
        wall_time_ns: 300,
        hostname: "cell",
    };
    assert_eq!(
        open(Request::Renew(renew)),
        format!(
            "480000000c0b0a0212{}{}{}ac020463656c6c",
            "01".repeat(16),
            "03".repeat(16),
            "02".repeat(32)
        )
    );
    assert_eq!(Capabilities::SNAPSHOTS.bits(), 0x400);
}

#[test]
fn the_secrets_of_a_new_identity_are_not_printed() {
    let renew = Renew {
        boot_id: [1; 16],
        reset_key: [113; 16],
        seed: [114; 32],
        wall_time_ns: 5,
        hostname: "cell",
    };
    let printed = format!("{:?}", Request::Renew(renew));
    assert!(printed.contains("cell"), "{printed}");
    assert!(!printed.contains("113") && !printed.contains("114"));
}
