//! Models of the agent and a worker on one ring in each direction: loom tries all orders in
//! which the two can see each other's memory. It fails if a byte is read before it is
//! written or overwritten while it is lent, and if one end sleeps and nobody wakes it.

use alloc::vec::Vec;

use loom::{model::Builder, thread};
use rustix::process::Pid;
use vmcell_wire::{Outcome, Request, files::record};

use super::{OUTPUT_CAPACITY, worker_handle::WorkerHandle};
use crate::{
    sys::SharedRing,
    worker::{JobIo, JobResult, Wakeup},
};

/// Room for a request of one page, and for a few bytes.
const INPUT_CAPACITY: usize = 24;

/// How often a process may be interrupted by another one where it does not wait. With three
/// the models take minutes.
const INTERRUPTIONS: usize = 2;

/// Tries all orders of what the agent and a worker do.
fn model(agent: fn(&mut WorkerHandle), worker: fn(&mut JobIo)) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(INTERRUPTIONS);
    builder.max_branches = 100_000;
    builder.check(move || {
        let [incoming, incoming_of_worker] = SharedRing::in_both_processes(INPUT_CAPACITY);
        let [outgoing, outgoing_of_worker] = SharedRing::in_both_processes(OUTPUT_CAPACITY);
        let (agent_wakeup, worker_wakeup) = (Wakeup::default(), Wakeup::default());
        let (for_worker, for_agent) = (worker_wakeup.clone(), agent_wakeup.clone());
        let running = thread::spawn(move || {
            let incoming = incoming_of_worker.into_consumer();
            let outgoing = outgoing_of_worker.into_producer();
            let mut io = JobIo::new(incoming, outgoing, for_worker, for_agent);
            worker(&mut io);
        });
        let pid = Pid::from_raw(1).expect("it is a pid");
        let rings = (incoming, outgoing);
        agent(&mut WorkerHandle::new(
            pid,
            rings,
            agent_wakeup,
            worker_wakeup,
        ));
        running.join().expect("the worker ends");
    });
}

/// Takes the output of a job until it has finished, as the agent does whenever it is woken.
fn take_output(handle: &mut WorkerHandle) -> Vec<u8> {
    let mut output = Vec::new();
    loop {
        // First: all output is there when it has.
        let has_finished = handle.has_finished();
        loop {
            let taken = handle.output().taken();
            let end = handle.output_end();
            let piece = handle.output().bytes_from(taken);
            let count = piece.len().min((end - taken) as usize);
            if count == 0 {
                break;
            }
            output.extend_from_slice(&piece[..count]);
            handle.sent(taken + count as u64);
            handle.notify();
        }
        if has_finished {
            return output;
        }
        handle.agent_wakeup.consume();
    }
}

/// Takes the request off the input.
fn take_request(io: &mut JobIo) {
    let mut reader = record::Reader::new();
    let request = io.next_record(&mut reader, |piece| match piece {
        record::Piece::Message(message) => {
            let request: Request<'_> = record::decode(message)?;
            assert_eq!(request, Request::Ping);
            Ok(())
        }
        record::Piece::Raw(_) => panic!("it is no request"),
    });
    assert!(matches!(request, Ok(Some(()))));
    io.skip_to_page();
}

/// Sends the input back.
fn echo(io: &mut JobIo) -> JobResult<()> {
    loop {
        let input = Vec::from(io.peek_input(1)?);
        if input.is_empty() {
            return Ok(());
        }
        io.consume(input.len());
        io.send(&input)?;
    }
}

fn echo_one_job(io: &mut JobIo) {
    io.next_job();
    take_request(io);
    assert!(echo(io).is_ok());
    io.finish(&Outcome::Done);
}

fn assert_done(handle: &WorkerHandle) {
    handle.with_outcome(|outcome| assert_eq!(*outcome, Outcome::Done));
}

#[test]
fn input_that_comes_in_pieces_is_read_and_its_end_is_noticed() {
    model(
        |handle| {
            handle.begin(&Request::Ping).expect("it fits");
            for piece in [&b"abc"[..], b"de"] {
                handle.add_input(piece);
                handle.notify();
            }
            handle.end_input();
            handle.notify();
            assert_eq!(take_output(handle), b"abcde");
            assert_done(handle);
        },
        echo_one_job,
    );
}

#[test]
fn more_output_than_fits_waits_for_room_and_overwrites_nothing() {
    model(
        |handle| {
            handle.begin(&Request::Ping).expect("it fits");
            let expected: Vec<u8> = (0..40).collect();
            assert_eq!(take_output(handle), expected);
            assert_done(handle);
        },
        |io| {
            io.next_job();
            take_request(io);
            let output: Vec<u8> = (0..40).collect();
            assert!(output.chunks(16).all(|piece| io.send(piece).is_ok()));
            io.finish(&Outcome::Done);
        },
    );
}

#[test]
fn more_input_than_fits_is_read_as_far_as_there_is_room() {
    model(
        |handle| {
            handle.begin(&Request::Ping).expect("it fits");
            // What the host may send: as much as the ring has room for.
            handle.add_input(b"0123456789abcdef");
            handle.notify();
            while handle.consumed() < 8 {
                handle.agent_wakeup.consume();
            }
            handle.add_input(b"ghijklmn");
            handle.end_input();
            handle.notify();
            assert_eq!(take_output(handle), b"0123456789abcdefghijklmn");
        },
        echo_one_job,
    );
}

#[test]
fn a_job_that_waits_is_cancelled_and_the_next_one_begins() {
    model(
        |handle| {
            handle.begin(&Request::Ping).expect("it fits");
            handle.add_input(b"ab");
            handle.notify();
            handle.cancel();
            take_output(handle);
            handle.begin(&Request::Ping).expect("it fits");
            handle.end_input();
            handle.notify();
            assert_eq!(take_output(handle), b"");
            assert_done(handle);
        },
        |io| {
            io.next_job();
            // It is cancelled before its request was read, or after.
            let mut reader = record::Reader::new();
            let request = io.next_record(&mut reader, |_| Ok(()));
            if request.is_ok() {
                io.skip_to_page();
                assert!(echo(io).is_err(), "its input has no end");
            }
            io.finish(&Outcome::Done);
            echo_one_job(io);
        },
    );
}
