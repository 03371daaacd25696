//! Copies the guest's output to our standard output and standard error.

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use anyhow::Context;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vmcell::{ColourPolicy, ExecEvent, OutputKind, Sanitizer};
use vmcell_cli::show::guest_colours::{self, Output};

/// Writers for our standard output and standard error.
pub(crate) struct Outputs {
    stdout: Writer,
    stderr: Writer,
}

/// How writing ended.
pub(crate) enum Written {
    All,
    /// The reader has closed its end of the pipe.
    ReaderGone,
}

impl Outputs {
    /// Starts writers for the output of a command. On a terminal, colours are
    /// kept.
    pub(crate) fn for_command() -> Self {
        Self::with(guest_colours::policy())
    }

    /// The same for a command whose output all goes to standard error.
    pub(crate) fn for_command_on_stderr() -> Self {
        let writer = || Writer::start(io::stderr(), Output::Stderr, guest_colours::policy());
        Self {
            stdout: writer(),
            stderr: writer(),
        }
    }

    /// Starts writers for the contents of a file.
    pub(crate) fn for_file() -> Self {
        Self::with(ColourPolicy::Replace)
    }

    fn with(colours: ColourPolicy) -> Self {
        Self {
            stdout: Writer::start(io::stdout(), Output::Stdout, colours),
            stderr: Writer::start(io::stderr(), Output::Stderr, colours),
        }
    }

    /// Writes the output in an event. Returns `false` if it cannot be written;
    /// [`finish`](Self::finish) then returns the error.
    pub(crate) async fn write(&self, event: ExecEvent) -> bool {
        match event {
            ExecEvent::Stdout(bytes) => self.stdout.write(Chunk::Guest(bytes)).await,
            ExecEvent::Stderr(bytes) => self.stderr.write(Chunk::Guest(bytes)).await,
            ExecEvent::Gap { output, bytes } => self.report_gap(name(output), bytes).await,
            _ => true,
        }
    }

    /// Writes to standard output, like [`write`](Self::write).
    pub(crate) async fn print(&self, bytes: Bytes) -> bool {
        self.stdout.write(Chunk::Guest(bytes)).await
    }

    /// Reports on standard error that output is missing.
    pub(crate) async fn report_gap(&self, name: &str, bytes: u64) -> bool {
        let note = format!("vmcell: {bytes} bytes of {name} are no longer kept\n");
        self.note(note).await
    }

    /// Writes a line of our own to standard error.
    pub(crate) async fn note(&self, line: String) -> bool {
        self.stderr.write(Chunk::Own(line)).await
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
                    return Ok(Written::ReaderGone);
                }
                Err(error) => return Err(error).context(name(output)),
            }
        }
        Ok(Written::All)
    }
}

/// Returns the name of an output for messages.
pub(crate) fn name(output: OutputKind) -> &'static str {
    match output {
        OutputKind::Stdout => "standard output",
        OutputKind::Stderr => "standard error",
    }
}

/// One of our outputs. A separate thread writes to it, so that a reader that
/// does not read cannot block signals or timeouts.
struct Writer {
    queue: mpsc::Sender<Chunk>,
    outcome: oneshot::Receiver<io::Result<()>>,
}

impl Writer {
    fn start<W>(writer: W, output: Output, colours: ColourPolicy) -> Self
    where
        W: Write + IsTerminal + Send + 'static,
    {
        let (queue, mut receiver) = mpsc::channel::<Chunk>(1);
        let (outcome_sender, outcome) = oneshot::channel();
        thread::spawn(move || {
            let mut destination = SanitizingWriter::new(writer, output, colours);
            let mut written = Ok(());
            while let (Ok(()), Some(chunk)) = (&written, receiver.blocking_recv()) {
                written = destination.write(&chunk);
            }
            drop(receiver);
            let _ = outcome_sender.send(written.and_then(|()| destination.finish()));
        });
        Self { queue, outcome }
    }

    /// Queues bytes. Returns `false` if they cannot be written;
    /// [`finish`](Self::finish) then returns the error.
    async fn write(&self, chunk: Chunk) -> bool {
        self.queue.send(chunk).await.is_ok()
    }

    /// Waits until everything is written.
    async fn finish(self) -> io::Result<()> {
        drop(self.queue);
        self.outcome.await.unwrap_or(Ok(()))
    }
}

/// A unit of output.
enum Chunk {
    Guest(Bytes),
    /// A line of our own.
    Own(String),
}

/// Writes the bytes of one output.
///
/// Into a pipe or file, bytes go unchanged. On a terminal, bytes that could
/// control it are replaced, because the guest is untrusted.
struct SanitizingWriter<W> {
    writer: W,
    output: Output,
    sanitizer: Option<Sanitizer>,
}

impl<W: Write + IsTerminal> SanitizingWriter<W> {
    fn new(writer: W, output: Output, colours: ColourPolicy) -> Self {
        let sanitizer = writer.is_terminal().then(|| Sanitizer::new(colours));
        Self {
            writer,
            output,
            sanitizer,
        }
    }

    fn write(&mut self, chunk: &Chunk) -> io::Result<()> {
        match (chunk, &mut self.sanitizer) {
            (Chunk::Guest(bytes), None) => self.writer.write_all(bytes)?,
            (Chunk::Guest(bytes), Some(sanitizer)) => {
                let text = sanitizer.feed(bytes);
                // Recorded before it is written, in case of an interrupt.
                guest_colours::record(self.output, sanitizer.is_coloured());
                self.writer.write_all(text.as_bytes())?;
            }
            (Chunk::Own(line), _) => write!(self.writer, "{}{line}", guest_colours::reset())?,
        }
        self.writer.flush()
    }

    /// Writes what was held back, and records whether a colour is still on.
    fn finish(mut self) -> io::Result<()> {
        let Some(mut sanitizer) = self.sanitizer else {
            return Ok(());
        };
        self.writer.write_all(sanitizer.finish().as_bytes())?;
        self.writer.flush()?;
        guest_colours::record(self.output, sanitizer.is_coloured());
        Ok(())
    }
}
