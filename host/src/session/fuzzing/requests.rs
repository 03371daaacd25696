use vmcell_wire::{
    Attach, CgroupLimits, PackedStrings, Position, ProcessMode, Request, Rlimits, Selector, Start,
    Stdin,
    files::{FileOperation, FileRequest},
    service::{LogStart, ReadLog, ServiceRequest},
};

use crate::session::WINDOW;

/// Returns a request of each kind that has a state machine of its own.
pub(super) fn numbered(number: u8) -> Request<'static> {
    let from_the_start = Position {
        offset: 0,
        window: WINDOW,
    };
    match number % 9 {
        0 => Request::Start(Start {
            ticket: 4711,
            tag: "",
            argv: PackedStrings::default(),
            env: PackedStrings::default(),
            default_env: true,
            cwd: b"",
            make_cwd: false,
            user: "",
            umask: None,
            nice: 0,
            rlimits: Rlimits::default(),
            stdin: Stdin::Stream,
            mode: ProcessMode::Foreground,
            timeout_ms: 0,
            keep: 0,
            limits: CgroupLimits::default(),
        }),
        1 => Request::Attach(Attach {
            process: Selector::Pid(9),
            stdout: Some(from_the_start),
            stderr: Some(from_the_start),
            stdin: true,
        }),
        2 => Request::List { after: 0 },
        3 => Request::Service(ServiceRequest::ReadLog(ReadLog {
            name: "web",
            from: LogStart::Lines(10),
            follow: true,
            window: WINDOW,
        })),
        4 => Request::Dial { port: 80 },
        5 => Request::Files(FileRequest {
            root: b"/",
            operation: FileOperation::Read {
                path: b"a",
                offset: 0,
                length: 1 << 40,
            },
        }),
        6 => Request::Service(ServiceRequest::List { after: "" }),
        7 => Request::Forget {
            process: Selector::Pid(9),
        },
        _ => Request::ListTrees { after: 0 },
    }
}
