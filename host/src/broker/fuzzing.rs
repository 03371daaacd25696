//! What the fuzz target `http` reaches.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex},
    runtime,
    time::timeout,
};

use super::{BrokeredHost, BrokeredSecret, brokered_host::Transport, connection::Protocol};
use crate::{network::HostName, redaction::SecretSet, secret::Secret};

/// What was sent over a connection to a host that gets the [`VALUE`].
#[derive(Debug)]
pub struct Brokered {
    /// What the host has got.
    pub to_host: Vec<u8>,
    /// What the program has got.
    pub to_program: Vec<u8>,
}

/// The value that programs must not see. The host `api.test` gets it in place of a
/// placeholder: in the header `x-key`, in basic authentication, and in the field `key` of a
/// query.
pub const VALUE: &str = "s3cret-value-of-a-test";

/// How much fits between the ends of a connection.
const BUFFER: usize = 64 * 1024;

/// Nobody here waits for long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Has a program send these bytes, in pieces of this size, and the host answer with those.
/// `request` gets the three placeholders.
///
/// # Panics
/// If it does not end.
pub fn exchange(
    request: impl FnOnce([&str; 3]) -> Vec<u8>,
    answer: &[u8],
    piece: usize,
) -> Brokered {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let (host, secrets) = host();
    let placeholders = [0, 1, 2].map(|index: usize| secrets[index].placeholder());
    let request = request(placeholders);
    let serving = async {
        let (program, ours) = duplex(BUFFER);
        let (upstream, server) = duplex(BUFFER);
        let (_, to_program, to_host) = tokio::join!(
            host.serve_http(ours, Ok(upstream), Protocol::Http1),
            speak(program, &request, piece),
            answer_once(server, answer, piece),
        );
        Brokered {
            to_host,
            to_program,
        }
    };
    runtime
        .block_on(async { timeout(TIMEOUT, serving).await })
        .expect("somebody waits for ever")
}

fn host() -> (Arc<BrokeredHost>, [BrokeredSecret; 3]) {
    let secret = Secret::new("token", VALUE.to_owned()).expect("it is a secret");
    let secrets = [
        BrokeredSecret::header(&secret, "api.test", "x-key"),
        BrokeredSecret::basic(&secret, "api.test"),
        BrokeredSecret::query(&secret, "api.test", "key"),
    ]
    .map(|secret| secret.expect("it can be granted"));
    let host = BrokeredHost {
        name: HostName::new("api.test").expect("it is a name"),
        port: 80,
        transport: Transport::Plain,
        secrets: secrets.to_vec(),
        masked: Arc::new(SecretSet::new([VALUE.as_bytes()], [])),
    };
    (Arc::new(host), secrets)
}

/// Sends everything in pieces, and then ends it.
async fn write_all(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece.max(1)) {
        if writer.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let _ = writer.shutdown().await;
}

/// Sends everything, and returns all that comes back.
async fn speak(mut socket: DuplexStream, bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let (mut reader, mut writer) = tokio::io::split(&mut socket);
    let writing = write_all(&mut writer, bytes, piece);
    let (_, _) = tokio::join!(writing, reader.read_to_end(&mut received));
    received
}

/// Answers as soon as a request has come, and returns all that comes.
async fn answer_once(mut socket: DuplexStream, answer: &[u8], piece: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let has_head = |received: &[u8]| received.windows(4).any(|end| end == b"\r\n\r\n");
    while !has_head(&received) {
        match socket.read_buf(&mut received).await {
            Ok(1..) => {}
            _ => return received,
        }
    }
    let (mut reader, mut writer) = tokio::io::split(socket);
    let writing = write_all(&mut writer, answer, piece);
    let (_, _) = tokio::join!(writing, reader.read_to_end(&mut received));
    received
}
