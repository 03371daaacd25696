use alloc::{format, vec::Vec};

use rustix::{event::PollFlags, fd::OwnedFd, io::Errno};
use vmcell_wire::service::Http;

use super::{
    response::{MAX_RESPONSE, Verdict, examine},
    tcp::{AttemptError, dial, wait},
};
use crate::clock::Moment;

/// How much is read at once.
const READ_SIZE: usize = 8 * 1024;

/// Succeeds if a web server sends the expected response.
pub(super) fn attempt(wanted: &Http<'_>, deadline: Moment) -> Result<(), AttemptError> {
    let server = dial(wanted.port, deadline)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: vmcell\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        wanted.path
    );
    send(&server, request.as_bytes(), deadline)?;
    let mut response = Vec::new();
    loop {
        let has_ended = receive(&server, &mut response, deadline)?;
        match examine(&response, has_ended, wanted) {
            Verdict::Success => return Ok(()),
            Verdict::Failure(reason) => return Err(AttemptError::Failed(reason)),
            Verdict::Incomplete => {}
        }
    }
}

fn send(server: &OwnedFd, mut bytes: &[u8], deadline: Moment) -> Result<(), AttemptError> {
    while !bytes.is_empty() {
        match rustix::io::write(server, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::AGAIN) => wait(server, PollFlags::OUT, deadline)?,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Reads more of the response. Returns whether it has ended.
fn receive(from: &OwnedFd, to: &mut Vec<u8>, deadline: Moment) -> Result<bool, AttemptError> {
    let mut piece = [0; READ_SIZE];
    loop {
        wait(from, PollFlags::IN, deadline)?;
        match rustix::io::read(from, &mut piece) {
            Ok(count) => {
                to.extend_from_slice(piece.get(..count).unwrap_or_default());
                return Ok(count == 0 || to.len() >= MAX_RESPONSE);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The response may be complete enough.
            Err(Errno::CONNRESET) if !to.is_empty() => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}
