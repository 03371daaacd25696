use vmcell_wire::{boot::Boot, boot::BootLink};

use super::hex;

#[test]
fn boot_file() {
    let boot = Boot {
        boot_id: [1; 16],
        reset_key: [3; 16],
        seed: [2; 32],
        wall_time_ns: 300,
        hostname: "cell",
        root_device: "/dev/vda",
        link: BootLink::Serial,
        disk_is_persistent: true,
    };
    let vsock = BootLink::Vsock {
        port: 1024,
        ready_port: 300,
    };
    for (link, expected) in [(BootLink::Serial, "00"), (vsock, "018008ac02")] {
        let boot = Boot { link, ..boot };
        let bytes = boot.encode().unwrap();
        assert_eq!(
            hex(&bytes),
            format!(
                "{}{}{}ac020463656c6c082f6465762f766461{expected}01",
                "01".repeat(16),
                "03".repeat(16),
                "02".repeat(32)
            )
        );
        assert_eq!(Boot::decode(&bytes), Ok(boot));
    }
}
