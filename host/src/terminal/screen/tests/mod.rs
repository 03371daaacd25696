//! Tests of the emulator, compared with tmux, xterm and hand-written results.

mod charsets;
mod hostile;
mod invariants;
mod margins;
mod pictures;
mod protection;
mod recordings;
mod rectangles;
mod redaction;
mod replies;
mod resize;
mod scrollback;
mod sequences;
mod work;
mod wrapping;

use super::{Emulator, Screen};
use crate::terminal::size::TerminalSize;

/// Fills a screen of 10 columns and 5 rows.
const TABLE: &str = "abcdefghij\r\n0123456789\r\nABCDEFGHIJ\r\nklmnopqrst\r\nKLMNOPQRST";

/// Prints on a screen of 10 columns and 5 rows.
#[track_caller]
fn shows(printed: impl AsRef<[u8]>, expected: impl AsRef<str>) {
    let printed = printed.as_ref();
    let text = String::from_utf8_lossy(printed);
    assert_eq!(screen(10, 5, printed).text(), expected.as_ref(), "{text:?}");
}

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
