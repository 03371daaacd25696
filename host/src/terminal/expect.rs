use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use regex::Regex;
use tokio::time::Instant;

use super::{
    Exchange, Reply, Terminal, model::EndReason, plain_text::PlainTextFilter, record::Interaction,
    status::Inference, wait::Wait,
};
use crate::error::Error;

/// A wait for a pattern or a prompt to appear. It starts when it is awaited.
///
/// # Cancel safety
/// Cancel safe: no output is lost if the future is dropped.
#[must_use = "nothing happens unless it is awaited"]
#[derive(Debug)]
pub struct Expect<'a> {
    terminal: &'a Terminal,
    /// `None` waits for a shell's prompt.
    pattern: Option<Regex>,
    timeout: Duration,
}

/// The result of an [`Expect`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExpectOutcome {
    /// The match, or `None` if the timeout passed or the terminal ended first.
    pub found: Option<ExpectMatch>,
    /// The output since the last reply, and what the terminal waits for now.
    pub reply: Reply,
}

/// A match of an expected pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpectMatch {
    /// The whole match; for a prompt, the cursor's line.
    pub text: String,
    /// The capture groups of the expression, in order.
    pub groups: Vec<Option<String>>,
}

/// How many bytes of earlier output are searched again, for a match that spans
/// several reads.
const SEARCH_WINDOW: usize = 64 * 1024;

impl<'a> Expect<'a> {
    pub(super) fn pattern(terminal: &'a Terminal, pattern: Regex) -> Self {
        Self {
            terminal,
            pattern: Some(pattern),
            timeout: terminal.core().timeout,
        }
    }

    pub(super) fn prompt(terminal: &'a Terminal) -> Self {
        Self {
            terminal,
            pattern: None,
            timeout: terminal.core().timeout,
        }
    }

    /// Sets how long to wait at most. The default is the terminal's
    /// [option](super::TerminalOptions::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn perform(self) -> Result<ExpectOutcome, Error> {
        let terminal = self.terminal;
        let ended = terminal.core().shared.model().ended;
        if let Some(EndReason::LinkLost(lost)) = ended {
            return Err(terminal.core().vm.explain(lost).await);
        }
        let what = self.pattern.as_ref().map(Regex::as_str);
        terminal.log(Interaction::expect(what)).await;
        let mut wait = Wait::new(terminal, Some(Duration::MAX), self.timeout);
        let found = match &self.pattern {
            Some(pattern) => search(terminal, pattern, &mut wait).await,
            None => wait.prompt().await?.then(|| ExpectMatch {
                text: terminal.core().shared.model().masked_screen().cursor_line(),
                groups: Vec::new(),
            }),
        };
        let Inference { status, prompt, .. } = wait.status().await?;
        let reply = Reply {
            timed_out: Instant::now() >= wait.deadline() && found.is_none(),
            status,
            prompt,
            ..Reply::take(terminal, None, Exchange::DEFAULT_MAX_BYTES)
        };
        terminal.log(Interaction::reply(&reply)).await;
        Ok(ExpectOutcome { found, reply })
    }
}

async fn search(terminal: &Terminal, pattern: &Regex, wait: &mut Wait<'_>) -> Option<ExpectMatch> {
    let shared = &terminal.core().shared;
    let (began, mut late_mask_count) = {
        let model = shared.model();
        (model.transcript.end(), model.late_mask_count)
    };
    let mut read_to = began;
    let mut filter = PlainTextFilter::new();
    let mut recent = String::new();
    loop {
        let (screen, ended) = {
            let mut model = shared.model();
            if late_mask_count != model.late_mask_count {
                // Output that was read already has been masked since.
                late_mask_count = model.late_mask_count;
                let window = model.transcript.end().saturating_sub(SEARCH_WINDOW as u64);
                read_to = began.max(window);
                filter = PlainTextFilter::new();
                recent.clear();
            }
            while read_to < model.transcript.end() {
                let piece = model.transcript.read(read_to, usize::MAX);
                read_to = piece.end();
                filter.feed(&piece.bytes, &mut recent);
            }
            model.mask_secrets(&mut recent);
            (model.masked_screen().text(), model.ended.is_some())
        };
        for text in [&screen, &recent] {
            if let Some(found) = find_match(pattern, text) {
                return Some(found);
            }
        }
        if recent.len() > SEARCH_WINDOW {
            let mut cut = recent.len() - SEARCH_WINDOW;
            while !recent.is_char_boundary(cut) {
                cut += 1;
            }
            recent.drain(..cut);
        }
        if ended || !wait.next_change().await {
            return None;
        }
    }
}

fn find_match(pattern: &Regex, text: &str) -> Option<ExpectMatch> {
    let captures = pattern.captures(text)?;
    let mut groups = captures
        .iter()
        .map(|group| group.map(|group| group.as_str().to_owned()));
    Some(ExpectMatch {
        text: groups.next().flatten().unwrap_or_default(),
        groups: groups.collect(),
    })
}

impl<'a> IntoFuture for Expect<'a> {
    type Output = Result<ExpectOutcome, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.perform())
    }
}
