//! File operations.
//!
//! A [`Request::Files`](crate::Request::Files) opens a stream as any request
//! does. Its input comes on the channel `Stdin`, its output goes to `Stdout`, and
//! the outcome is [`Done`](crate::Outcome::Done) or a failure.
//!
//! | operation | `Stdin` | `Stdout` |
//! |---|---|---|
//! | [`Read`](Work::Read) | | the bytes |
//! | [`Write`](Work::Write) | the bytes | the file's [`Answer::Entry`] |
//! | [`Walk`](Work::Walk), [`Watch`](Work::Watch) | | many [`Answer`]s |
//! | [`Receive`](Work::Receive) | [`TreeRecord`]s | an [`Answer::Received`] |
//! | [`Send`](Work::Send) | | [`TreeRecord`]s |
//! | [`Edit`](Work::Edit) | [`EditRecord`]s | |
//! | [`Remove`](Work::Remove), [`Sync`](Work::Sync) | | |
//! | all others | | one [`Answer`] |
//!
//! Answers and records are framed messages on a byte stream: see [`record`].

mod answer;
mod edit;
pub mod record;
mod tree;
mod work;
mod xattrs;

pub use answer::{Answer, Change, ChangeKind, FileEntry, FileKind, Usage};
pub use edit::EditRecord;
pub use tree::{Content, Meta, TreeRecord};
pub use work::{Expect, Files, Owner, Receive, Send, Time, Walk, Work, Write, WritePlace};
pub use xattrs::{Xattrs, XattrsBuf};
