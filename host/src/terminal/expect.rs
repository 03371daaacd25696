use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use regex::Regex;
use tokio::time::Instant;

use super::{
    Exchange, Reply, Terminal, model::Over, plain::Plain, record::Interaction, wait::Wait,
};
use crate::error::Error;

/// A wait for something to appear on a terminal. It begins when it is awaited.
///
/// # Cancel safety
/// Cancel safe: what the terminal prints is not lost if the future is dropped.
#[must_use = "nothing happens unless it is awaited"]
#[derive(Debug)]
pub struct Expect<'a> {
    terminal: &'a Terminal,
    /// None: a shell's prompt.
    pattern: Option<Regex>,
    timeout: Duration,
}

/// What a wait for something came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expected {
    /// What was found. None: nothing within the timeout, or the terminal ended.
    pub found: Option<Found>,
    /// What was printed meanwhile, and what the terminal waits for now.
    pub reply: Reply,
}

/// What matched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The whole of it.
    pub text: String,
    /// What the groups of the expression matched, in their order.
    pub groups: Vec<Option<String>>,
}

/// As much of what has come is looked at again for a match that began earlier.
const MEMORY: usize = 64 * 1024;

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

    /// How long to wait at most; as the terminal was [opened
    /// with](super::TerminalOptions::timeout) if not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn perform(self) -> Result<Expected, Error> {
        let terminal = self.terminal;
        let over = terminal.core().shared.model().over;
        if let Some(Over::Link(lost)) = over {
            return Err(terminal.core().vm.explain(lost).await);
        }
        let what = self.pattern.as_ref().map(Regex::as_str);
        terminal.log(Interaction::expect(what)).await;
        let mut wait = Wait::new(terminal, Duration::MAX, self.timeout);
        let found = match &self.pattern {
            Some(pattern) => search(terminal, pattern, &mut wait).await,
            None => wait.prompt().await?.then(|| Found {
                text: terminal.core().shared.model().safe_emulator().cursor_line(),
                groups: Vec::new(),
            }),
        };
        let (status, prompt) = wait.status().await?;
        let reply = Reply {
            timed_out: Instant::now() >= wait.deadline() && found.is_none(),
            status,
            prompt,
            ..Reply::take(terminal, None, Exchange::DEFAULT_MAX_BYTES)
        };
        terminal.log(Interaction::reply(&reply)).await;
        Ok(Expected { found, reply })
    }
}

async fn search(terminal: &Terminal, pattern: &Regex, wait: &mut Wait<'_>) -> Option<Found> {
    let shared = &terminal.core().shared;
    let (began, mut late_masks) = {
        let model = shared.model();
        (model.transcript.end(), model.late_masks)
    };
    let mut seen = began;
    let mut plain = Plain::new();
    let mut recent = String::new();
    loop {
        let (screen, over) = {
            let mut model = shared.model();
            if late_masks != model.late_masks {
                // What has come was masked since.
                late_masks = model.late_masks;
                let memory = model.transcript.end().saturating_sub(MEMORY as u64);
                seen = began.max(memory);
                plain = Plain::new();
                recent.clear();
            }
            while seen < model.transcript.end() {
                let piece = model.transcript.read(seen, usize::MAX);
                seen = piece.end();
                plain.feed(&piece.bytes, &mut recent);
            }
            model.mask_text(&mut recent);
            (model.safe_emulator().text(), model.over.is_some())
        };
        for text in [&screen, &recent] {
            if let Some(found) = find(pattern, text) {
                return Some(found);
            }
        }
        if recent.len() > MEMORY {
            let mut cut = recent.len() - MEMORY;
            while !recent.is_char_boundary(cut) {
                cut += 1;
            }
            recent.drain(..cut);
        }
        if over || !wait.news().await {
            return None;
        }
    }
}

fn find(pattern: &Regex, text: &str) -> Option<Found> {
    let captures = pattern.captures(text)?;
    let mut groups = captures
        .iter()
        .map(|group| group.map(|group| group.as_str().to_owned()));
    Some(Found {
        text: groups.next().flatten().unwrap_or_default(),
        groups: groups.collect(),
    })
}

impl<'a> IntoFuture for Expect<'a> {
    type Output = Result<Expected, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.perform())
    }
}
