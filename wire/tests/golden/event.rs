use vmcell_wire::{Attached, Event, Output, Position};

use super::event;

#[test]
fn events() {
    assert_eq!(
        event(Event::Started { id: 5, pid: 300 }),
        concat!("040000000c0b0a03", "00", "05", "ac02")
    );
    let attached = Attached {
        id: 5,
        pid: 300,
        stdout: 128,
        stderr: 0,
        stdin: None,
    };
    assert_eq!(
        event(Event::Attached(attached)),
        concat!("080000000c0b0a03", "01", "05", "ac02", "8001", "00", "00")
    );
    let stdin = Position {
        offset: 300,
        window: 65536,
    };
    assert_eq!(
        event(Event::Attached(Attached {
            stdin: Some(stdin),
            ..attached
        })),
        concat!(
            "0d0000000c0b0a03",
            "01",
            "05",
            "ac02",
            "8001",
            "00",
            "01ac02808004"
        )
    );
    assert_eq!(
        event(Event::Gap {
            output: Output::Stdout,
            bytes: 300
        }),
        concat!("040000000c0b0a03", "02", "00", "ac02")
    );
    assert_eq!(
        event(Event::Gap {
            output: Output::Stderr,
            bytes: 1
        }),
        concat!("030000000c0b0a03", "02", "01", "01")
    );
}
