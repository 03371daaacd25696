//! The half that the programs `vmcell` and `vmcell-disk` share: how things are
//! asked for, printed and told to the shell.
//!
//! It is no API. Programs embed the library `vmcell`; this changes as its two
//! programs do.

pub mod exit;
pub mod options;
pub mod saving;
pub mod show;
pub mod signals;
