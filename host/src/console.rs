use std::{
    collections::VecDeque,
    os::unix::net::UnixStream as StdUnixStream,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{io::AsyncReadExt, net::UnixStream, task::JoinHandle};

use vmcell_tree::printable;

use crate::error::Error;

/// The end of what a guest printed on its serial console.
///
/// The guest decides how much it prints, so only the last
/// [`KEPT`](Self::KEPT) bytes are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console(Arc<Mutex<VecDeque<u8>>>);

impl Console {
    const KEPT: usize = 16 * 1024;

    /// Spawns a task that reads the console until the VMM closes it.
    pub(crate) fn read(&self, socket: StdUnixStream) -> Result<JoinHandle<()>, Error> {
        let failed = Error::host("read the console");
        let socket = socket
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(socket))
            .map_err(failed)?;
        let console = self.clone();
        Ok(tokio::spawn(console.read_until_closed(socket)))
    }

    /// Returns the text that is kept, made safe to print.
    pub(crate) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printable(kept.make_contiguous()).into_owned()
    }

    async fn read_until_closed(self, mut socket: UnixStream) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = socket.read(&mut buffer).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&buffer[..count]);
            let excess = kept.len().saturating_sub(Self::KEPT);
            kept.drain(..excess);
        }
    }
}
