//! A terminal emulator: the screen that a program's output draws.
//!
//! ```text
//!  bytes ──Parser──> controls ──> Display ──> Screen ──> text, SVG, Picture ──> PNG
//!                    (sgr,        (Grid, Row, Cell,
//!                     queries,     Cursor, Tabs, Title,
//!                     edits)       Scrollback)
//!                       │
//!                       └──> ReplyQueue ──> the program's input
//! ```
//!
//! Everything here is synchronous and does no I/O. The bytes come from a guest:
//! all state is bounded, and processing a byte costs at most a few rows of work.
//!
//! # Why not a crate
//! Three crates were tested with the recordings in `host/tests/recordings`, with
//! 49 control sequences one by one, and with hostile bytes. tmux 3.3 was the
//! reference. Speed is per second of processor time, on two busy cores of a virtual
//! machine, over all recordings repeatedly, with 1000 lines of scrollback. All
//! are maintained and have free licences. A fourth, wezterm's terminal, is on
//! crates.io in forks only and brings 273 crates, so it was not tested.
//!
//! | | vt100 0.18 | avt 0.19 | alacritty_terminal 0.26 | this |
//! |---|---|---|---|---|
//! | recordings that look like in tmux, of 16 | 16 | 16 | 14: its text keeps tabs | 16 |
//! | does not support | line drawing, tab stops, insert mode, `ESC D` and `E`, rows that do not wrap, soft reset | marks (they take a column), titles, most modes | | alignment test |
//! | half of a wide character erased | both blank | both blank | the other half stays | both blank |
//! | on resize, rows are | cut | rewrapped | rewrapped | cut |
//! | answers to queries | none | none | yes | yes |
//! | MB/s | 56 | 40 | 87 | 205 |
//! | 9 kB of `CSI 65535 b` | 1.8 s | 1.0 s | 0.7 s | 5 ms |
//! | a title of 64 MB holds | 66 MB | - | 68 MB | 1 kB |
//! | 32 MB of marks on one character hold | - | - | 68 MB | 12 bytes |
//! | 200,000 hyperlinks hold | 1 MB | - | 51 MB | - |
//! | synchronized output | shown at once | shown at once | held back, up to 2 MB | shown at once |
//! | crates | 9 | 2 | 28 (polling, signals, PTYs, regular expressions) | 1 |
//!
//! alacritty_terminal is the best of them. But to bound its use of memory and time
//! with a hostile guest, it needs a second parser in front of it (for strings and
//! repetitions) and a wrapper around each of its 70 operations (for marks and
//! links), which together are not much less code than an emulator.
//!
//! Rows are cut on resize, as in xterm: shells and full-screen programs redraw on
//! `SIGWINCH`, and what they drew stays in its place.

mod cell;
mod charset;
mod controls;
mod cursor;
mod display;
mod edits;
mod emulator;
mod glyphs;
mod grid;
mod modes;
mod palette;
mod parser;
mod picture;
mod png;
mod queries;
mod redact;
mod reducer;
mod reply_queue;
mod row;
mod scrollback;
mod sgr;
mod snapshot;
mod style;
mod svg;
mod tabs;
#[cfg(test)]
mod tests;
mod title;

pub(crate) use emulator::Emulator;
pub use picture::Picture;
pub use snapshot::{Screen, ScreenCursor, ScreenHealth, Span};
pub use style::{Colour, Style};
