use std::{
    convert::Infallible,
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as channel,
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vmcell_tree::TerminalFilter;

/// How much is printed before the thread checks whether to stop.
const CHUNK_SIZE: usize = 16 * 1024;

/// How long to wait at exit for a terminal that does not accept output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints to the user's terminal from a separate thread, so that a terminal
/// that does not accept output cannot block keys or signals.
///
/// On drop, pending output is discarded, and the terminal state that the
/// guest's programs changed is restored.
pub(super) struct Display {
    queue: Option<mpsc::Sender<Bytes>>,
    stop: Arc<AtomicBool>,
    outcome: oneshot::Receiver<io::Result<()>>,
    /// Disconnected when the thread ends.
    ended: channel::Receiver<Infallible>,
}

impl Display {
    /// Takes standard output.
    pub(super) fn start() -> io::Result<Self> {
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (queue, receiver) = mpsc::channel(1);
        let (outcome_sender, outcome) = oneshot::channel();
        let (alive, ended) = channel::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut thread = DisplayThread {
            output,
            filter: TerminalFilter::default(),
            receiver,
            stop: stop.clone(),
        };
        thread::Builder::new().spawn(move || {
            let printed = thread.run();
            let restored = thread.restore();
            drop(thread);
            let _ = outcome_sender.send(printed.and(restored));
            drop(alive);
        })?;
        Ok(Self {
            queue: Some(queue),
            stop,
            outcome,
            ended,
        })
    }

    /// Prints output of the guest. Returns `false` if the terminal is gone.
    pub(super) async fn print(&self, bytes: Bytes) -> bool {
        match &self.queue {
            Some(queue) => queue.send(bytes).await.is_ok(),
            None => false,
        }
    }

    /// Waits until everything is printed, and restores the terminal's state.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.queue = None;
        // Without an outcome the thread has panicked, which was reported.
        (&mut self.outcome).await.unwrap_or(Ok(()))
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.queue = None;
        let _ = self.ended.recv_timeout(EXIT_TIMEOUT);
    }
}

struct DisplayThread {
    output: File,
    filter: TerminalFilter,
    receiver: mpsc::Receiver<Bytes>,
    stop: Arc<AtomicBool>,
}

impl DisplayThread {
    fn run(&mut self) -> io::Result<()> {
        while let Some(bytes) = self.receiver.blocking_recv() {
            for chunk in bytes.chunks(CHUNK_SIZE) {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.output.write_all(&self.filter.pass(chunk))?;
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> io::Result<()> {
        self.output.write_all(&self.filter.undo())
    }
}
