//! File operations.
//!
//! A [`Request::Files`](crate::Request::Files) opens a stream as any request
//! does. Its input comes on the channel `Stdin`, its output goes to `Stdout`, and
//! the outcome is [`Done`](crate::Outcome::Done) or a failure.
//!
//! | operation | `Stdin` | `Stdout` |
//! |---|---|---|
//! | [`Read`](FileOperation::Read) | | the bytes |
//! | [`Write`](FileOperation::Write) | the bytes | the file's [`FileReply::Entry`] |
//! | [`Walk`](FileOperation::Walk), [`Watch`](FileOperation::Watch) | | many [`FileReply`]s |
//! | [`Receive`](FileOperation::Receive) | [`TreeRecord`]s | an [`FileReply::Received`] |
//! | [`Send`](FileOperation::Send) | | [`TreeRecord`]s |
//! | [`Edit`](FileOperation::Edit) | [`EditRecord`]s | |
//! | [`Remove`](FileOperation::Remove), [`Sync`](FileOperation::Sync) | | |
//! | all others | | one [`FileReply`] |
//!
//! Answers and records are framed messages on a byte stream: see [`record`].

#[cfg(feature = "protocol")]
mod edit;
#[cfg(feature = "protocol")]
mod operation;
pub mod record;
mod reply;
mod time;
mod tree;
mod xattrs;

#[cfg(feature = "protocol")]
pub use edit::EditRecord;
#[cfg(feature = "protocol")]
pub use operation::{
    FileOperation, FileRequest, Owner, Precondition, Receive, Send, Walk, Write, WriteMode,
};
pub use reply::{Change, ChangeKind, FileEntry, FileKind, FileReply, Usage};
pub use time::Time;
pub use tree::{Content, Metadata, TreeRecord};
pub use xattrs::{Xattrs, XattrsBuf};
