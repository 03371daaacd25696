//! The JSON of results, with the feature `serde`.
//!
//! Times are in seconds, kinds by their stable names, and what is unknown or does
//! not apply is null.

mod error;
mod exit;
mod files;
mod output;
mod port;
mod process;
mod seconds;
mod service;
#[cfg(feature = "terminal")]
mod terminal;
#[cfg(test)]
mod tests;
mod vm;
