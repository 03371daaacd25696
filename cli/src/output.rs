//! Outputs of the guest, on their way to ours.

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use anyhow::Context;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vmcell::{ExecEvent, OutputKind};
use vmcell_cli::show::Harmless;

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
    filter: Option<Harmless>,
}

impl<W: Write + IsTerminal> Destination<W> {
    fn new(writer: W) -> Self {
        let filter = writer.is_terminal().then(Harmless::default);
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
