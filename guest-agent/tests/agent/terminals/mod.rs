//! Terminals: real ones of this machine, with real programs on them.

mod desk;
mod pace;
mod process;
mod session;
mod typing;
mod watching;
