//! Trees of files: listing, transfer, archives, comparison and patches.
//!
//! | Module or type | Purpose |
//! |---|---|
//! | [`Entry`], [`WalkOptions`], [`ReadOptions`], [`Usage`] | A file of a guest or a disk, and which files to list or read |
//! | [`transfer`] | Sends and receives whole trees, from and to directories and tar archives |
//! | [`diff`] | Compares two trees, and writes the difference as a patch |
//! | [`patch`] | Parses unified patches, and applies them |
//! | [`printable()`], [`Sanitizer`] | Make untrusted text safe to print on a terminal |
//! | [`TerminalFilter`] | Passes what only draws on to a terminal |
//! | [`escape`] | Tells text from control sequences in terminal output |
//!
//! Names, contents, streams and archives may come from an attacker: parsers
//! have limits for time and memory, and a received tree cannot write outside of
//! its destination. Everything is synchronous and needs neither a VM nor an
//! agent.
//!
//! It is for Unix. It is tested on Linux: transfers also with the code that other
//! systems use. For FreeBSD and macOS, it is checked that the crate compiles. On
//! systems other than Linux, a program that is killed while it receives a file
//! leaves it under a temporary name (`.vmcell-…`).
//!
//! ```no_run
//! use vmcell_tree::transfer::{
//!     Destination, ReceiveOptions, Receiver, SendOptions, SinkClosed, Source, send,
//! };
//!
//! // Copies a directory through the stream of records that a guest would send.
//! let destination = Destination::Path("copy".into());
//! let mut receiver = Receiver::new(destination, ReceiveOptions::default())?;
//! let source = Source::Path("project".into());
//! send(source, SendOptions::default(), &mut |piece| {
//!     receiver.push(&piece).map_err(|_| SinkClosed)
//! })?;
//! println!("{} entries", receiver.finish()?.entries);
//! # Ok::<(), vmcell_tree::transfer::TreeError>(())
//! ```
//!
//! The crates [`vmcell`](https://docs.rs/vmcell) and
//! [`vmcell-disk`](https://docs.rs/vmcell-disk) share this crate and re-export
//! what programs need. The rest of its API may change with any release.

mod date;
pub mod diff;
mod entry;
pub mod escape;
mod filter;
#[cfg(feature = "serde")]
pub mod json;
pub mod patch;
mod printable;
mod read_options;
mod terminal_filter;
pub mod transfer;
mod walk_options;

pub use date::Date;
pub use entry::{
    Entry, EntryKind, Usage, path_from_bytes, relative_path_from_bytes, system_time, wire_time,
};
pub use filter::FilterLines;
pub use printable::{
    ColourPolicy, Sanitizer, is_hidden, is_printable, printable, printable_name, truncate_text,
    whole_characters,
};
pub use read_options::ReadOptions;
pub use terminal_filter::TerminalFilter;
pub use walk_options::WalkOptions;
