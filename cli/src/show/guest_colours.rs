//! Tracks and resets colours that a guest has left on.
//!
//! A command may end without resetting its colours. Standard output and
//! standard error are usually the same terminal, so this is state of the whole
//! program: whoever prints a line of our own resets the colours first.

use std::{
    io::{self, IsTerminal},
    sync::atomic::{AtomicU8, Ordering},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmcell::ColourPolicy;

use super::safe_stdout::{RESET_STYLE, colours_allowed};

/// One of our outputs, as a bit.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

/// The outputs on which a colour is still on.
static COLOURED_OUTPUTS: AtomicU8 = AtomicU8::new(0);

/// Returns how colours that a command prints are treated on a terminal: kept,
/// unless the user wants none.
pub fn policy() -> ColourPolicy {
    match colours_allowed() {
        true => ColourPolicy::Keep,
        false => ColourPolicy::Remove,
    }
}

/// Records whether the last text on an output left a colour on.
pub fn record(output: Output, is_coloured: bool) {
    let bit = output as u8;
    match is_coloured {
        true => COLOURED_OUTPUTS.fetch_or(bit, Ordering::Relaxed),
        false => COLOURED_OUTPUTS.fetch_and(!bit, Ordering::Relaxed),
    };
}

/// Returns the sequence that resets the guest's colours before we print to
/// standard error. Empty if none are on, or if standard error is not a
/// terminal.
pub fn reset() -> &'static str {
    match io::stderr().is_terminal() && COLOURED_OUTPUTS.swap(0, Ordering::Relaxed) != 0 {
        true => RESET_STYLE,
        false => "",
    }
}

/// Resets the guest's colours at exit if some are still on, for example after
/// an interrupt. Never blocks on a terminal that does not read.
pub fn reset_at_exit() {
    if COLOURED_OUTPUTS.swap(0, Ordering::Relaxed) == 0 {
        return;
    }
    let (stdout, stderr) = (io::stdout(), io::stderr());
    // Bypasses locks and buffers, which a blocked thread may hold.
    if stderr.is_terminal() {
        write_reset_without_blocking(&stderr);
    } else if stdout.is_terminal() {
        write_reset_without_blocking(&stdout);
    }
}

fn write_reset_without_blocking(terminal: &impl rustix::fd::AsFd) {
    let mut poll_fds = [PollFd::new(terminal, PollFlags::OUT)];
    if poll(&mut poll_fds, Some(&Timespec::default())) == Ok(1) {
        // There is nobody left to report an error to.
        let _ = rustix::io::write(terminal, RESET_STYLE.as_bytes());
    }
}
