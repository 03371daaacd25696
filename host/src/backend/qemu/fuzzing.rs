//! What the fuzz target `state_files` reaches.

use std::{io::Write as _, net::Shutdown, os::unix::net::UnixStream};

use serde_json::Value;

use super::qmp::Qmp;

/// Executes commands on a monitor that sends these bytes, whatever it is told. Returns what
/// users see of them.
pub fn read_monitor_replies(replies: &[u8]) -> Vec<String> {
    let (ours, mut monitor) = UnixStream::pair().expect("there are sockets");
    monitor.set_nonblocking(true).expect("it is a socket");
    // A socket holds less than the longest input.
    let _ = monitor.write_all(replies);
    let _ = monitor.shutdown(Shutdown::Write);
    let mut monitor = Qmp::new(ours).expect("it is a socket");
    let mut seen = Vec::new();
    match monitor.version() {
        Ok(text) | Err(text) => seen.push(text),
    }
    for _ in 0..3 {
        seen.extend(monitor.execute("query-status", Value::Null).err());
    }
    monitor.expect_migration();
    seen.extend(monitor.migrated().err());
    seen
}
