//! Standard input, on its way to the guest.

use std::{io::Read, thread};

use bytes::Bytes;
use tokio::sync::mpsc;
use vmcell::ExecInput;

/// Copies our standard input to the command's, until one of them ends.
///
/// A thread of its own reads it: a read from a terminal cannot be taken back,
/// and must not keep the program from ending.
pub(crate) fn forward(input: ExecInput) {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(1);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        let mut stdin = std::io::stdin().lock();
        while let Ok(count @ 1..) = stdin.read(&mut buffer) {
            let bytes = Bytes::copy_from_slice(&buffer[..count]);
            if sender.blocking_send(bytes).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if !input.write(bytes).await {
                return;
            }
        }
        input.end();
    });
}
