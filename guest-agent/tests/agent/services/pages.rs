//! A web server that says what a test tells it to.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

pub(super) struct Pages {
    port: u16,
    answers: SyncSender<String>,
    requests: Receiver<String>,
}

const PATIENCE: Duration = Duration::from_secs(20);

impl Pages {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, to_say) = sync_channel::<String>(0);
        let (heard, requests) = sync_channel(100);
        std::thread::spawn(move || {
            // It ends with the test.
            for answer in to_say {
                let (mut client, _) = listener.accept().unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    match client.read(&mut byte) {
                        Ok(1) => request.push(byte[0]),
                        _ => break,
                    }
                }
                let _ = client.write_all(answer.as_bytes());
                let _ = heard.send(String::from_utf8(request).unwrap());
            }
        });
        Self {
            port,
            answers,
            requests,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Answers the next request, and tells what it was.
    pub(super) fn answer(&self, answer: &str) -> String {
        self.answers.send(answer.into()).unwrap();
        self.requests.recv_timeout(PATIENCE).unwrap()
    }
}

/// A port on which nobody listens, and that stays free: the kernel gives its own
/// choice from 32768 on to whoever binds or connects meanwhile.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Another run of the tests at the same time starts elsewhere.
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
