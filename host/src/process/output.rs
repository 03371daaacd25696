use std::{
    fmt,
    time::{Duration, SystemTime},
};

use super::{
    Cause, ExecEvent, ExecStream, Exit, OutputKind, OverflowPolicy, captured::CapturedOutput,
};
use crate::{error::Error, vm::Vm};

/// What a command printed, and how it ended.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// How it ended. `None` if it was killed and the guest did not confirm that
    /// in time.
    pub exit: Option<Exit>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The gap in its standard output, if bytes are missing.
    pub stdout_truncation: Option<Truncation>,
    /// The gap in its standard error, if bytes are missing.
    pub stderr_truncation: Option<Truncation>,
    /// Warnings that concern every user of this VM: see
    /// [`Vm::warnings`](crate::Vm::warnings).
    pub warnings: Vec<String>,
    /// What the network policy denied to programs of the VM while the command ran, each
    /// once: `example.org:443`, or a name alone that was looked up. See
    /// [`network`](crate::network). Always empty on an [attached](crate::Vm::attach)
    /// handle.
    pub network_denials: Vec<String>,
}

/// A gap in a collected output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// The position of the gap: this many collected bytes come before it.
    pub at: usize,
    /// How many bytes are missing.
    pub bytes: u64,
}

impl Output {
    /// Returns whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.exit.is_some_and(|exit| exit.success())
    }

    /// Returns the exit code, if it exited.
    pub fn code(&self) -> Option<u8> {
        self.exit.and_then(|exit| exit.code())
    }

    /// Returns standard output as text. Invalid UTF-8 is replaced, and a gap is
    /// marked.
    pub fn stdout_text(&self) -> String {
        text(&self.stdout, self.stdout_truncation)
    }

    /// Returns standard error as text. Invalid UTF-8 is replaced, and a gap is
    /// marked.
    pub fn stderr_text(&self) -> String {
        text(&self.stderr, self.stderr_truncation)
    }
}

/// Shows the beginning of each output, as text.
impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 1000;
        let shown = |bytes: &[u8]| {
            let mut text = bytes[..bytes.len().min(SHOWN)].escape_ascii().to_string();
            if bytes.len() > SHOWN {
                text += &format!("... ({} bytes)", bytes.len());
            }
            text
        };
        f.debug_struct("Output")
            .field("exit", &self.exit)
            .field("stdout", &format_args!("b\"{}\"", shown(&self.stdout)))
            .field("stderr", &format_args!("b\"{}\"", shown(&self.stderr)))
            .field("stdout_truncation", &self.stdout_truncation)
            .field("stderr_truncation", &self.stderr_truncation)
            .field("warnings", &self.warnings)
            .field("network_denials", &self.network_denials)
            .finish()
    }
}

fn text(bytes: &[u8], gap: Option<Truncation>) -> String {
    let (head, tail) = bytes.split_at(gap.map_or(bytes.len(), |gap| gap.at.min(bytes.len())));
    let mut text = String::from_utf8_lossy(head).into_owned();
    if let Some(gap) = gap {
        text += &format!("\n[{} bytes dropped]\n", gap.bytes);
        text += &String::from_utf8_lossy(tail);
    }
    text
}

/// How long the guest may take to confirm that a command was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Collects everything until the command ends. Kills the command if it takes
/// too long or prints too much.
pub(super) async fn collect(
    mut stream: ExecStream,
    time: Option<Duration>,
    inspect: impl FnMut(OutputKind, &[u8]) + Send,
) -> Result<Output, Error> {
    let time = time.unwrap_or(Duration::MAX);
    let mut collector = Collector::new(&stream, inspect);
    let vm = stream.vm().clone();
    let pauses = vm.session().pauses();
    let collecting = pauses.timeout(time, collector.collect(&mut stream));
    match collecting.await.transpose()? {
        None => Err(collector.end(stream, Cause::Timeout).await.timed_out(time)),
        Some(Collected::All(exit)) => {
            let output = collector.into_output(exit);
            match exit.map(|exit| exit.cause) {
                Some(Cause::Timeout) => Err(output.timed_out(time)),
                _ => Ok(output),
            }
        }
        Some(Collected::TooMuch) => {
            let limit = stream.max_output;
            let partial = Box::new(collector.end(stream, Cause::OutputLimit).await);
            Err(Error::OutputLimit { limit, partial })
        }
    }
}

