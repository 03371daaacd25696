//! The JSON of the types of this crate, with the feature `serde`.
//!
//! Names are bytes, and JSON has text only: a name that is not UTF-8 is lossy
//! text, and a second key with the suffix `_bytes` has its bytes in hexadecimal.
//! Digests are in hexadecimal, times are by RFC 3339, modes in octal.

mod change;
mod entry;
mod hex;
mod name;
mod transfer;

pub use hex::hex;
pub use name::write_name;
