use std::{io::Read as _, os::unix::net::UnixStream};

use crate::{error::Error, printable};

/// Adds what a VMM has printed to an error that it caused.
pub(super) fn with_messages(error: Error, stderr: &UnixStream) -> Error {
    const MAX_MESSAGES: u64 = 4096;
    let Error::Control { doing, reason } = error else {
        return error;
    };
    let mut messages = Vec::new();
    // It fails when there is no more.
    let _ = stderr.set_nonblocking(true);
    let _ = stderr.take(MAX_MESSAGES).read_to_end(&mut messages);
    let _ = stderr.set_nonblocking(false);
    let messages = printable(&messages);
    let reason = match messages.trim_end() {
        "" => reason,
        messages => format!("{reason}: {messages}"),
    };
    Error::Control { doing, reason }
}
