use std::{pin::pin, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{Prompt, Status, Terminal};
use crate::error::Error;

/// The wait for what comes of something that is done to a terminal. Output wakes
/// it, and silence is a timer that output sets anew.
pub(super) struct Wait<'a> {
    terminal: &'a Terminal,
    news: watch::Receiver<u64>,
    quiet: Duration,
    deadline: Instant,
    began: Instant,
    /// Up to where the transcript was looked through for the end of a line.
    seen: u64,
    /// Whether a line has ended since it began. Before that, what is printed
    /// may be the rest of a prompt, or of the echo.
    line_ended: bool,
    /// What the terminal was found to do, and where its transcript ended then.
    found: Option<(Status, Prompt, u64)>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Nothing.
    Now,
    /// Output that no reply has told.
    Output,
    /// Silence.
    Silence,
    /// Silence, or that it plainly waits for input after it has ended a line:
    /// what came before that may be the echo, or the rest of the prompt.
    Rest,
}

/// After this silence a look at the guest is worth its round trip.
const SETTLE: Duration = Duration::from_millis(30);

/// Who waits for longer waits for ever, as far as anybody can tell.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What woke a wait.
enum Woken {
    News,
    Time,
}

impl<'a> Wait<'a> {
    pub(super) fn new(terminal: &'a Terminal, quiet: Duration, timeout: Duration) -> Self {
        let shared = &terminal.core().shared;
        let began = Instant::now();
        Self {
            terminal,
            news: shared.news(),
            quiet: quiet.min(LONGEST),
            deadline: began + timeout.min(LONGEST),
            began,
            seen: shared.model().transcript.end(),
            line_ended: false,
            found: None,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits. False: the time was over before.
    pub(super) async fn until(&mut self, until: Until) -> Result<bool, Error> {
        match until {
            Until::Now => Ok(true),
            Until::Output => Ok(self.output().await),
            Until::Silence => self.rest(false).await,
            Until::Rest => self.rest(true).await,
        }
    }

    /// What the terminal does now.
    pub(super) async fn status(&mut self) -> Result<(Status, Prompt), Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        match self.found {
            // What runs may have come to ask for something without a word.
            Some((status, prompt, at)) if at == end && status.is_settled() => Ok((status, prompt)),
            _ => self.look().await,
        }
    }

    /// Waits until a shell's prompt is there.
    pub(super) async fn prompt(&mut self) -> Result<bool, Error> {
        loop {
            let silence = {
                let model = self.terminal.core().shared.model();
                if model.over.is_some() {
                    return Ok(false);
                }
                model.silence()
            };
            if silence >= SETTLE && self.status().await?.0 == Status::Ready {
                return Ok(true);
            }
            let settled = match self.found {
                // Nothing changes before something is printed.
                Some(_) if silence >= SETTLE => self.deadline,
                _ => Instant::now() + SETTLE.saturating_sub(silence),
            };
            if Instant::now() >= self.deadline {
                return Ok(false);
            }
            self.sleep(settled.min(self.deadline)).await;
        }
    }

    /// Waits for the next thing that happens. False: the time was over before.
    pub(super) async fn news(&mut self) -> bool {
        matches!(self.sleep(self.deadline).await, Woken::News)
    }

    async fn output(&mut self) -> bool {
        loop {
            {
                let model = self.terminal.core().shared.model();
                if model.transcript.end() > model.told || model.over.is_some() {
                    return true;
                }
            }
            if !self.news().await {
                return false;
            }
        }
    }

    async fn rest(&mut self, may_end_early: bool) -> Result<bool, Error> {
        loop {
            let (end, last, over) = {
                let model = self.terminal.core().shared.model();
                let last = model.last_output.map(Instant::from_std);
                (model.transcript.end(), last, model.over.is_some())
            };
            let last = last.map_or(self.began, |last| last.max(self.began));
            let now = Instant::now();
            if over || now >= last + self.quiet {
                return Ok(true);
            }
            if now >= self.deadline {
                return Ok(false);
            }
            let looked = self.found.is_some_and(|(.., at)| at == end);
            let look = may_end_early && !looked && self.ended_a_line();
            if look && now >= last + SETTLE {
                if self.look().await?.0.is_settled() {
                    return Ok(true);
                }
                continue;
            }
            let silent = last + self.quiet;
            let next = if look { last + SETTLE } else { silent };
            self.sleep(next.min(silent).min(self.deadline)).await;
        }
    }

    fn ended_a_line(&mut self) -> bool {
        let model = self.terminal.core().shared.model();
        while !self.line_ended && self.seen < model.transcript.end() {
            let piece = model.transcript.read(self.seen, usize::MAX);
            self.seen = piece.end();
            self.line_ended = piece.bytes.contains(&b'\n');
        }
        self.line_ended
    }

    async fn look(&mut self) -> Result<(Status, Prompt), Error> {
        let end = self.terminal.core().shared.model().transcript.end();
        let (status, prompt) = self.terminal.status().await?;
        self.found = Some((status, prompt, end));
        Ok((status, prompt))
    }

    async fn sleep(&mut self, until: Instant) -> Woken {
        let timer = pin!(sleep_until(until));
        tokio::select! {
            // The sender lives as long as the terminal.
            _ = self.news.changed() => Woken::News,
            () = timer => Woken::Time,
        }
    }
}
