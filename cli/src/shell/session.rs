//! The user's terminal, connected to one of a guest.
//!
//! Four things go on at once until one of them ends it: what the guest prints
//! is drawn, what the user types is sent, the guest's terminal follows the size
//! of the user's, and signals come in.

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
    window::{self, Window},
};

/// How a session ended.
pub(super) enum End {
    /// With its program.
    Exited(Exit),
    /// The user left.
    Detached,
    /// A signal to us, as an exit code.
    Signalled(u8),
    /// The user's terminal is gone.
    HungUp,
}

/// Connects both until one ends. However it ends, the user's terminal is then
/// as it was before.
pub(super) async fn run(
    terminal: &Terminal,
    key: &DetachKey,
    signals: &mut Signals,
) -> anyhow::Result<End> {
    let end = connect(terminal, key, signals).await;
    if !matches!(end, Ok(End::Exited(_))) && is_heard() {
        // What is said next does not belong to the guest's last line.
        let _ = writeln!(io::stderr());
    }
    end
}

/// Whether something can be said without waiting for the user's terminal, which
/// may take nothing any more.
pub(super) fn is_heard() -> bool {
    let stderr = io::stderr();
    let mut wanted = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut wanted, Some(&Timespec::default())).is_ok_and(|ready| ready == 1)
}

async fn connect(
    terminal: &Terminal,
    key: &DetachKey,
    signals: &mut Signals,
) -> anyhow::Result<End> {
    let mut window = Window::watch()?;
    let mut keyboard = Keyboard::start()?;
    // They are dropped in the opposite order: what was drawn is put right
    // first, and then the terminal.
    let mode = RawMode::enter()?;
    let mut display = Display::start()?;
    tokio::select! {
        end = draw(terminal, &mut display) => Ok(end?),
        end = send(terminal, &mut keyboard, key) => Ok(end),
        end = follow_size(terminal, &mut window, &mode) => Ok(end),
        code = signals.next() => Ok(End::Signalled(code)),
    }
}

async fn draw(terminal: &Terminal, display: &mut Display) -> Result<End, Error> {
    let mut output = terminal.follow();
    while let Some(bytes) = output.next().await {
        if !display.draw(bytes).await {
            return Ok(End::HungUp);
        }
    }
    if display.finish().await.is_err() {
        return Ok(End::HungUp);
    }
    Ok(End::Exited(terminal.wait().await?))
}

async fn send(terminal: &Terminal, keyboard: &mut Keyboard, key: &DetachKey) -> End {
    let input = terminal.input();
    while let Some(mut typed) = keyboard.next().await {
        let detached = key.find(&typed);
        typed.truncate(detached.unwrap_or(typed.len()));
        let taken = typed.is_empty() || input.write(typed).await;
        if detached.is_some() {
            return End::Detached;
        }
        if !taken {
            // The program has ended: what it printed last is still on its way.
            return pending().await;
        }
    }
    End::HungUp
}

/// Gives the guest's terminal the size of the user's, at first and whenever that
/// changes.
async fn follow_size(terminal: &Terminal, window: &mut Window, mode: &RawMode) -> End {
    loop {
        if let Some(size) = window::size() {
            // One that has ended has no size, and how it ended is told soon.
            let _ = terminal.resize(size).await;
        }
        window.changed().await;
        if mode.apply().is_err() {
            return End::HungUp;
        }
    }
}
