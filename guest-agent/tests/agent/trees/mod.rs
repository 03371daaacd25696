//! Whole trees: sent, received, listed and watched.

mod receive;
mod records;
mod round_trip;
mod send;
mod snapshot;
mod test_env;
mod walk;
mod watch;
