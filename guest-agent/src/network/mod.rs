//! Connections of programs to other machines, without a network.
//!
//! ```text
//!  program ──connect──> kernel ──BPF──> listener ──> waiting ──Want──> host
//!                                                       │
//!                                        Accept <───────┤
//!                                          v            v
//!                                     a connection    reset
//!
//!  program ──question──> kernel ──BPF──> datagrams ──> lookup ──Want──> host
//!          <──────────── an address that stands for the name <──Allow───┘
//! ```
//!
//! Nothing of this is there before the first [`Capture`](requests) of a host, and all
//! of it stays afterwards, so that a later one finds it. Without a host that captures,
//! connections are reset at once, and no name is known.
//!
//! The host decides. What is here only names what a program wants, as the program says,
//! and root of the guest can change it all: the guest has no other way out.

mod dns;
mod dns_client;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod interception;
mod lookup_program;
mod lookups;
mod names;
mod prefix;
mod reports;
mod requests;
mod resolver_file;
mod routes;
mod table;
mod trust_store;
mod waiting;
mod wants;

pub(crate) use table::Network;
pub(crate) use trust_store::MountedFiles;
