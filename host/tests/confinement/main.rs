//! Attacks of a VMM that a guest has taken over: each is refused, as root and as an ordinary
//! user, with and without namespaces.
#![allow(clippy::unwrap_used)]

mod attacker;
mod callers;
mod real_vmm;
mod stand_in;
mod targets;
