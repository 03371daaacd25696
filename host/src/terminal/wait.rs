use std::{pin::pin, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{Prompt, Status, Terminal};
use crate::{error::Error, process::ExecFailure};

/// A wait for the result of an operation on a terminal. Output wakes it up and
/// restarts the timer of the quiet time.
pub(super) struct Wait<'a> {
    terminal: &'a Terminal,
    changes: watch::Receiver<u64>,
    quiet: Duration,
    deadline: Instant,
    started: Instant,
    /// The end of the transcript that was searched for a line end.
    searched_to: u64,
    /// Whether a line has ended since the start. Output before that may be the
    /// rest of a prompt, or of the echo.
    line_ended: bool,
    /// The last status, and the end of the transcript at that time.
    last_status: Option<(Status, Prompt, u64)>,
}

/// The condition that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Ends at once.
    Now,
    /// Output that no reply has returned.
    Output,
    /// No output for the quiet time.
    Quiet,
    /// No output for the quiet time, or a settled status after the end of a line:
    /// output before that may be the echo, or the rest of the prompt.
    Settled,
}

/// How long output must pause before the guest is queried for the status.
const SETTLE_TIME: Duration = Duration::from_millis(30);

/// Limits timeouts, so that deadlines do not overflow.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// What woke a wait.
enum WakeReason {
    Change,
    Timeout,
}

impl<'a> Wait<'a> {
    pub(super) fn new(terminal: &'a Terminal, quiet: Duration, timeout: Duration) -> Self {
        let shared = &terminal.core().shared;
        let started = Instant::now();
        Self {
            terminal,
            changes: shared.subscribe(),
            quiet: quiet.min(MAX_WAIT),
            deadline: started + timeout.min(MAX_WAIT),
            started,
            searched_to: shared.model().transcript.end(),
            line_ended: false,
            last_status: None,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits for a condition. Returns false if the timeout passed first.
    pub(super) async fn until(&mut self, until: Until) -> Result<bool, Error> {
        match until {
            Until::Now => Ok(true),
            Until::Output => Ok(self.new_output().await),
            Until::Quiet => self.quiet(false).await,
            Until::Settled => self.quiet(true).await,
        }
    }

    /// Returns the current status.
    pub(super) async fn status(&mut self) -> Result<(Status, Prompt), Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        match self.last_status {
            // A running program may have started to wait without any output.
            Some((status, prompt, at)) if at == end && status.is_settled() => Ok((status, prompt)),
            _ => self.query_status().await,
        }
    }

    /// Waits for a shell's prompt. Returns false if the timeout passed first or the
    /// terminal ended.
    pub(super) async fn prompt(&mut self) -> Result<bool, Error> {
        loop {
            let silence = {
                let model = self.terminal.core().shared.model();
                if model.ended.is_some() {
                    return Ok(false);
                }
                model.silence()
            };
            if silence >= SETTLE_TIME && self.status().await?.0 == Status::Ready {
                return Ok(true);
            }
            let settled = match self.last_status {
                // The status does not change without output.
                Some(_) if silence >= SETTLE_TIME => self.deadline,
                _ => Instant::now() + SETTLE_TIME.saturating_sub(silence),
            };
            if Instant::now() >= self.deadline {
                return Ok(false);
            }
            self.sleep(settled.min(self.deadline)).await;
        }
    }

    /// Waits for the next change. Returns false if the timeout passed first.
    pub(super) async fn next_change(&mut self) -> bool {
        matches!(self.sleep(self.deadline).await, WakeReason::Change)
    }

    async fn new_output(&mut self) -> bool {
        loop {
            {
                let model = self.terminal.core().shared.model();
                if model.transcript.end() > model.reply_offset || model.ended.is_some() {
                    return true;
                }
            }
            if !self.next_change().await {
                return false;
            }
        }
    }

    async fn quiet(&mut self, may_end_early: bool) -> Result<bool, Error> {
        loop {
            let (end, last, ended) = {
                let model = self.terminal.core().shared.model();
                let last = model.last_output.map(Instant::from_std);
                (model.transcript.end(), last, model.ended.is_some())
            };
            let last = last.map_or(self.started, |last| last.max(self.started));
            let now = Instant::now();
            if ended || now >= last + self.quiet {
                return Ok(true);
            }
            if now >= self.deadline {
                return Ok(false);
            }
            let is_known = self.last_status.is_some_and(|(.., at)| at == end);
            let query = may_end_early && !is_known && self.ended_a_line();
            if query && now >= last + SETTLE_TIME {
                let is_settled = self.query_status().await?.0.is_settled();
                if is_settled && !self.has_more_output().await? {
                    return Ok(true);
                }
                continue;
            }
            let quiet_at = last + self.quiet;
            let next = if query { last + SETTLE_TIME } else { quiet_at };
            self.sleep(next.min(quiet_at).min(self.deadline)).await;
        }
    }

    fn ended_a_line(&mut self) -> bool {
        let model = self.terminal.core().shared.model();
        while !self.line_ended && self.searched_to < model.transcript.end() {
            let piece = model.transcript.read(self.searched_to, usize::MAX);
            self.searched_to = piece.end();
            self.line_ended = piece.bytes.contains(&b'\n');
        }
        self.line_ended
    }

    async fn query_status(&mut self) -> Result<(Status, Prompt), Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        let (status, prompt) = self.terminal.status().await?;
        self.last_status = Some((status, prompt, end));
        Ok((status, prompt))
    }

    /// Returns whether the guest has output that has not arrived here. The
    /// status overtakes output, and may be that after it.
    async fn has_more_output(&self) -> Result<bool, Error> {
        let core = self.terminal.core();
        let info = core.vm.processes().info(core.id).await;
        let printed = ExecFailure::found(info)?.map_or(0, |info| info.stdout.end);
        Ok(printed > core.shared.model().transcript.end())
    }

    async fn sleep(&mut self, until: Instant) -> WakeReason {
        let timer = pin!(sleep_until(until));
        tokio::select! {
            // The sender lives as long as the terminal.
            _ = self.changes.changed() => WakeReason::Change,
            () = timer => WakeReason::Timeout,
        }
    }
}
