use std::{pin::pin, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{Status, Terminal, TerminalOptions, status::Inference};
use crate::{error::Error, process::ExecFailure};

/// A wait for the result of an operation on a terminal. Output wakes it up and
/// restarts the timer of the quiet time.
///
/// Nothing reports that a program starts to wait for input without printing
/// anything. While one runs, it is looked at again after each quiet time.
pub(super) struct Wait<'a> {
    terminal: &'a Terminal,
    changes: watch::Receiver<u64>,
    quiet: Duration,
    /// Whether the quiet time ends the wait while a program clearly runs.
    may_interrupt: bool,
    /// The deadline, if the VM is not paused meanwhile.
    deadline: Instant,
    /// How long the VM was paused before.
    paused_before: Duration,
    started: Instant,
    /// The end of the transcript that was searched for a line end.
    searched_to: u64,
    /// Whether a line has ended since the start. Output before that may be the
    /// rest of a prompt, or of the echo.
    line_ended: bool,
    /// Whether a line is entered, whose end every line editor echoes.
    enters_line: bool,
    /// When a program was last seen to run at the end of a quiet time.
    busy_at: Option<Instant>,
    /// What was inferred last, and the end of the transcript at that time.
    last_status: Option<(Inference, u64)>,
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
    /// No output for the quiet time, unless a program clearly runs, or a settled
    /// status after the end of a line: output before that may be the echo, or the
    /// rest of the prompt.
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
    pub(super) fn new(terminal: &'a Terminal, quiet: Option<Duration>, timeout: Duration) -> Self {
        let shared = &terminal.core().shared;
        let started = Instant::now();
        Self {
            terminal,
            changes: shared.subscribe(),
            quiet: quiet
                .unwrap_or(TerminalOptions::DEFAULT_QUIET)
                .min(MAX_WAIT),
            may_interrupt: quiet.is_some(),
            deadline: started + timeout.min(MAX_WAIT),
            paused_before: terminal.core().vm.session().pauses().total(),
            started,
            searched_to: shared.model().transcript.end(),
            line_ended: false,
            enters_line: false,
            busy_at: None,
            last_status: None,
        }
    }

    /// Waits also until a line editor has echoed the end of the line that is entered.
    pub(super) fn for_line(mut self) -> Self {
        self.enters_line = true;
        self
    }

    /// Returns the deadline. The time of pauses does not count, so it may be later
    /// when it is over.
    pub(super) fn deadline(&self) -> Instant {
        let paused = self.terminal.core().vm.session().pauses().total();
        self.deadline + paused.saturating_sub(self.paused_before)
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
    pub(super) async fn status(&mut self) -> Result<Inference, Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        match self.last_status {
            // A running program may have started to wait without any output.
            Some((inferred, at)) if at == end && inferred.status.is_settled() => Ok(inferred),
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
            if silence >= SETTLE_TIME && self.status().await?.status == Status::Ready {
                return Ok(true);
            }
            let settled = match self.last_status {
                // The status does not change without output.
                Some(_) if silence >= SETTLE_TIME => self.deadline(),
                _ => Instant::now() + SETTLE_TIME.saturating_sub(silence),
            };
            if Instant::now() >= self.deadline() {
                return Ok(false);
            }
            self.sleep(settled.min(self.deadline())).await;
        }
    }

    /// Waits for the next change. Returns false if the timeout passed first.
    pub(super) async fn next_change(&mut self) -> bool {
        loop {
            match self.sleep(self.deadline()).await {
                WakeReason::Change => return true,
                WakeReason::Timeout if Instant::now() >= self.deadline() => return false,
                WakeReason::Timeout => {}
            }
        }
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
            if ended {
                return Ok(true);
            }
            let last = last.max(self.busy_at).unwrap_or(self.started);
            let last = last.max(self.started);
            let now = Instant::now();
            if now >= last + self.quiet {
                if !may_end_early || self.may_interrupt || !self.is_busy().await? {
                    return Ok(true);
                }
                self.busy_at = Some(Instant::now());
                continue;
            }
            if now >= self.deadline() {
                return Ok(false);
            }
            let is_known = self.last_status.is_some_and(|(_, at)| at == end);
            let query = may_end_early && !is_known && self.ended_a_line();
            if query && now >= last + SETTLE_TIME {
                let is_settled = self.query_status().await?.status.is_settled();
                if is_settled && !self.has_more_output().await? {
                    return Ok(true);
                }
                continue;
            }
            let quiet_at = last + self.quiet;
            let next = if query { last + SETTLE_TIME } else { quiet_at };
            self.sleep(next.min(quiet_at).min(self.deadline())).await;
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

    /// Returns whether a program clearly runs, has not taken the line that was
    /// entered, or has output that is on its way.
    async fn is_busy(&mut self) -> Result<bool, Error> {
        let inferred = self.query_status().await?;
        let awaits_echo = self.enters_line && inferred.edits_line && !self.ended_a_line();
        Ok(inferred.is_busy || awaits_echo || self.has_more_output().await?)
    }

    async fn query_status(&mut self) -> Result<Inference, Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        let inferred = self.terminal.status().await?;
        self.last_status = Some((inferred, end));
        Ok(inferred)
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
        let pauses = self.terminal.core().vm.session().pauses();
        let timer = pin!(async {
            // Nothing changes before.
            pauses.running().await;
            sleep_until(until).await;
        });
        tokio::select! {
            // The sender lives as long as the terminal.
            _ = self.changes.changed() => WakeReason::Change,
            () = timer => WakeReason::Timeout,
        }
    }
}
