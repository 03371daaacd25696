use std::{
    io::{self, IsTerminal, Write},
    os::fd::{AsFd, OwnedFd},
    panic::{self, PanicHookInfo},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Puts the user's terminal into raw mode, and restores it on drop.
pub(crate) struct RawMode {
    terminal: OwnedFd,
    original: Termios,
    panics: DeferredPanics,
}

impl RawMode {
    /// Fails if standard input or standard output is not a terminal.
    pub(crate) fn check_terminal() -> anyhow::Result<()> {
        let stream = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
            (true, true) => return Ok(()),
            (false, _) => "standard input",
            _ => "standard output",
        };
        anyhow::bail!(
            "{stream} is not a terminal: use `vmcell exec ID -- CMD` or `vmcell run -- CMD`"
        )
    }

    pub(crate) fn enter() -> io::Result<Self> {
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        let mode = Self {
            original: tcgetattr(&terminal)?,
            terminal,
            panics: DeferredPanics::install_hook(),
        };
        mode.apply()?;
        Ok(mode)
    }

    /// Sets raw mode again: after SIGSTOP and SIGCONT, other programs may have
    /// changed the terminal.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let mut raw = self.original.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Fails only if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.original);
        self.panics.release();
    }
}

/// Holds back panic messages until the terminal is restored: in the middle of a
/// full-screen program they would be unreadable.
struct DeferredPanics(Arc<Mutex<PanicMessages>>);

#[derive(Default)]
struct PanicMessages {
    released: bool,
    text: String,
}

impl DeferredPanics {
    /// How many bytes of messages are kept.
    const MAX_BYTES: usize = 4096;

    fn install_hook() -> Self {
        let messages = Arc::new(Mutex::new(PanicMessages::default()));
        let previous_hook = panic::take_hook();
        let hook_messages = messages.clone();
        panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            let mut messages = hook_messages.lock().unwrap_or_else(PoisonError::into_inner);
            if messages.released {
                drop(messages);
                previous_hook(panic);
            } else if messages.text.len() < Self::MAX_BYTES {
                messages.text.push_str(&format!("{panic}\n"));
            }
        }));
        Self(messages)
    }

    fn release(&self) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.released = true;
        let _ = io::stderr().write_all(messages.text.as_bytes());
    }
}
