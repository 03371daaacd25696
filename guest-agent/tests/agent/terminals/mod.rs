//! Terminals: real ones of this machine, with real programs on them.

mod flow_control;
mod helpers;
mod process;
mod session;
mod typing;
mod watching;
