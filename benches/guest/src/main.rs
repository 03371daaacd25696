//! The guest program of the baselines. It performs one task, as directly as the
//! kernel allows. The environment variable `vmcell_bench` selects the task; the
//! kernel's command line sets it for PID 1.
//!
//! - `boot` prints a line.
//! - `echo` sends back the data from the serial port.
//! - `flood` sends [`FLOOD_BYTES`] bytes through it.
//! - `drain` receives as many from it, and answers with a byte.
//! - `http` answers HTTP requests that come through it with a page.
//! - `relay_pipe`, `relay_splice`, `relay_tcp` and `relay_pty` relay data to the
//!   port from another process, over a pipe or a connection, or from the echo of a
//!   terminal: an upper bound for an agent.
//! - `relay_file_in` and `relay_file_out` relay to and from a file on the disk.
//!
//! With the variable `vmcell_link=vsock` it uses a vsock connection to the host
//! instead of the serial port.
//!
//! The other tasks run in a process of a vmcell guest, not as PID 1:
//!
//! - `spawn` forks, executes and waits for `/bin/true`, and prints the median.
//! - `spawn_beside_sync` does so while a file is synced to disk.
//! - `make_files`, `stat_files` and `read_files` create, stat and read 20,000 small
//!   files, and print a time.
//! - `pty` writes keys to a pseudoterminal that echoes them, and prints the
//!   median.
//! - `ready` becomes ready on request, and reports the time at which it did.
//! - `tcp_flood`, `tcp_http` and `tcp_echo` are servers; `tcp_read_flood` and
//!   `tcp_ask` are clients of the first two within the guest, and print a time.
//! - `tcp_greet` and `tcp_sink` are servers, too; `tcp_connect`, `tcp_first_byte`,
//!   `tcp_read` and `tcp_write` are clients of the server at `vmcell_address`, and
//!   print a time.
#![no_main]

mod files;
mod ready;
mod relay;
mod sys;
mod tcp;

use std::{
    ffi::c_int,
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    time::Instant,
};

use sys::{connect_to_host, fork_exec_wait, mount, open_pty_peer, pause_forever, wait_for};

/// The number of bytes that `flood` sends.
const FLOOD_BYTES: usize = 256 * 1024 * 1024;

/// The port on which the host accepts vsock connections.
const HOST_PORT: u32 = 1025;

/// The number of processes that `spawn` starts.
const SPAWNS: usize = 100;

/// The number of keys that `pty` writes.
const KEYS: usize = 500;

/// Called by the C library, without Rust's runtime, which needs devices that an
/// initramfs lacks.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const u8) -> c_int {
    let task = std::env::var("vmcell_bench").unwrap_or_default();
    let result = match &task[..] {
        "spawn" => Some(spawn()),
        "spawn_beside_sync" => Some(files::spawn_beside_sync()),
        "make_files" => Some(files::make()),
        "stat_files" => Some(files::stat()),
        "read_files" => Some(files::read()),
        "pty" => Some(pty()),
        "ready" => Some(ready::serve()),
        "tcp_flood" => Some(tcp::flood()),
        "tcp_http" => Some(tcp::http()),
        "tcp_echo" => Some(tcp::echo()),
        "tcp_read_flood" => Some(tcp::read_flood()),
        "tcp_ask" => Some(tcp::ask()),
        "tcp_greet" => Some(tcp::greet()),
        "tcp_sink" => Some(tcp::sink()),
        "tcp_connect" => Some(tcp::connect_only()),
        "tcp_first_byte" => Some(tcp::connect_and_read()),
        "tcp_read" => Some(tcp::read_all()),
        "tcp_write" => Some(tcp::write_flood()),
        _ => None,
    };
    if let Some(outcome) = result {
        return match outcome {
            Ok(nanoseconds) => {
                println!("{nanoseconds}");
                0
            }
            Err(error) => {
                eprintln!("{task}: {error}");
                1
            }
        };
    }
    if std::process::id() != 1 {
        eprintln!("vmcell-bench-guest: this is for PID 1 of a guest");
        return 1;
    }
    let console = devices().and_then(|()| File::options().write(true).open("/dev/console"));
    if let Ok(mut console) = console {
        let text = run(&task).unwrap_or_else(|error| format!("failed: {error}"));
        let _ = writeln!(console, "bench: {text}");
    }
    pause_forever()
}

