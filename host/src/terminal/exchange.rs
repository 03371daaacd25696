use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use bytes::Bytes;
use zeroize::Zeroizing;

use super::{
    KeyPress, Reply, Terminal,
    key::CursorKeys,
    model::EndReason,
    paste::paste,
    record::Interaction,
    status::Inference,
    wait::{Until, Wait},
};
use crate::{error::Error, process::Signal};

/// An operation on a terminal and the wait for its result. It starts when it
/// is awaited.
///
/// The wait ends when the program waits for input or has ended, or when the
/// [timeout](Self::timeout) has passed. Where that is not clear, because the program
/// reads single keys or uses the whole screen, the wait ends when the terminal has
/// printed nothing for a second.
///
/// A program that never waits for input, such as a server, takes the whole timeout.
/// With a [quiet time](Self::quiet), silence ends the wait for any program.
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
/// If the future is dropped, part of the input may have been typed. No output
/// is lost.
#[must_use = "nothing happens unless it is awaited"]
#[derive(Debug)]
pub struct Exchange<'a> {
    terminal: &'a Terminal,
    action: Action,
    quiet: Option<Duration>,
    timeout: Duration,
    max_bytes: usize,
    until: Until,
}

/// The operation to perform.
pub(super) enum Action {
    Type(Bytes, Interaction),
    Key(KeyPress),
    Paste(String),
    Password(Zeroizing<Vec<u8>>),
    Signal(Signal),
    /// Sends nothing and waits for new output.
    Poll,
    /// Sends nothing and reads output from this offset on.
    Read(u64),
}

/// Omits what is typed, which may be a secret.
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
    /// Maximum number of bytes in a reply, if not set.
    pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

    pub(super) fn new(terminal: &'a Terminal, action: Action) -> Self {
        let core = terminal.core();
        Self {
            terminal,
            until: match action {
                Action::Poll => Until::Output,
                Action::Read(_) => Until::Now,
                _ => Until::Settled,
            },
            action,
            quiet: core.quiet,
            timeout: core.timeout,
            max_bytes: Self::DEFAULT_MAX_BYTES,
        }
    }

    /// Ends the wait when the terminal has printed nothing for this long, even if a
    /// program clearly runs. The default is the terminal's
    /// [option](super::TerminalOptions::quiet).
    pub fn quiet(mut self, silence: Duration) -> Self {
        self.quiet = Some(silence);
        self
    }

    /// Sets how long to wait at most. The default is the terminal's
    /// [option](super::TerminalOptions::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Limits the bytes in the reply. The next reply starts with the rest.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Waits for the quiet time, also in [`Terminal::read`], which otherwise
    /// returns at once, and in [`Terminal::poll_output`], which otherwise returns
    /// with the first byte.
    pub fn wait_for_idle(mut self) -> Self {
        self.until = Until::Quiet;
        self
    }

    async fn perform(self) -> Result<Reply, Error> {
        let Self {
            terminal,
            action,
            until,
            ..
        } = self;
        let ended = terminal.core().shared.model().ended;
        if let Some(EndReason::LinkLost(lost)) = ended {
            return Err(terminal.core().vm.explain(lost).await);
        }
        let cursor = match action {
            Action::Read(cursor) => Some(cursor),
            _ => None,
        };
        // Created before the input is sent, so that it misses no output.
        let mut wait = Wait::new(terminal, self.quiet, self.timeout);
        if matches!(&action, Action::Type(bytes, _) if bytes.ends_with(b"\r")) {
            wait = wait.for_line();
        }
        let pauses = terminal.core().vm.session().pauses();
        let in_time = match ended {
            // The program takes no input any more; the status reports it.
            Some(_) => true,
            None => match pauses
                .timeout(self.timeout, perform_action(terminal, action))
                .await
            {
                Some(done) => {
                    done?;
                    wait.until(until).await?
                }
                None => false,
            },
        };
        let Inference { status, prompt, .. } = wait.status().await?;
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

async fn perform_action(terminal: &Terminal, action: Action) -> Result<(), Error> {
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
    // If the program has ended meanwhile, the reply's status reports it.
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
