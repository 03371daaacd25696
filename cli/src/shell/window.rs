use std::io;

use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use vmcell::terminal::TerminalSize;

/// The size of the user's terminal.
pub(super) struct Window {
    changed: Signal,
    continued: Signal,
}

impl Window {
    /// From now on changes are noticed.
    pub(super) fn watch() -> io::Result<Self> {
        let continued = rustix::process::Signal::CONT.as_raw();
        Ok(Self {
            changed: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(continued))?,
        })
    }

    /// Waits until the size may be another, or the terminal was used by others
    /// while we were stopped.
    pub(super) async fn changed(&mut self) {
        tokio::select! {
            _ = self.changed.recv() => {}
            _ = self.continued.recv() => {}
        }
    }
}

/// The size of the user's terminal, as far as a guest's can be like it. None if
/// it does not know its size.
pub(super) fn size() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    if size.ws_col == 0 || size.ws_row == 0 {
        return None;
    }
    Some(TerminalSize::clamped(size.ws_col, size.ws_row))
}
