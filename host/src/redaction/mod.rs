//! Masks secrets in what comes from a guest.
//!
//! ```text
//!  bytes ──> Redactor ──> shown: to whoever reads them, and what is kept of them
//!               │
//!               ├──────> held back, until the next bytes decide or a timeout
//!               └──────> late: a secret is complete whose beginning was shown;
//!                          the stored copies of that are masked in place
//! ```
//!
//! Each byte of a secret is replaced by an asterisk, so offsets do not change.
//!
//! A secret is a [`SecretSet`]'s value, or one of its usual [`encodings`]. All of them are
//! found by one [automaton](automaton::Automaton), and most bytes do not even reach that,
//! because a [filter](filter::Filter) finds that there is nothing of a secret.

mod automaton;
mod encodings;
mod filter;
#[cfg(any(feature = "broker", feature = "terminal"))]
mod redactor;
#[cfg(feature = "terminal")]
mod scan;
mod search;
mod secret_set;
#[cfg(feature = "terminal")]
mod stored_value;
#[cfg(test)]
#[cfg(feature = "terminal")]
mod tests;
#[cfg(feature = "tool")]
mod whole;

#[cfg(feature = "terminal")]
pub(crate) use redactor::Redacted;
#[cfg(any(feature = "broker", feature = "terminal"))]
pub(crate) use redactor::Redactor;
#[cfg(feature = "terminal")]
pub(crate) use scan::{ScanMode, SecretScan};
pub(crate) use search::{PartialMatch, SecretSearch, Thoroughness};
pub(crate) use secret_set::SecretSet;

/// Replaces each byte of a secret.
pub(crate) const MASK: u8 = b'*';
