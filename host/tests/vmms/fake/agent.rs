//! The vsock of a VMM, and the agent behind it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::Arc,
    thread,
};

use vmcell_wire::{
    Capabilities, Decoder, Failure, FailureKind, Hello, Item, Outcome, Peer, Request, Stage, encode,
};

use super::guest::Guest;

/// Connects to the host once, as an agent does that begins to listen.
pub(super) fn report_ready(vsock: &Path, port: u32) {
    drop(UnixStream::connect(format!("{}_{port}", vsock.display())).unwrap());
}

/// Serves connections until the guest powers off, which ends the process. A guest
/// `with_old_connections` ignores the first connection and refuses the second.
pub(super) fn serve(
    listener: &UnixListener,
    guest: &Arc<Guest>,
    port: u32,
    with_old_connections: bool,
) {
    let mut ignored = Vec::new();
    for (number, host) in listener.incoming().enumerate() {
        let host = host.unwrap();
        match number {
            0 if with_old_connections => ignored.push(host),
            1 if with_old_connections => drop(read_line(&host)),
            _ => {
                let guest = guest.clone();
                thread::spawn(move || accept(host, &guest, port));
            }
        }
    }
}

fn accept(host: UnixStream, guest: &Guest, port: u32) {
    let resets = guest.wait_until_running();
    assert_eq!(read_line(&host), format!("CONNECT {port}\n"));
    (&host).write_all(b"OK 1073741824\n").unwrap();
    answer(host, guest, resets);
}

/// Reads a line, after which the host must wait for the answer.
fn read_line(host: &UnixStream) -> String {
    let mut lines = BufReader::new(host);
    let mut request = String::new();
    lines.read_line(&mut request).unwrap();
    assert!(
        lines.buffer().is_empty(),
        "the host did not wait for the answer"
    );
    request
}

/// Answers as an agent without any features, except for snapshots.
fn answer(mut host: UnixStream, guest: &Guest, resets: u32) {
    let mut decoder = Decoder::new(Peer::Host);
    let mut buffer = [0; 4096];
    let mut answers = Vec::new();
    loop {
        let count = host.read(&mut buffer).unwrap_or(0);
        // A guest that has forgotten the connection answers with a reset.
        if count == 0 || guest.wait_until_running() != resets {
            return;
        }
        let mut input = &buffer[..count];
        while let Some(item) = decoder.decode(&mut input).unwrap() {
            let (stream, outcome) = match item {
                Item::Hello(hello) => {
                    assert_eq!(hello.boot_id, guest.boot_id());
                    send_hello(&mut answers, guest);
                    continue;
                }
                Item::Open { stream, request } => match request {
                    Request::Start(_) => (stream, Outcome::Failed(no_processes())),
                    Request::Ping => (stream, Outcome::Pong),
                    Request::SetClock { .. } => {
                        println!("clock: set");
                        (stream, Outcome::Done)
                    }
                    Request::Freeze | Request::Thaw => {
                        guest.set_frozen(request == Request::Freeze);
                        (stream, Outcome::Done)
                    }
                    Request::Renew(renew) => {
                        guest.renew(renew.boot_id, renew.hostname);
                        (stream, Outcome::Done)
                    }
                    Request::PowerOff { .. } => {
                        encode::close(&mut answers, stream, &Outcome::DiskClean).unwrap();
                        host.write_all(&answers).unwrap();
                        std::process::exit(0);
                    }
                    _ => continue,
                },
                _ => continue,
            };
            encode::close(&mut answers, stream, &outcome).unwrap();
        }
        // Fails if the host has hung up.
        let _ = host.write_all(&answers);
        answers.clear();
    }
}

fn no_processes() -> Failure<'static> {
    let text = "a fake has no processes";
    Failure::new(FailureKind::Unsupported, Stage::Request, text)
}

fn send_hello(answers: &mut Vec<u8>, guest: &Guest) {
    let mut hello = Hello::new("a fake agent", 65_536, guest.boot_id());
    // A newer generation, but without one capability.
    hello.generation = 7;
    let all_but_one = !Capabilities::SERVICES.bits();
    hello.capabilities = Capabilities::from_bits(all_but_one);
    encode::hello(answers, &hello).unwrap();
}
