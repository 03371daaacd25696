//! Links that break, and streams that continue on the next one.

mod dial;
mod input;
mod link;
mod outputs;
mod random_breaks;
mod requests;

use super::*;

fn at(offset: u64, window: u32) -> Position {
    Position { offset, window }
}

/// The agent's answer that there is no such process.
fn not_found(stream: StreamId) -> Vec<u8> {
    let failure = Failure::new(FailureKind::NotFound, Stage::Process, "there is none");
    close(stream, &Outcome::Failed(failure))
}

/// Opens a stream whose process has started.
async fn open_started(session: &Session, guest: &mut Guest) -> Stream {
    let mut stream = open(session, guest).await;
    guest.send(&started(stream.id)).await;
    expect_started(&mut stream).await;
    stream
}

async fn expect_started(stream: &mut Stream) {
    let event = stream.next().await;
    assert!(
        matches!(event, Ok(StreamEvent::Started { id: ID, pid: PID })),
        "{event:?}"
    );
}

/// Ends a process that printed this many bytes, and returns what the host read
/// since.
async fn finish(stream: &mut Stream, guest: &mut Guest, stdout_bytes: u64) -> Vec<u8> {
    guest.send(&ends(stream.id)).await;
    guest.send(&exited(stream.id, stdout_bytes)).await;
    let (bytes, end) = read_to_end(stream).await;
    assert!(
        matches!(end.as_ref().map(Closing::outcome), Ok(Outcome::Exited(_))),
        "{end:?}"
    );
    bytes
}

/// Returns how many unread bytes of an output the host holds.
fn held(stream: &Stream, channel: Channel) -> u64 {
    let inner = stream.state.lock();
    let inbox = match channel {
        Channel::Stderr => &inner.stderr,
        _ => &inner.stdout,
    };
    inbox.arrived() - inbox.offset()
}

async fn link_error(session: &Session) -> LinkError {
    let mut error = session.link_error();
    error.wait_for(Option::is_some).await.unwrap().unwrap()
}

/// Waits until this much of standard output has arrived, without reading it.
async fn settle_on(stream: &mut Stream, count: u64) {
    std::future::poll_fn(|context| {
        let mut inner = stream.state.lock();
        if inner.stdout.arrived() >= count {
            return std::task::Poll::Ready(());
        }
        inner.wakers().events = Some(context.waker().clone());
        std::task::Poll::Pending
    })
    .await;
}
