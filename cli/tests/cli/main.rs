//! Tests of the program `vmcell`, run as a child process.
//!
//! Nearly every test boots a real VM. A test knows that its command runs in the
//! guest because it has read a line that the command printed.
#![allow(clippy::unwrap_used)]

mod backends;
#[path = "../../../rootfs/tests/container_registry/mod.rs"]
mod container_registry;
mod cp;
mod demo;
#[path = "../../../tree/tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;
mod diff;
mod disk;
mod doctor;
mod env;
mod exec;
mod exports;
mod failures;
mod habits;
mod json;
mod kill;
mod limits;
mod logs;
mod ls_cat_stat;
mod mcp;
mod metrics;
mod network;
mod options;
mod other_users;
mod patch;
mod pause;
mod processes;
mod ps;
mod publish;
mod push_pull;
mod run;
mod screen;
mod secrets;
mod service;
mod service_options;
mod services;
mod shared_vm;
mod shell;
mod snapshot;
mod stop;
mod template;
mod terminal_output;
mod termination;
mod tool;
mod tree;
mod user;
mod vm;
mod vmcell;
mod web;
mod workspace;
