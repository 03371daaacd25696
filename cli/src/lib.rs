//! Code that the programs `vmcell` and `vmcell-disk` share: options, output and
//! exit codes.
//!
//! This is not a public API: it changes with the two programs. Other programs
//! use the library `vmcell`.

pub mod atomic_file;
pub mod exit;
pub mod options;
pub mod show;
pub mod signals;
