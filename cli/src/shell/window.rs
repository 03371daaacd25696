use std::io;

use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use vmcell::terminal::TerminalSize;

/// Watches the size of the user's terminal.
pub(crate) struct WindowWatcher {
    changed: Signal,
    continued: Signal,
}

impl WindowWatcher {
    /// Starts watching for changes.
    pub(crate) fn watch() -> io::Result<Self> {
        let continued = rustix::process::Signal::CONT.as_raw();
        Ok(Self {
            changed: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(continued))?,
        })
    }

    /// Waits until the size may have changed, or until we continue after
    /// SIGSTOP, while other programs may have used the terminal.
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            _ = self.changed.recv() => {}
            _ = self.continued.recv() => {}
        }
    }
}

/// Returns the size of the user's terminal, clamped to what a guest terminal
/// supports. `None` if the terminal does not know its size.
pub(crate) fn size() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    if size.ws_col == 0 || size.ws_row == 0 {
        return None;
    }
    Some(TerminalSize::clamped(size.ws_col, size.ws_row))
}
