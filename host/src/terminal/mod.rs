//! Terminals in the guest: sessions that go on, driven by a program or a
//! person.
//!
//! A terminal is a program on a pseudoterminal in the guest. It goes on whoever
//! is attached, is found again by its tag, and is seen in two ways: as the
//! bytes that it prints, with offsets to read them by, and as the screen that
//! they paint. This program reads what is printed all the time, so that looking
//! at either takes nothing away from anybody.
//!
//! ```text
//!   guest                  this program
//!   program ─ PTY ─ ring ──> Reader ──> Redactor ──┬─> Transcript ──> read, follow
//!              ^                                   ├─> Emulator ────> screen, scrollback
//!              │                                   └─> Records ─────> files
//!              └── typing, answers of the terminal <──┘
//! ```
//!
//! ```no_run
//! # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
//! use vmcell::terminal::{Status, TerminalOptions};
//!
//! let terminal = vm.terminals().session("work", TerminalOptions::new()).await?;
//! let reply = terminal.run("sudo apt-get install cowsay").await?;
//! if reply.status == Status::Password {
//!     terminal.send_password("correct horse battery staple").await?;
//! }
//! println!("{}", terminal.screen().text());
//! # Ok(())
//! # }
//! ```

mod exchange;
mod expect;
mod follow;
mod followers;
mod handle;
mod info;
mod input;
mod key;
mod look;
mod model;
mod options;
mod paste;
mod plain;
mod reader;
mod record;
mod records;
mod redaction;
mod reply;
mod screen;
mod shared;
mod size;
mod state;
mod status;
mod terminals;
mod transcript;
mod wait;

pub use exchange::Exchange;
pub use expect::{Expect, Expected, Found};
pub use follow::Follow;
pub(crate) use followers::Followers;
pub use handle::Terminal;
pub use info::TerminalInfo;
pub use input::TerminalInput;
pub use key::{CursorKeys, Key, KeyError, KeyPress, Modifiers};
pub use options::{TerminalOptions, Unread};
pub use reply::Reply;
pub use screen::{Colour, Picture, Screen, ScreenCursor, ScreenHealth, Span, Style};
pub use size::TerminalSize;
pub use status::{Prompt, Status};
pub use terminals::Terminals;
