//! Builds images with the real e2fsprogs, and inspects them with its other tools.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archive;
mod base;
#[cfg(feature = "registry")]
#[path = "../container_registry/mod.rs"]
mod container_registry;
mod debian;
mod failure;
mod fidelity;
mod hostile_oci;
mod inspect;
mod oci;
#[cfg(feature = "registry")]
mod registry;
mod reproducible;
mod unprivileged;
