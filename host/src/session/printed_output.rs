//! What requests say about the outputs of programs, for those who search them for secrets.

use vmcell_wire::{
    Attach, Position, Request,
    service::{LogStart, ReadLog, ServiceRequest},
    terminal::TerminalRequest,
};

use crate::redaction::Thoroughness;

/// Returns how secrets are searched for in the outputs of a stream. `None` if they are not
/// what programs print.
pub(super) fn thoroughness(request: &Request<'_>) -> Option<Thoroughness> {
    match request {
        Request::Start(_) | Request::Attach(_) | Request::Service(ServiceRequest::ReadLog(_)) => {
            Some(Thoroughness::Fast)
        }
        // Who sees a screen does not see what stands between the letters.
        Request::Terminal(TerminalRequest::Attach(_)) => Some(Thoroughness::Thorough),
        _ => None,
    }
}

/// Returns the offset of the first byte of each output that a stream returns. The agent may
/// be asked for [earlier ones](read_earlier).
pub(super) fn first_bytes(request: &Request<'_>) -> [u64; 2] {
    let first = |position: Option<Position>| {
        let offset = position.map(|position| position.offset);
        offset.filter(|it| *it != Position::NOW).unwrap_or_default()
    };
    match request {
        Request::Attach(attach) => [first(attach.stdout), first(attach.stderr)],
        Request::Service(ServiceRequest::ReadLog(ReadLog {
            from: LogStart::Offset(offset),
            ..
        })) => [*offset, 0],
        _ => [0; 2],
    }
}

/// Returns a request that reads outputs from this many bytes earlier on, because a secret
/// may begin there.
pub(super) fn read_earlier(request: Request<'_>, bytes: u64) -> Request<'_> {
    let earlier = |position: Option<Position>| {
        position.map(|position| Position {
            offset: match position.offset {
                Position::NOW => Position::NOW,
                offset => offset.saturating_sub(bytes),
            },
            ..position
        })
    };
    match request {
        Request::Attach(attach) => Request::Attach(Attach {
            stdout: earlier(attach.stdout),
            stderr: earlier(attach.stderr),
            ..attach
        }),
        Request::Service(ServiceRequest::ReadLog(ReadLog {
            from: LogStart::Offset(offset),
            name,
            follow,
            window,
        })) => Request::Service(ServiceRequest::ReadLog(ReadLog {
            from: LogStart::Offset(offset.saturating_sub(bytes)),
            name,
            follow,
            window,
        })),
        _ => request,
    }
}
