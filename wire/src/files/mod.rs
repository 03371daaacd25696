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

mod edit;
mod operation;
pub mod record;
mod reply;
mod tree;
mod xattrs;

pub use edit::EditRecord;
pub use operation::{
    FileOperation, FileRequest, Owner, Precondition, Receive, Send, Time, Walk, Write, WriteMode,
};
pub use reply::{Change, ChangeKind, FileEntry, FileKind, FileReply, Usage};
pub use tree::{Content, Metadata, TreeRecord};
pub use xattrs::{Xattrs, XattrsBuf};
