use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Instant, timeout, timeout_at};

use super::{ExecEvent, ExecStream, Exit};
use crate::error::Error;

/// What a command printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// How it ended. None if it was ended by force and the guest did not say
    /// in time what became of it.
    pub exit: Option<Exit>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.exit.is_some_and(|exit| exit.success())
    }

    /// The exit code, if it exited.
    pub fn code(&self) -> Option<u8> {
        self.exit.and_then(|exit| exit.code())
    }

    /// Standard output as text; what is not UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; what is not UTF-8 is replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// How long a guest may take to confirm that a command was ended.
const CONFIRMATION: Duration = Duration::from_secs(2);

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Collects everything until the command ends, or ends it when it takes too
/// long or prints too much.
pub(super) async fn collect(
    mut stream: ExecStream,
    time: Duration,
    limit: usize,
) -> Result<Output, Error> {
    // A time that no clock can count to is as good as a century.
    let deadline = Instant::now()
        .checked_add(time)
        .unwrap_or_else(|| Instant::now() + CENTURY);
    let mut collected = Collected::default();
    loop {
        let Ok(event) = timeout_at(deadline, stream.next()).await else {
            let partial = collected.end(stream, limit).await;
            return Err(Error::ExecTimeout {
                after: time,
                partial,
            });
        };
        match event? {
            Some(ExecEvent::Exited(exit)) => return Ok(collected.into_output(Some(exit))),
            Some(event) => {
                if !collected.add(event, limit) {
                    let partial = collected.end(stream, limit).await;
                    return Err(Error::OutputLimit { limit, partial });
                }
            }
            None => return Ok(collected.into_output(None)),
        }
    }
}

#[derive(Default)]
struct Collected {
    stdout: BytesMut,
    stderr: BytesMut,
}

impl Collected {
    /// Answers whether all of it was within the limit.
    fn add(&mut self, event: ExecEvent, limit: usize) -> bool {
        let (buffer, bytes) = match event {
            ExecEvent::Stdout(bytes) => (&mut self.stdout, bytes),
            ExecEvent::Stderr(bytes) => (&mut self.stderr, bytes),
            ExecEvent::Started { .. } | ExecEvent::Exited(_) => return true,
        };
        let room = limit.saturating_sub(buffer.len());
        buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.len() <= room
    }

    /// Ends the command, waits a little for the guest to confirm it, and keeps
    /// what was printed meanwhile.
    async fn end(mut self, mut stream: ExecStream, limit: usize) -> Box<Output> {
        stream.kill();
        let confirmed = timeout(CONFIRMATION, async {
            loop {
                match stream.next().await {
                    Ok(Some(ExecEvent::Exited(exit))) => return Some(exit),
                    Ok(Some(event)) => {
                        self.add(event, limit);
                    }
                    Ok(None) | Err(_) => return None,
                }
            }
        })
        .await;
        Box::new(self.into_output(confirmed.ok().flatten()))
    }

    fn into_output(self, exit: Option<Exit>) -> Output {
        Output {
            exit,
            stdout: self.stdout.into(),
            stderr: self.stderr.into(),
        }
    }
}
