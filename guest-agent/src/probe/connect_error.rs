use alloc::{format, string::String};

use rustix::io::Errno;

/// Describes the error of a failed attempt.
pub(super) fn describe(errno: Errno) -> String {
    let known = match errno {
        Errno::NOENT | Errno::NOTDIR => "no such file",
        Errno::CONNREFUSED => "connection refused",
        Errno::CONNRESET | Errno::PIPE => "the connection was closed",
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::AGAIN => "the backlog of the socket is full",
        Errno::PROTOTYPE => "not a stream socket",
        Errno::LOOP => "too many symbolic links",
        _ => return format!("errno {}", errno.raw_os_error()),
    };
    String::from(known)
}
