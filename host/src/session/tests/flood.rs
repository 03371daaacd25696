use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{net::UnixStream, sync::oneshot, task::JoinHandle};

/// Somebody who writes and writes, from a thread of its own.
pub(super) struct Flood {
    enough: Arc<AtomicBool>,
    writing: JoinHandle<usize>,
}

/// It ends by itself after this.
const MOST: usize = 128 * 1024 * 1024;

/// So much does not fit into a socket: the reader has taken some of it.
const UNDER_WAY: usize = 1024 * 1024;

impl Flood {
    /// Begins to write, and returns when it is under way, or when the reader
    /// has had enough of it.
    pub(super) async fn start(link: UnixStream, nonsense: Vec<u8>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (under_way, is_under_way) = oneshot::channel();
        let mut link = link.into_std().unwrap();
        link.set_nonblocking(false).unwrap();
        let writing = tokio::task::spawn_blocking({
            let enough = enough.clone();
            move || {
                let (mut sent, mut under_way) = (0, Some(under_way));
                while sent < MOST && !enough.load(Ordering::Relaxed) {
                    match link.write(&nonsense) {
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
        Self { enough, writing }
    }

    /// It is to stop now.
    pub(super) fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped before it was finished.
    pub(super) async fn was_interrupted(self) -> bool {
        self.writing.await.unwrap() < MOST
    }
}
