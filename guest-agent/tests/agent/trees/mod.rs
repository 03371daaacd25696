//! Whole trees: sent, taken, walked through and watched.

mod job;
mod receive;
mod records;
mod round_trip;
mod send;
mod snapshot;
mod walk;
mod watch;