/// How the collecting of output ended.
enum Collected {
    /// The command has ended.
    All(Option<Exit>),
    /// It has printed more than it may.
    TooMuch,
}

impl Output {
    fn timed_out(self, after: Duration) -> Error {
        Error::ExecTimeout {
            after,
            partial: Box::new(self),
        }
    }
}

struct Collector<I> {
    /// Gets all that is printed.
    inspect: I,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
    vm: Vm,
    began: SystemTime,
}

impl<I: FnMut(OutputKind, &[u8]) + Send> Collector<I> {
    fn new(stream: &ExecStream, inspect: I) -> Self {
        let collected = || CapturedOutput::new(stream.max_output, stream.overflow);
        Self {
            inspect,
            stdout: collected(),
            stderr: collected(),
            vm: stream.vm().clone(),
            began: SystemTime::now(),
        }
    }

    /// Collects events until the command ends or prints too much.
    ///
    /// Cancel safe: what was collected is kept.
    async fn collect(&mut self, stream: &mut ExecStream) -> Result<Collected, Error> {
        loop {
            match stream.next().await? {
                Some(ExecEvent::Exited(exit)) => return Ok(Collected::All(Some(exit))),
                Some(event) => {
                    if !self.add(event) && stream.overflow == OverflowPolicy::Kill {
                        return Ok(Collected::TooMuch);
                    }
                }
                None => return Ok(Collected::All(None)),
            }
        }
    }

    /// Returns whether the output is still within the limit.
    fn add(&mut self, event: ExecEvent) -> bool {
        match event {
            ExecEvent::Stdout(bytes) => {
                (self.inspect)(OutputKind::Stdout, &bytes);
                self.stdout.add(&bytes)
            }
            ExecEvent::Stderr(bytes) => {
                (self.inspect)(OutputKind::Stderr, &bytes);
                self.stderr.add(&bytes)
            }
            ExecEvent::Gap { output, bytes } => {
                match output {
                    OutputKind::Stdout => self.stdout.gap(bytes),
                    OutputKind::Stderr => self.stderr.gap(bytes),
                }
                true
            }
            ExecEvent::Started { .. } | ExecEvent::Exited(_) => true,
        }
    }

    /// Kills the command, waits a little for the guest to confirm it, and keeps
    /// what was printed meanwhile.
    async fn end(mut self, mut stream: ExecStream, cause: Cause) -> Output {
        stream.record_cause(cause);
        stream.kill();
        let vm = stream.vm().clone();
        let confirming = async {
            loop {
                match stream.next().await {
                    Ok(Some(ExecEvent::Exited(exit))) => return Some(exit.with_cause(cause)),
                    Ok(Some(event)) => {
                        self.add(event);
                    }
                    Ok(None) | Err(_) => return None,
                }
            }
        };
        let confirmed = vm
            .session()
            .pauses()
            .timeout(KILL_TIMEOUT, confirming)
            .await;
        self.into_output(confirmed.flatten())
    }

    fn into_output(self, exit: Option<Exit>) -> Output {
        let (stdout, stdout_truncation) = self.stdout.finish();
        let (stderr, stderr_truncation) = self.stderr.finish();
        Output {
            exit,
            stdout,
            stderr,
            stdout_truncation,
            stderr_truncation,
            warnings: self.vm.warnings().to_vec(),
            network_denials: self.vm.network_denials_since(self.began),
        }
    }
}
