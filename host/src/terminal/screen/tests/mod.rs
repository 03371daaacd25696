//! Tests of the emulator, compared with tmux and with hand-written results.

mod hostile;
mod invariants;
mod pictures;
mod recordings;
mod redaction;
mod replies;
mod resize;
mod scrollback;
mod sequences;

use super::{Emulator, Screen};
use crate::terminal::size::TerminalSize;

fn size(columns: u16, rows: u16) -> TerminalSize {
    TerminalSize::new(columns, rows).unwrap()
}

fn screen(columns: u16, rows: u16, printed: impl AsRef<[u8]>) -> Screen {
    Screen::render(size(columns, rows), [printed.as_ref()])
}

fn emulate(columns: u16, rows: u16, printed: impl AsRef<[u8]>) -> Emulator {
    let mut emulator = Emulator::new(size(columns, rows), 1000);
    emulator.feed(printed.as_ref());
    emulator
}
