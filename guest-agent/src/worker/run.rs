use alloc::vec::Vec;

use rustix::fd::OwnedFd;
use vmcell_wire::{FailureKind, Outcome, Request, files::record};

use super::{Bell, Line, Stop, Trouble};
use crate::{
    files,
    sys::{Consumer, Producer},
};

/// The life of a worker: job after job, until the agent ends it.
pub(crate) fn run(incoming: Consumer, outgoing: Producer, bells: [OwnedFd; 2]) {
    files::begin();
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
