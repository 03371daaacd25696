//! Outputs of the guest, on their way to ours.

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use anyhow::Context;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vmcell::{ExecEvent, OutputKind};

/// Our outputs, for what the guest prints.
pub(crate) struct Outputs {
    stdout: Writer,
    stderr: Writer,
}

/// What became of what was to be written.
pub(crate) enum Written {
    All,
    /// Whoever read it has seen enough.
    Unread,
}

impl Outputs {
    pub(crate) fn start() -> Self {
        Self {
            stdout: Writer::start(io::stdout()),
            stderr: Writer::start(io::stderr()),
        }
    }

    /// Writes what an event has to be written. False: it cannot be, and
    /// [`finish`](Self::finish) says why.
    pub(crate) async fn write(&self, event: ExecEvent) -> bool {
        match event {
            ExecEvent::Stdout(bytes) => self.stdout.write(bytes).await,
            ExecEvent::Stderr(bytes) => self.stderr.write(bytes).await,
            ExecEvent::Gap { output, bytes } => self.note_gap(name(output), bytes).await,
            _ => true,
        }
    }

    /// Writes to standard output, as [`write`](Self::write) does.
    pub(crate) async fn print(&self, bytes: Bytes) -> bool {
        self.stdout.write(bytes).await
    }

    /// Says on standard error that something cannot be printed.
    pub(crate) async fn note_gap(&self, name: &str, bytes: u64) -> bool {
        let note = format!("vmcell: {bytes} bytes of {name} are not kept any more\n");
        self.stderr.write(note.into()).await
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> anyhow::Result<Written> {
        for (output, writer) in [
            (OutputKind::Stdout, self.stdout),
            (OutputKind::Stderr, self.stderr),
        ] {
            match writer.finish().await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Written::Unread);
                }
                Err(error) => return Err(error).context(name(output)),
            }
        }
        Ok(Written::All)
    }
}

/// One of a command's outputs, to people.
pub(crate) fn name(output: OutputKind) -> &'static str {
    match output {
        OutputKind::Stdout => "standard output",
        OutputKind::Stderr => "standard error",
    }
}

/// One of our outputs, written by a thread of its own: a reader that does not
/// read must keep neither signals nor timeouts from ending the run.
struct Writer {
    queue: mpsc::Sender<Bytes>,
    outcome: oneshot::Receiver<io::Result<()>>,
}

impl Writer {
    fn start<W: Write + IsTerminal + Send + 'static>(writer: W) -> Self {
        let (queue, mut queued) = mpsc::channel::<Bytes>(1);
        let (told, outcome) = oneshot::channel();
        thread::spawn(move || {
            let mut destination = Destination::new(writer);
            let mut written = Ok(());
            while let (Ok(()), Some(bytes)) = (&written, queued.blocking_recv()) {
                written = destination.write(&bytes);
            }
            drop(queued);
            let _ = told.send(written);
        });
        Self { queue, outcome }
    }

    /// Hands bytes over. False: they cannot be written, and
    /// [`finish`](Self::finish) says why.
    async fn write(&self, bytes: Bytes) -> bool {
        self.queue.send(bytes).await.is_ok()
    }

    /// Waits until everything is written.
    async fn finish(self) -> io::Result<()> {
        drop(self.queue);
        self.outcome.await.unwrap_or(Ok(()))
    }
}

/// Where the bytes of one output go.
///
/// Into a pipe or file they go as they are. On a terminal, bytes that could
/// drive it are replaced: the guest is not trusted with it.
struct Destination<W> {
    writer: W,
    filter: Option<Filter>,
}

impl<W: Write + IsTerminal> Destination<W> {
    fn new(writer: W) -> Self {
        let filter = writer.is_terminal().then(Filter::default);
        Self { writer, filter }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.filter {
            None => self.writer.write_all(bytes)?,
            Some(filter) => self.writer.write_all(&filter.pass(bytes))?,
        }
        self.writer.flush()
    }
}

/// Replaces control characters but newline and tab, also across chunks.
#[derive(Default)]
struct Filter {
    /// The last byte may begin a control character of two bytes: U+0080 to
    /// U+009F are C2 80 to C2 9F.
    after_c2: bool,
}

impl Filter {
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if std::mem::take(&mut self.after_c2) {
                match byte {
                    0x80..=0x9f => {
                        passed.push(b'?');
                        continue;
                    }
                    _ => passed.push(0xc2),
                }
            }
            match byte {
                0xc2 => self.after_c2 = true,
                b'\n' | b'\t' | 0x20..=0x7e | 0x80.. => passed.push(byte),
                _ => passed.push(b'?'),
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_passes_can_drive_a_terminal() {
        let mut filter = Filter::default();
        assert_eq!(filter.pass(b"a\tb\n\x1b[31m\r\x07\x7f"), b"a\tb\n?[31m???");
        assert_eq!(filter.pass("schön €\n".as_bytes()), "schön €\n".as_bytes());
        // U+009B starts a control sequence as ESC [ does.
        assert_eq!(filter.pass("\u{9b}31m".as_bytes()), b"?31m");
        // The same in two chunks, and a harmless character in two chunks.
        assert_eq!(filter.pass(b"x\xc2"), b"x");
        assert_eq!(filter.pass(b"\x9by\xc2"), b"?y");
        assert_eq!(filter.pass(b"\xa7"), "§".as_bytes());
    }
}
