use alloc::{format, vec::Vec};

use rustix::{event::PollFlags, fd::OwnedFd, io::Errno};
use vmcell_wire::service::Http;

use super::{
    response::{MOST, Verdict, examine},
    tcp::{Failed, dial, wait},
};
use crate::clock::Moment;

/// How much is read at once.
const PIECE: usize = 8 * 1024;

/// Whether a web server answers as it should.
pub(super) fn attempt(wanted: &Http<'_>, deadline: Moment) -> Result<(), Failed> {
    let server = dial(wanted.port, deadline)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: vmcell\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        wanted.path
    );
    send(&server, request.as_bytes(), deadline)?;
    let mut answer = Vec::new();
    loop {
        let has_ended = receive(&server, &mut answer, deadline)?;
        match examine(&answer, has_ended, wanted) {
            Verdict::Success => return Ok(()),
            Verdict::Failure(reason) => return Err(Failed::Because(reason)),
            Verdict::Unsure => {}
        }
    }
}

fn send(server: &OwnedFd, mut bytes: &[u8], deadline: Moment) -> Result<(), Failed> {
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

/// Answers whether there is no more.
fn receive(server: &OwnedFd, answer: &mut Vec<u8>, deadline: Moment) -> Result<bool, Failed> {
    let mut piece = [0; PIECE];
    loop {
        wait(server, PollFlags::IN, deadline)?;
        match rustix::io::read(server, &mut piece) {
            Ok(count) => {
                answer.extend_from_slice(piece.get(..count).unwrap_or_default());
                return Ok(count == 0 || answer.len() >= MOST);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // What came before that may be all that is needed.
            Err(Errno::CONNRESET) if !answer.is_empty() => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}
