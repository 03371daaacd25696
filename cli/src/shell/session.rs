//! Connects the user's terminal to a terminal of a guest.
//!
//! Four loops run concurrently until one of them ends: the guest's output is
//! printed, the user's input is sent, the guest's terminal follows the size of
//! the user's, and signals are received.

use std::{
    future::pending,
    io::{self, Write},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmcell::{Error, Exit, terminal::Terminal};
use vmcell_cli::signals::Signals;

use super::{
    detach_key::DetachKey,
    display::Display,
    keyboard::Keyboard,
    raw_mode::RawMode,
    window::{self, WindowWatcher},
};

/// How a session ended.
pub(super) enum End {
    /// The program exited.
    Exited(Exit),
    /// The user pressed the detach key.
    Detached,
    /// We received a signal. The value is the exit code for it.
    Signalled(u8),
    /// The user's terminal is gone.
    HungUp,
}

/// Connects the terminals until the session ends. In any case, the user's
/// terminal is restored.
pub(super) async fn run(
    terminal: &Terminal,
    key: &DetachKey,
    signals: &mut Signals,
) -> anyhow::Result<End> {
    let end = connect(terminal, key, signals).await;
    if !matches!(end, Ok(End::Exited(_))) && stderr_is_writable() {
        // The next message starts on a line of its own.
        let _ = writeln!(io::stderr());
    }
    end
}

/// Returns whether standard error accepts output now. A terminal may be stuck.
pub(super) fn stderr_is_writable() -> bool {
    let stderr = io::stderr();
    let mut poll_fds = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut poll_fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 1)
}

async fn connect(
    terminal: &Terminal,
    key: &DetachKey,
    signals: &mut Signals,
) -> anyhow::Result<End> {
    let mut window = WindowWatcher::watch()?;
    let mut keyboard = Keyboard::start()?;
    // Dropped in reverse order: first the screen's state is restored, then the
    // terminal's mode.
    let mode = RawMode::enter()?;
    let mut display = Display::start()?;
    tokio::select! {
        end = print_output(terminal, &mut display) => Ok(end?),
        end = send_input(terminal, &mut keyboard, key) => Ok(end),
        end = follow_size(terminal, &mut window, &mode) => Ok(end),
        code = signals.next() => Ok(End::Signalled(code)),
    }
}

async fn print_output(terminal: &Terminal, display: &mut Display) -> Result<End, Error> {
    let mut output = terminal.follow();
    while let Some(bytes) = output.next().await {
        if !display.print(bytes).await {
            return Ok(End::HungUp);
        }
    }
    if display.finish().await.is_err() {
        return Ok(End::HungUp);
    }
    Ok(End::Exited(terminal.wait().await?))
}

async fn send_input(terminal: &Terminal, keyboard: &mut Keyboard, key: &DetachKey) -> End {
    let input = terminal.input();
    while let Some(mut typed) = keyboard.next().await {
        let detached = key.find(&typed);
        typed.truncate(detached.unwrap_or(typed.len()));
        let taken = typed.is_empty() || input.write(typed).await;
        if detached.is_some() {
            return End::Detached;
        }
        if !taken {
            // The program has ended; its last output is still on its way.
            return pending().await;
        }
    }
    End::HungUp
}

/// Sets the size of the guest's terminal to that of the user's, at the start
/// and on every change.
async fn follow_size(terminal: &Terminal, window: &mut WindowWatcher, mode: &RawMode) -> End {
    loop {
        if let Some(size) = window::size() {
            // Fails if the program has ended, which is reported elsewhere.
            let _ = terminal.resize(size).await;
        }
        window.changed().await;
        if mode.apply().is_err() {
            return End::HungUp;
        }
    }
}
