use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    os::fd::AsFd,
    thread,
};

use bytes::Bytes;
use tokio::sync::mpsc;

/// The size of a read, and how many reads are buffered.
const READ_SIZE: usize = 4096;
const MAX_BUFFERED_READS: usize = 16;

/// Reads the keyboard of the user's terminal.
///
/// A separate thread does blocking reads. Non-blocking mode would affect the
/// open file description, which we share with the user's shell.
pub(crate) struct Keyboard(mpsc::Receiver<Bytes>);

impl Keyboard {
    /// Takes standard input.
    pub(crate) fn start() -> io::Result<Self> {
        let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (sender, receiver) = mpsc::channel(MAX_BUFFERED_READS);
        thread::Builder::new().spawn(move || {
            let mut buffer = [0; READ_SIZE];
            loop {
                let typed = match input.read(&mut buffer) {
                    Ok(count) => buffer.get(..count).unwrap_or_default(),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                if typed.is_empty() || sender.blocking_send(Bytes::copy_from_slice(typed)).is_err()
                {
                    return;
                }
            }
        })?;
        Ok(Self(receiver))
    }

    /// Returns the next input. `None`: the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}
