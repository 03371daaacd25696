use alloc::{format, string::String};

use rustix::io::Errno;

/// What the kernel says, for people.
pub(super) fn words(errno: Errno) -> String {
    let known = match errno {
        Errno::NOENT | Errno::NOTDIR => "no such file",
        Errno::CONNREFUSED => "connection refused",
        Errno::CONNRESET | Errno::PIPE => "the connection was closed",
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::AGAIN => "it does not take the connections that wait",
        Errno::PROTOTYPE => "not a stream socket",
        Errno::LOOP => "too many symbolic links",
        _ => return format!("error {} of the kernel", errno.raw_os_error()),
    };
    String::from(known)
}