fn devices() -> std::io::Result<()> {
    std::fs::create_dir_all("/dev")?;
    mount(c"devtmpfs", c"/dev", c"devtmpfs")
}

fn run(task: &str) -> std::io::Result<String> {
    match task {
        "boot" => Ok("ready".to_owned()),
        "echo" => echo(),
        "flood" => flood(),
        "drain" => drain(),
        "http" => tcp::http_over(&mut port()?),
        "relay_pipe" => relay::pipe(&mut port()?),
        "relay_splice" => relay::splice(&mut port()?),
        "relay_tcp" => relay::tcp(&mut port()?),
        "relay_pty" => relay::pty(&mut port()?),
        "relay_file_in" => files::relay_in(&mut port()?),
        "relay_file_out" => files::relay_out(&mut port()?),
        other => Ok(format!("unknown task {other:?}")),
    }
}

fn port() -> std::io::Result<File> {
    if std::env::var("vmcell_link").is_ok_and(|link| link == "vsock") {
        return connect_to_host(HOST_PORT);
    }
    for entry in std::fs::read_dir("/dev")? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("vport") {
            return OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(entry.path());
        }
    }
    Err(std::io::ErrorKind::NotFound.into())
}

fn echo() -> std::io::Result<String> {
    let mut port = port()?;
    let mut buffer = [0; 4096];
    loop {
        wait_for(&port, libc::POLLIN);
        if let Ok(count @ 1..) = port.read(&mut buffer) {
            port.write_all(&buffer[..count])?;
        }
    }
}

/// Uses non-blocking writes, because with a blocking one the driver spins until
/// the host has read the data.
fn flood() -> std::io::Result<String> {
    let mut port = port()?;
    // The first byte from the host starts it.
    wait_for(&port, libc::POLLIN);
    let _ = port.read(&mut [0; 1]);
    let buffer = vec![0; 256 * 1024];
    for _ in 0..FLOOD_BYTES / buffer.len() {
        write_all(&mut port, &buffer)?;
    }
    Ok("sent".to_owned())
}

/// Writes all bytes, and waits while the port is full.
fn write_all(port: &mut File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match port.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                wait_for(port, libc::POLLOUT);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn drain() -> std::io::Result<String> {
    let mut port = port()?;
    // The first byte tells the host to begin.
    port.write_all(b"g")?;
    let mut buffer = vec![0; 256 * 1024];
    let mut taken = 0;
    while taken < FLOOD_BYTES {
        match port.read(&mut buffer) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                wait_for(&port, libc::POLLIN);
            }
            Err(error) => return Err(error),
        }
    }
    port.write_all(b"e")?;
    Ok("taken".to_owned())
}

fn spawn() -> std::io::Result<u128> {
    let mut times = Vec::new();
    for _ in 0..SPAWNS {
        let start = Instant::now();
        fork_exec_wait(c"/bin/true")?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[SPAWNS / 2].as_nanos())
}

/// Opens the master side of a new pseudoterminal.
fn open_pty() -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/ptmx")
}

/// Returns the median time from writing a key to a pseudoterminal to its echo.
fn pty() -> std::io::Result<u128> {
    let mut keyboard = open_pty()?;
    let _terminal = open_pty_peer(&keyboard)?;
    let mut times = Vec::new();
    let mut echo = [0; 16];
    for _ in 0..KEYS {
        let start = Instant::now();
        keyboard.write_all(b"x")?;
        while keyboard.read(&mut echo).is_err() {
            wait_for(&keyboard, libc::POLLIN);
        }
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[KEYS / 2].as_nanos())
}
