//! Signals that make the program end cleanly.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::SIGNAL_BASE;

/// Receives some signals, which have no other effect once this exists.
pub struct Signals(Vec<(Signal, u8)>);

impl Signals {
    /// Receives SIGINT and SIGTERM.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn new() -> io::Result<Self> {
        Self::for_kinds(&[SignalKind::interrupt(), SignalKind::terminate()])
    }

    /// Also receives SIGQUIT and SIGHUP, for commands that have to clean up
    /// before they exit. A SIGHUP that is ignored, as under `nohup`, stays
    /// ignored.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn all() -> io::Result<Self> {
        let mut kinds = vec![
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::quit(),
        ];
        if !ignores(SignalKind::hangup())? {
            kinds.push(SignalKind::hangup());
        }
        Self::for_kinds(&kinds)
    }

    fn for_kinds(kinds: &[SignalKind]) -> io::Result<Self> {
        let streams = kinds.iter().map(|kind| {
            // Signal numbers are small.
            let number = u8::try_from(kind.as_raw_value()).unwrap_or(0);
            Ok((signal(*kind)?, SIGNAL_BASE.saturating_add(number)))
        });
        Ok(Self(streams.collect::<io::Result<_>>()?))
    }

    /// Waits for the next signal, and returns the exit code for it.
    pub async fn next(&mut self) -> u8 {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<u8> {
        for (stream, code) in &mut self.0 {
            if stream.poll_recv(context).is_ready() {
                return Poll::Ready(*code);
            }
        }
        Poll::Pending
    }
}

/// Returns whether this process ignores a signal, by the mask `SigIgn` of
/// proc_pid_status(5), in which the lowest bit is signal 1.
fn ignores(kind: SignalKind) -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let bit = kind.as_raw_value().saturating_sub(1);
    Ok(mask & (1 << bit) != 0)
}
