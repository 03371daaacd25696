//! Parsers that are not public, for the fuzz targets (`fuzz/fuzz_targets`). It exists only
//! with the feature `fuzzing`, and is no API. A folder with such parsers has a file
//! `fuzzing.rs`, and all of them are here.

pub use crate::{
    attach::fuzzing::read_attach_messages,
    backend::fuzzing::{read_api_reply, read_monitor_replies},
    broker::fuzzing::{Brokered, VALUE, exchange},
    network::fuzzing::{ProxyRequest, parse_proxy_request, read_network_policy},
    receipt::fuzzing::{append_receipts, read_receipts},
    session::fuzzing::{GuestSession, SessionEnd, StreamReport},
    snapshot::fuzzing::read_manifest,
    tool::fuzzing::decide,
    workspace::fuzzing::{read_command, read_keeper_lines, read_record},
};

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Runs what never waits: readers of bytes that are all there.
///
/// # Panics
/// If it waits.
pub(crate) fn run_at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for something"),
    }
}
