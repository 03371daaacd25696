use std::{collections::HashMap, future::pending, mem};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::yield_now,
};
use vmcell_wire::{
    Channel, Decoder, Hello, Item, Outcome, Peer, Request, StreamId, encode,
    reset::{RESET_PART, ResetKey, Scanned, Scanner},
};

/// A guest that sends whatever it is told to, and remembers it.
pub(super) struct Guest {
    pub(super) link: UnixStream,
    decoder: Decoder,
    pub(super) unread: Vec<u8>,
    /// Decodes what this guest sends.
    own: Decoder,
    pub(super) sent: HashMap<(StreamId, Channel), Vec<u8>>,
    pub(super) was_reset: bool,
}

pub(super) const BOOT_ID: [u8; 16] = [7; 16];

impl Guest {
    pub(super) fn new(link: UnixStream) -> Self {
        Self {
            link,
            decoder: Decoder::new(Peer::Host),
            unread: Vec::new(),
            own: Decoder::new(Peer::Guest),
            sent: HashMap::new(),
            was_reset: false,
        }
    }

    /// Sends bytes in pieces, unless the host has closed its end.
    pub(super) async fn write(&mut self, bytes: &[u8], piece: usize) {
        self.remember(bytes);
        for piece in bytes.chunks(piece.max(1)) {
            if self.link.write_all(piece).await.is_err() {
                return;
            }
            yield_now().await;
        }
    }

    /// Remembers the data of outputs.
    fn remember(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while let Ok(Some(item)) = self.own.decode(&mut input) {
            if let Item::Data {
                stream,
                channel,
                bytes,
            } = item
            {
                self.sent
                    .entry((stream, channel))
                    .or_default()
                    .extend(bytes);
            }
        }
    }

    /// Waits for a ping, and answers it. All that comes before must be what a host may send.
    pub(super) async fn answer_ping(&mut self, ping: StreamId) {
        loop {
            let mut input = &self.unread[..];
            let mut is_there = false;
            while let Some(item) = self.decoder.decode(&mut input).expect("a host sends it") {
                is_there |=
                    matches!(item, Item::Open { stream, request: Request::Ping } if stream == ping);
                assert!(!matches!(item, Item::OpenUnknown { .. }), "{item:?}");
            }
            self.unread.clear();
            if is_there {
                let mut pong = Vec::new();
                encode::close(&mut pong, ping, &Outcome::Pong).expect("it is small");
                self.write(&pong, pong.len()).await;
                return;
            }
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                pending::<()>().await;
            }
        }
    }

    /// Waits for a reset, and answers it.
    pub(super) async fn answer_reset(&mut self, window: u32) {
        let mut scanner = Scanner::new(key().to_bytes());
        self.unread.clear();
        let rest = loop {
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return pending().await;
            }
            let unread = mem::take(&mut self.unread);
            let mut input = &unread[..];
            let mut is_found = false;
            loop {
                match scanner.scan(&mut input) {
                    Scanned::Other(_) => {}
                    Scanned::Nothing => break,
                    Scanned::Mark => {
                        is_found = true;
                        break;
                    }
                }
            }
            if is_found {
                break input.to_vec();
            }
        };
        self.unread = rest;
        while self.unread.len() < RESET_PART {
            if self.link.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                return pending().await;
            }
        }
        let nonce: Vec<u8> = self.unread.drain(..RESET_PART).collect();
        self.decoder = Decoder::new(Peer::Host);
        self.own = Decoder::new(Peer::Guest);
        self.was_reset = true;
        let answer = [&nonce[..], &hello(window)].concat();
        let _ = self.link.write_all(&answer).await;
    }
}

pub(super) fn key() -> ResetKey {
    ResetKey::new(*b"0123456789abcdef")
}

pub(super) fn hello(window: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    let hello = Hello::new("a guest that is fuzzed", window, BOOT_ID);
    encode::hello(&mut frame, &hello).expect("it is small");
    frame
}
