//! The decoder with arbitrary input.
#![allow(clippy::unwrap_used)]

mod arbitrary;
mod item;
mod refused;
