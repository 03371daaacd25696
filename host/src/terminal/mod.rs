//! Persistent terminal sessions in the guest, driven by a program or a person.
//!
//! A terminal is a program on a pseudoterminal in the guest. It keeps running
//! when nobody is attached, can be found by its tag, and has two views: the
//! bytes that it prints, addressed by offset, and the screen that those bytes
//! draw. A background task of this program reads the output all the time, so
//! viewing either one takes no output away from other readers.
//!
//! ```text
//!   guest                  this program
//!   program ─ PTY ─ ring ──> Reader ──> Redactor ──┬─> Transcript ──> read, follow
//!              ^                                   ├─> Emulator ────> screen, scrollback
//!              │                                   └─> Recorder ────> files
//!              └── input, replies to queries <────────┘
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

mod catch_up;
mod exchange;
mod expect;
mod follow;
mod followers;
mod handle;
mod info;
mod input;
mod key;
mod model;
mod options;
mod paste;
mod plain_text;
mod query_status;
mod reader;
mod record;
mod record_thread;

mod reply;
mod screen;
mod sequence;
mod shared;
mod size;
mod status;
mod terminals;
mod transcript;
mod tty_state;
mod typed_secrets;
mod wait;

pub use exchange::Exchange;
pub use expect::{Expect, ExpectMatch, ExpectOutcome};
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
