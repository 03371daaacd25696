//! Services: processes that the agent supervises.

mod faults;
mod helpers;
mod lifecycle;
mod logs;
mod needs;
mod probes;
mod requests;
mod stuck;
mod web_server;
