//! A web server whose responses a test chooses.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

pub(super) struct WebServer {
    port: u16,
    answers: SyncSender<String>,
    requests: Receiver<String>,
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

impl WebServer {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, responses) = sync_channel::<String>(0);
        let (heard, requests) = sync_channel(100);
        std::thread::spawn(move || {
            // The thread ends with the test.
            for answer in responses {
                let (mut client, _) = listener.accept().unwrap();
                client.set_read_timeout(Some(REQUEST_TIMEOUT)).unwrap();
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

    /// Answers the next request, and returns it.
    pub(super) fn answer(&self, answer: &str) -> String {
        self.answers.send(answer.into()).unwrap();
        self.requests.recv_timeout(REQUEST_TIMEOUT).unwrap()
    }
}

/// Returns a port without a server that stays free: for bind and connect the
/// kernel itself chooses ports from 32768 on.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // A concurrent run of the tests starts elsewhere.
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
