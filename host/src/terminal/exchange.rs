use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use bytes::Bytes;
use tokio::time::timeout_at;
use zeroize::Zeroizing;

use super::{
    KeyPress, Reply, Terminal,
    key::CursorKeys,
    model::Over,
    paste::paste,
    record::Interaction,
    wait::{Until, Wait},
};
use crate::error::Error;

/// Something that is done to a terminal, and the wait for what comes of it.
/// It begins when it is awaited.
///
/// The wait is over when the terminal has been [silent](Self::quiet) for long
/// enough, or sooner when it has ended a line and plainly waits for input, or when the
/// [timeout](Self::timeout) has passed.
///
/// ```no_run
/// # async fn example(terminal: vmcell::terminal::Terminal) -> Result<(), vmcell::Error> {
/// use std::time::Duration;
///
/// let reply = terminal.run("make").timeout(Duration::from_secs(600)).await?;
/// println!("{:?}: {}", reply.status, reply.text);
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// If the future is dropped, a part may have been typed. What the terminal
/// prints is not lost.
#[must_use = "nothing happens unless it is awaited"]
#[derive(Debug)]
pub struct Exchange<'a> {
    terminal: &'a Terminal,
    action: Action,
    quiet: Duration,
    timeout: Duration,
    max_bytes: usize,
    until: Until,
}

/// What is done.
pub(super) enum Action {
    Type(Bytes, Interaction),
    Key(KeyPress),
    Paste(String),
    Password(Zeroizing<Vec<u8>>),
    Signal(u8),
    /// Nothing; somebody waits for output.
    Poll,
    /// Nothing; somebody wants what was printed from here on.
    Read(u64),
}

/// What is typed may be a secret.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(bytes, _) => write!(f, "Type({} bytes)", bytes.len()),
            Self::Key(_) => f.write_str("Key"),
            Self::Paste(text) => write!(f, "Paste({} bytes)", text.len()),
            Self::Password(_) => f.write_str("Password"),
            Self::Signal(signal) => write!(f, "Signal({signal})"),
            Self::Poll => f.write_str("Poll"),
            Self::Read(offset) => write!(f, "Read({offset})"),
        }
    }
}

impl<'a> Exchange<'a> {
    /// How many bytes a reply holds at most, if not set.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

    pub(super) fn new(terminal: &'a Terminal, action: Action) -> Self {
        let core = terminal.core();
        Self {
            terminal,
            until: match action {
                Action::Poll => Until::Output,
                Action::Read(_) => Until::Now,
                _ => Until::Rest,
            },
            action,
            quiet: core.quiet,
            timeout: core.timeout,
            max_bytes: Self::DEFAULT_MAX_BYTES,
        }
    }

    /// How long the terminal must be silent for the wait to be over; as the
    /// terminal was [opened with](super::TerminalOptions::quiet) if not set.
    pub fn quiet(mut self, silence: Duration) -> Self {
        self.quiet = silence;
        self
    }

    /// How long to wait at most; as the terminal was [opened
    /// with](super::TerminalOptions::timeout) if not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes the reply holds at most. The rest comes with the next.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Waits for silence, also where [reading](Terminal::read) would answer at
    /// once and [polling](Terminal::poll_output) with the first byte.
    pub fn wait_for_idle(mut self) -> Self {
        self.until = Until::Silence;
        self
    }

    async fn perform(self) -> Result<Reply, Error> {
        let Self {
            terminal,
            action,
            until,
            ..
        } = self;
        let over = terminal.core().shared.model().over;
        if let Some(Over::Link(lost)) = over {
            return Err(terminal.core().vm.explain(lost).await);
        }
        let cursor = match action {
            Action::Read(cursor) => Some(cursor),
            _ => None,
        };
        // It looks at the terminal as it is before anything is typed.
        let mut wait = Wait::new(terminal, self.quiet, self.timeout);
        let in_time = match over {
            // It reads no more, and the reply says so.
            Some(_) => true,
            None => match timeout_at(wait.deadline(), act(terminal, action)).await {
                Ok(done) => {
                    done?;
                    wait.until(until).await?
                }
                Err(_) => false,
            },
        };
        let (status, prompt) = wait.status().await?;
        let reply = Reply {
            timed_out: !in_time,
            status,
            prompt,
            ..Reply::take(terminal, cursor, self.max_bytes)
        };
        terminal.log(Interaction::reply(&reply)).await;
        Ok(reply)
    }
}

async fn act(terminal: &Terminal, action: Action) -> Result<(), Error> {
    let bytes = match action {
        Action::Poll | Action::Read(_) => return Ok(()),
        Action::Signal(signal) => {
            terminal.log(Interaction::signal(signal)).await;
            return terminal.signal(signal).await;
        }
        Action::Password(secret) => {
            terminal.core().shared.model().hide(&secret);
            terminal.log(Interaction::password()).await;
            let line = Zeroizing::new([&secret[..], b"\r"].concat());
            return terminal.send_secret(&line).await;
        }
        Action::Type(bytes, interaction) => {
            terminal.log(interaction).await;
            bytes
        }
        Action::Key(key) => {
            terminal.log(Interaction::key(&key)).await;
            let modes = terminal.core().shared.model().emulator.modes();
            let cursor_keys = match modes.application_cursor_keys {
                true => CursorKeys::Application,
                false => CursorKeys::Normal,
            };
            let bytes = key.encode(cursor_keys);
            bytes
                .map_err(|error| Error::Invalid(error.to_string()))?
                .into()
        }
        Action::Paste(text) => {
            terminal.log(Interaction::paste(&text)).await;
            let modes = terminal.core().shared.model().emulator.modes();
            paste(&text, modes.bracketed_paste).into()
        }
    };
    // A program that has ended meanwhile reads no more, which the reply says.
    terminal.send(bytes).await;
    Ok(())
}

impl<'a> IntoFuture for Exchange<'a> {
    type Output = Result<Reply, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.perform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_not_printed() {
        let secret = "hunter2";
        let actions = [
            Action::Type(Bytes::from(secret), Interaction::paste(secret)),
            Action::Paste(secret.to_owned()),
            Action::Password(Zeroizing::new(secret.into())),
        ];
        for action in actions {
            let printed = format!("{action:?}");
            assert!(!printed.contains(secret), "{printed}");
        }
        let key = Action::Key(KeyPress::control('h'));
        assert_eq!(format!("{key:?}"), "Key");
    }
}
