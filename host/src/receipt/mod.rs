//! Receipts: what ran, on what, with what, in a log that shows every later change.
//!
//! ```no_run
//! # fn example() -> Result<(), vmcell::receipt::ReceiptError> {
//! use vmcell::receipt::ReceiptLog;
//!
//! let log = ReceiptLog::open()?;
//! let verified = log.verify(None)?;
//! println!("{} receipts, {} of them signed", verified.receipts, verified.signed);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  receipts/             0700
//!  ├── log               a line for each receipt, only ever appended
//!  ├── head              how many lines the log has, and the digest of the last one
//!  ├── key               the signing key of the installation, if there is one
//!  └── torn-N            the beginning of a line that a program could not finish
//!
//!  line N: {"digest":D,"previous":D of line N-1,"receipt":{…},"sequence":N,"signature":S}
//! ```
//!
//! A line is canonical JSON, in the manner of RFC 8785: sorted keys, no spaces, integers
//! only. Its digest is the SHA-256 of the line without digest and signature. The signature is
//! Ed25519 of the digest.
//!
//! # What is found
//! A byte that was changed, a line that was removed, repeated, inserted or moved, and lines
//! that were cut off at the end.
//!
//! # What is not found
//! Without a key, whoever can write the log and the head can write another history. With a
//! key, which only its owner can read, others can only put back an older log together with
//! its older head, or remove the whole folder; compare [`Verification::head`] with a copy that is kept elsewhere. Nothing
//! helps against who can read the key.
//!
//! # What a crash loses
//! No receipt that was returned: its line is on the disk. The head may be older than the log
//! then; lines that follow it count. A program that dies while it appends leaves a whole line,
//! which counts, or a part of one, which the next append sets aside.

mod canonical;
mod entry;
mod error;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod head;
mod key;
mod lines;
mod log;
mod model;
#[cfg(test)]
mod tests;
mod verification;

pub use entry::{ReceiptEntry, ReceiptId};
pub use error::ReceiptError;
pub use key::ReceiptPublicKey;
pub use log::ReceiptLog;
pub use model::{
    ContentDigest, DecisionRecord, OutputDigest, Receipt, ReceiptConnection, ReceiptExit,
    ReceiptImage, ReceiptKind, SecretUse,
};
pub use verification::{ReceiptProblem, Verification};

pub(crate) use canonical::canonical;
