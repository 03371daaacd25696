use vmcell_wire::{Capabilities, Outcome, Position, Request, Resume, Selector};

use super::{close, open};

#[test]
fn requests() {
    assert_eq!(open(Request::Ping), "010000000c0b0a0200");
    assert_eq!(
        open(Request::PowerOff { grace_ms: 300 }),
        "030000000c0b0a0202ac02"
    );
    assert_eq!(
        open(Request::Resume(Resume {
            ticket: 300,
            stdout: Position {
                offset: 128,
                window: 65536
            },
            stderr: Position {
                offset: 0,
                window: 1
            },
        })),
        concat!("0a0000000c0b0a02", "03", "ac02", "8001808004", "0001")
    );
    assert_eq!(
        open(Request::Signal {
            process: Selector::Pid(300),
            signal: 15
        }),
        concat!("050000000c0b0a02", "05", "01ac02", "0f")
    );
    assert_eq!(
        open(Request::Kill {
            process: Selector::Id(5)
        }),
        concat!("030000000c0b0a02", "06", "0005")
    );
    assert_eq!(
        open(Request::Detach {
            process: Selector::Tag("job")
        }),
        concat!("060000000c0b0a02", "07", "02036a6f62")
    );
    assert_eq!(
        open(Request::Forget {
            process: Selector::Tag("job")
        }),
        concat!("060000000c0b0a02", "08", "02036a6f62")
    );
    assert_eq!(
        open(Request::List { after: 300 }),
        concat!("030000000c0b0a02", "09", "ac02")
    );
    assert_eq!(
        open(Request::ListTrees { after: 300 }),
        concat!("030000000c0b0a02", "0f", "ac02")
    );
}

#[test]
fn the_clock() {
    let set = Request::SetClock { wall_time_ns: 300 };
    assert_eq!(open(set), "030000000c0b0a020eac02");
    assert_eq!(Capabilities::CLOCK.bits(), 0x40);
}

#[test]
fn the_number_of_processes() {
    assert_eq!(open(Request::CountProcesses), "010000000c0b0a0214");
    assert_eq!(
        close(Outcome::Processes { count: 300 }),
        concat!("030000000c0b0a04", "0b", "ac02")
    );
    assert_eq!(Capabilities::PROCESS_COUNT.bits(), 0x1000);
}
