use std::{
    io::{self, IsTerminal, Write},
    os::fd::{AsFd, OwnedFd},
    panic::{self, PanicHookInfo},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Puts the user's terminal into raw mode, and restores it on drop.
pub(super) struct RawMode {
    terminal: OwnedFd,
    before: Termios,
    last_words: LastWords,
}

impl RawMode {
    /// Fails if standard input or standard output is not a terminal.
    pub(super) fn check() -> anyhow::Result<()> {
        let missing = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
            (true, true) => return Ok(()),
            (false, _) => "standard input",
            _ => "standard output",
        };
        anyhow::bail!(
            "{missing} is no terminal: `vmcell exec ID -- CMD` and `vmcell run -- CMD` need none"
        )
    }

    pub(super) fn enter() -> io::Result<Self> {
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        let mode = Self {
            before: tcgetattr(&terminal)?,
            terminal,
            last_words: LastWords::keep(),
        };
        mode.apply()?;
        Ok(mode)
    }

    /// Sets raw mode again: after SIGSTOP and SIGCONT, other programs may have
    /// changed the terminal.
    pub(super) fn apply(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Fails only if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        self.last_words.tell();
    }
}

/// Holds back panic messages until the terminal is restored: in the middle of a
/// full-screen program they would be unreadable.
struct LastWords(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    told: bool,
    text: String,
}

impl LastWords {
    /// How many bytes of messages are kept.
    const LIMIT: usize = 4096;

    fn keep() -> Self {
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let before = panic::take_hook();
        let hook_waiting = waiting.clone();
        panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            let mut waiting = hook_waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.told {
                drop(waiting);
                before(panic);
            } else if waiting.text.len() < Self::LIMIT {
                waiting.text.push_str(&format!("{panic}\n"));
            }
        }));
        Self(waiting)
    }

    fn tell(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.told = true;
        let _ = io::stderr().write_all(waiting.text.as_bytes());
    }
}
