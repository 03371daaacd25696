//! Outputs of the guest, on their way to ours.

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use anyhow::Context;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vmcell::{ColourPolicy, ExecEvent, OutputKind, Sanitizer};
use vmcell_cli::show::guest_colours::{self, Output};

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
    /// For what a command prints: on a terminal, its colours are kept.
    pub(crate) fn start() -> Self {
        Self::with(guest_colours::policy())
    }

    /// For what is in a file.
    pub(crate) fn of_file() -> Self {
        Self::with(ColourPolicy::Replace)
    }

    fn with(colours: ColourPolicy) -> Self {
        Self {
            stdout: Writer::start(io::stdout(), Output::Stdout, colours),
            stderr: Writer::start(io::stderr(), Output::Stderr, colours),
        }
    }

    /// Writes what an event has to be written. False: it cannot be, and
    /// [`finish`](Self::finish) says why.
    pub(crate) async fn write(&self, event: ExecEvent) -> bool {
        match event {
            ExecEvent::Stdout(bytes) => self.stdout.write(Piece::OfGuest(bytes)).await,
            ExecEvent::Stderr(bytes) => self.stderr.write(Piece::OfGuest(bytes)).await,
            ExecEvent::Gap { output, bytes } => self.note_gap(name(output), bytes).await,
            _ => true,
        }
    }

    /// Writes to standard output, as [`write`](Self::write) does.
    pub(crate) async fn print(&self, bytes: Bytes) -> bool {
        self.stdout.write(Piece::OfGuest(bytes)).await
    }

    /// Says on standard error that something cannot be printed.
    pub(crate) async fn note_gap(&self, name: &str, bytes: u64) -> bool {
        let note = format!("vmcell: {bytes} bytes of {name} are not kept any more\n");
        self.stderr.write(Piece::Ours(note)).await
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
    queue: mpsc::Sender<Piece>,
    outcome: oneshot::Receiver<io::Result<()>>,
}

impl Writer {
    fn start<W>(writer: W, output: Output, colours: ColourPolicy) -> Self
    where
        W: Write + IsTerminal + Send + 'static,
    {
        let (queue, mut queued) = mpsc::channel::<Piece>(1);
        let (told, outcome) = oneshot::channel();
        thread::spawn(move || {
            let mut destination = Destination::new(writer, output, colours);
            let mut written = Ok(());
            while let (Ok(()), Some(piece)) = (&written, queued.blocking_recv()) {
                written = destination.write(&piece);
            }
            drop(queued);
            let _ = told.send(written.and_then(|()| destination.finish()));
        });
        Self { queue, outcome }
    }

    /// Hands bytes over. False: they cannot be written, and
    /// [`finish`](Self::finish) says why.
    async fn write(&self, piece: Piece) -> bool {
        self.queue.send(piece).await.is_ok()
    }

    /// Waits until everything is written.
    async fn finish(self) -> io::Result<()> {
        drop(self.queue);
        self.outcome.await.unwrap_or(Ok(()))
    }
}

/// What is written at once.
enum Piece {
    OfGuest(Bytes),
    /// A line in our own name.
    Ours(String),
}

/// Where the bytes of one output go.
///
/// Into a pipe or file they go as they are. On a terminal, bytes that could
/// drive it are replaced: the guest is not trusted with it.
struct Destination<W> {
    writer: W,
    output: Output,
    sanitizer: Option<Sanitizer>,
}

impl<W: Write + IsTerminal> Destination<W> {
    fn new(writer: W, output: Output, colours: ColourPolicy) -> Self {
        let sanitizer = writer.is_terminal().then(|| Sanitizer::new(colours));
        Self {
            writer,
            output,
            sanitizer,
        }
    }

    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        match (piece, &mut self.sanitizer) {
            (Piece::OfGuest(bytes), None) => self.writer.write_all(bytes)?,
            (Piece::OfGuest(bytes), Some(sanitizer)) => {
                let text = sanitizer.pass(bytes);
                // An interruption finds it noted.
                guest_colours::note(self.output, sanitizer.is_coloured());
                self.writer.write_all(text.as_bytes())?;
            }
            (Piece::Ours(line), _) => write!(self.writer, "{}{line}", guest_colours::end())?,
        }
        self.writer.flush()
    }

    /// Writes what was held back, and ends the guest's colours.
    fn finish(mut self) -> io::Result<()> {
        let Some(mut sanitizer) = self.sanitizer else {
            return Ok(());
        };
        self.writer.write_all(sanitizer.finish().as_bytes())?;
        self.writer.flush()?;
        guest_colours::note(self.output, sanitizer.is_coloured());
        Ok(())
    }
}
