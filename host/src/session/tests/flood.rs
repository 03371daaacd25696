use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{net::UnixStream, sync::oneshot, task::JoinHandle};

/// A writer that never pauses, on its own thread.
pub(super) struct Flood {
    stop: Arc<AtomicBool>,
    writing: JoinHandle<usize>,
}

/// It ends by itself after this many bytes.
const MAX_SENT: usize = 128 * 1024 * 1024;

/// This much does not fit into a socket's buffer: the reader has read some of it.
const UNDER_WAY: usize = 1024 * 1024;

impl Flood {
    /// Starts to write. Returns when the reader has read some of it, or has closed
    /// the link.
    pub(super) async fn start(link: UnixStream, garbage: Vec<u8>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (under_way, is_under_way) = oneshot::channel();
        let mut link = link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let writing = tokio::task::spawn_blocking({
            let stop = stop.clone();
            move || {
                let (mut sent, mut under_way) = (0, Some(under_way));
                while sent < MAX_SENT && !stop.load(Ordering::Relaxed) {
                    match link.write(&garbage) {
                        Ok(count) => sent += count,
                        Err(_) => break,
                    }
                    if sent > UNDER_WAY {
                        under_way.take().map(|under_way| under_way.send(()));
                    }
                }
                sent
            }
        });
        let _ = is_under_way.await;
        Self { stop, writing }
    }

    /// Asks the writer to stop.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether it was stopped before it had written everything.
    pub(super) async fn was_interrupted(self) -> bool {
        self.writing.await.unwrap() < MAX_SENT
    }
}
