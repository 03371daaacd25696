//! Builds images with the real e2fsprogs, and inspects them with its other tools.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archive;
mod base;
mod debian;
mod failure;
mod fidelity;
mod hostile_oci;
mod inspect;
mod oci;
mod reproducible;
mod unprivileged;
