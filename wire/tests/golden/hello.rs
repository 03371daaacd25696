use vmcell_wire::{Capabilities, Hello, encode};

use super::frame;

#[test]
fn hello() {
    let hello = Hello {
        capabilities: Capabilities::PROCESSES | Capabilities::POWER_OFF,
        ..Hello::new("test", 65536, [7; 16])
    };
    let text = frame(|out, _| encode::hello(out, &hello).unwrap());
    assert_eq!(
        text,
        concat!(
            "1e000000",
            "000000",
            "01", // header
            "766d6331",
            "01",
            "0474657374",
            "03",
            "808004", // magic, generation, build, ...
            "07070707070707070707070707070707",
        )
    );
}
