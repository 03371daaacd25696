//! Colours of a guest on our terminal, and who ends them.
//!
//! What a command prints may leave a colour on. Standard output and standard
//! error are mostly one terminal, so this is state of the whole program: whoever
//! prints a line of ours ends the colours first.

use std::{
    io::{self, IsTerminal},
    sync::atomic::{AtomicU8, Ordering},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmcell::ColourPolicy;

use super::page::{OFF, colours_are_wanted};

/// One of our outputs, as a bit.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

/// The outputs that left a colour on.
static LEFT_ON: AtomicU8 = AtomicU8::new(0);

/// What becomes of colours that a command prints on a terminal: they pass,
/// unless the user wants none.
pub fn policy() -> ColourPolicy {
    match colours_are_wanted() {
        true => ColourPolicy::Keep,
        false => ColourPolicy::Remove,
    }
}

/// Remembers whether the last text on an output left a colour on.
pub fn note(output: Output, is_coloured: bool) {
    let bit = output as u8;
    match is_coloured {
        true => LEFT_ON.fetch_or(bit, Ordering::Relaxed),
        false => LEFT_ON.fetch_and(!bit, Ordering::Relaxed),
    };
}

/// Returns what ends the guest's colours before a line of ours on standard
/// error. Nothing if there are none, or if that is no terminal.
pub fn end() -> &'static str {
    match io::stderr().is_terminal() && LEFT_ON.swap(0, Ordering::Relaxed) != 0 {
        true => OFF,
        false => "",
    }
}

/// Ends the guest's colours when the program does, if some are left on: it may
/// have been interrupted in the midst of an output. Never waits for a terminal
/// that takes nothing.
pub fn end_at_exit() {
    if LEFT_ON.swap(0, Ordering::Relaxed) == 0 {
        return;
    }
    let (stdout, stderr) = (io::stdout(), io::stderr());
    // Past the locks and the buffers, which somebody may hold who waits.
    if stderr.is_terminal() {
        write_at_once(&stderr);
    } else if stdout.is_terminal() {
        write_at_once(&stdout);
    }
}

fn write_at_once(terminal: &impl rustix::fd::AsFd) {
    let mut wanted = [PollFd::new(terminal, PollFlags::OUT)];
    if poll(&mut wanted, Some(&Timespec::default())) == Ok(1) {
        // Nobody is left to tell if that fails.
        let _ = rustix::io::write(terminal, OFF.as_bytes());
    }
}
