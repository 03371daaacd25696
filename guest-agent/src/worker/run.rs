use alloc::vec::Vec;

use rustix::fd::OwnedFd;
use vmcell_wire::{FailureKind, Outcome, Request, files::record};

use super::{Bell, Line, Stop, Trouble};
use crate::{
    files,
    sys::{Consumer, Producer},
};

/// A worker weighs 33 against the 300 of all commands together
/// (`cgroup/pool.rs`), so it gets a tenth of the processor beside a command.
const NICENESS: i32 = 5;

/// The life of a worker: job after job, until the agent ends it.
pub(crate) fn run(incoming: Consumer, outgoing: Producer, bells: [OwnedFd; 2]) {
    files::begin();
    // The agent's own niceness is not inherited (`sys/scheduling.rs`), so this
    // begins at 0. Work on many files can wait a little; commands go first.
    let _ = rustix::process::nice(NICENESS);
    let [ours, agents] = bells.map(Bell::from_descriptor);
    let mut line = Line::new(incoming, outgoing, ours, agents);
    loop {
        line.next_job();
        let outcome = perform(&mut line);
        match &outcome {
            Ok(()) => line.finish(&Outcome::Done),
            Err(stop) => line.finish(&stop.outcome()),
        }
    }
}

fn perform(line: &mut Line) -> Result<(), Stop> {
    let mut reader = record::Reader::new();
    let request = line.next_record(&mut reader, |piece| match piece {
        record::Piece::Message(message) => Ok(Vec::from(message)),
        record::Piece::Raw(_) => Err(senseless()),
    })?;
    line.begin_on_page();
    match record::decode(&request.ok_or_else(senseless)?)? {
        Request::Files(request) => files::perform(line, &request),
        _ => Err(senseless()),
    }
}

fn senseless() -> Stop {
    Trouble::new(FailureKind::Unsupported, "the worker does not know this").into()
}
