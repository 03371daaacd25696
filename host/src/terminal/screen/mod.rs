//! A terminal emulator: the screen that a program's output draws.
//!
//! ```text
//!  bytes ──Parser──> controls ──> Display ──> Screen ──> text, SVG, Picture ──> PNG
//!                    (sgr, text,  (Grid, Row, Cell,
//!                     movement,    Cursor, Margins, Tabs,
//!                     edits,       Title, Scrollback,
//!                     queries, …)  WorkBudget)
//!                       │
//!                       └──> ReplyQueue ──> the program's input
//! ```
//!
//! Everything here is synchronous and does no I/O. The bytes come from a guest:
//! all state is bounded. Processing a byte costs at most the work of one row;
//! sequences that change many rows are paid for from a budget that grows with the
//! bytes of the output.
//!
//! # What differs from xterm
//! xterm 379 is the reference for control sequences: it shows the same for the
//! sequences in `tests` and for thousands of random ones. These differ:
//!
//! | what | xterm | this | why |
//! |---|---|---|---|
//! | a sequence that costs more than the output before it earned | is executed | is not, and the screen is incomplete | 64 KiB can cost hours |
//! | rows that only scroll through, of one REP | go to the scrollback | are left out | one sequence can push out the whole scrollback |
//! | characters that hide or reorder others | are kept | are left out | text of a screen is safe to print |
//! | guarded areas (SPA, EPA) | survive `CSI 2 J` | are not supported | a program that dies in one leaves text that nothing clears; tmux and alacritty ignore them too |
//! | 132 columns (DECCOLM), window operations | change the size, if allowed | are not supported | the size belongs to whoever opened the terminal |
//! | checksums of rectangles (DECRQCRA) | are sent | are not supported | what is on the screen must not become input |
//! | copies and attributes of rectangles (DECCRA, DECCARA, DECRARA), reverse wraparound (`?45`) | are supported | are not | no program was seen to use them |
//! | national, supplemental and technical character sets | are supported, some after DECNRCM | are ASCII, but for British and line drawing | programs print UTF-8 |
//! | colours of a filled rectangle | stay if the program has selected none | are those of text | a cell looks like the text that is written to it |
//! | a wide character, as the filler of a rectangle, or half across a margin | leaves halves of characters | does nothing, or becomes blank | cells never hold half of a character |
//! | wide characters in the last column while text does not wrap | the last one of a piece of output is shown | are left out | the screen must not depend on how output is cut |
//!
//! Of 43 recordings that alacritty is tested with, 38 look like in alacritty. In the
//! other five it differs from xterm, which shows what this shows: the alignment
//! pattern moves the cursor home, selective erasing works, erasing ends a pending
//! wrap (two recordings), and DECCOLM clears nothing.
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
//! | does not support | line drawing, tab stops, insert mode, `ESC D` and `E`, rows that do not wrap, soft reset | marks (they take a column), titles, most modes | | |
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

mod budget;
mod cell;
mod charset;
mod columns;
mod controls;
mod cursor;
mod display;
mod edits;
mod emulator;
mod glyphs;
mod grid;
mod margins;
mod modes;
mod movement;
mod palette;
mod parser;
mod picture;
mod png;
mod protection;
mod queries;
mod rectangle;
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
mod text;
mod title;
mod work;

pub(crate) use emulator::Emulator;
pub use picture::Picture;
pub use snapshot::{Screen, ScreenCursor, ScreenHealth, Span};
pub use style::{Colour, Style};
