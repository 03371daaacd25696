//! Processes that the agent looks after.

mod faults;
mod lifecycle;
mod logs;
mod needs;
mod pages;
mod probes;
mod requests;
mod staff;
mod stuck;
