use alloc::vec::Vec;

use rustix::fd::OwnedFd;
use vmcell_wire::{
    FailureKind, Outcome, Request,
    files::{FileRequest, record},
};

use super::{FileError, JobError, JobIo, JobResult, Wakeup};
use crate::sys::{Consumer, Producer};

/// Gives a worker a scheduler weight of 33, against 300 for all commands together
/// (`cgroup/pool.rs`): it gets a tenth of the processor beside a busy command.
const WORKER_NICENESS: i32 = 5;

/// Runs one job after the other with `work`, until the agent kills this process.
pub(crate) fn run(
    incoming: Consumer,
    outgoing: Producer,
    wakeups: [OwnedFd; 2],
    work: fn(&mut JobIo, &FileRequest<'_>) -> JobResult<()>,
) {
    // The agent's own niceness is not inherited (`sys/scheduling.rs`), so this
    // begins at 0. Commands have priority over work on files.
    let _ = rustix::process::nice(WORKER_NICENESS);
    let [own_wakeup, agent_wakeup] = wakeups.map(Wakeup::from_descriptor);
    let mut io = JobIo::new(incoming, outgoing, own_wakeup, agent_wakeup);
    loop {
        io.next_job();
        let outcome = perform(&mut io, work);
        match &outcome {
            Ok(()) => io.finish(&Outcome::Done),
            Err(error) => io.finish(&error.outcome()),
        }
    }
}

fn perform(
    io: &mut JobIo,
    work: fn(&mut JobIo, &FileRequest<'_>) -> JobResult<()>,
) -> JobResult<()> {
    let mut reader = record::Reader::new();
    let request = io.next_record(&mut reader, |piece| match piece {
        record::Piece::Message(message) => Ok(Vec::from(message)),
        record::Piece::Raw(_) => Err(unexpected_request()),
    })?;
    io.skip_to_page();
    match record::decode(&request.ok_or_else(unexpected_request)?)? {
        Request::Files(request) => work(io, &request),
        _ => Err(unexpected_request()),
    }
}

fn unexpected_request() -> JobError {
    FileError::new(
        FailureKind::Unsupported,
        "the worker does not support this request",
    )
    .into()
}
