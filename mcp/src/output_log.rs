//! What a command prints, as messages to the client while it is printed.
#![expect(
    deprecated,
    reason = "the newest protocol prefers other ways, but clients ask for these messages"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, RequestId},
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::Notify;
use vmcell::OutputKind;
use vmcell_tree::whole_characters;

/// How much of each output waits to be sent. More is left out: all of it is in the answer.
const MAX_WAITING: usize = 64 << 10;

/// Where the messages of a call go.
#[derive(Clone)]
pub(crate) struct LogTarget {
    peer: Peer<RoleServer>,
    tool: String,
    request: RequestId,
}

impl LogTarget {
    /// Returns it if the client wants messages of the level of output.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        tool: &str,
    ) -> Option<Self> {
        let is_wanted = matches!(level, Some(LoggingLevel::Debug | LoggingLevel::Info));
        is_wanted.then(|| Self {
            peer: context.peer.clone(),
            tool: tool.to_owned(),
            request: context.id.clone(),
        })
    }

    async fn send(&self, message: Message) {
        let data = json!({
            "request_id": self.request,
            "output": message.output,
            "text": message.text,
            "omitted_bytes": message.omitted,
        });
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, data);
        let message = message.with_logger(&self.tool);
        // Who is gone does not want to know.
        let _ = self.peer.notify_logging_message(message).await;
    }
}

/// What a command has printed that the client was not told of yet.
#[derive(Debug, Default)]
pub(crate) struct OutputLog {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    stdout: Piece,
    stderr: Piece,
    is_ended: bool,
}

#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    omitted: usize,
}

/// A message with a part of an output.
struct Message {
    output: &'static str,
    text: String,
    omitted: usize,
}

impl OutputLog {
    pub(crate) fn add(&self, output: OutputKind, bytes: &[u8]) {
        {
            let mut waiting = self.lock();
            let piece = match output {
                OutputKind::Stdout => &mut waiting.stdout,
                OutputKind::Stderr => &mut waiting.stderr,
            };
            let room = MAX_WAITING.saturating_sub(piece.bytes.len());
            let kept = bytes.len().min(room);
            piece.bytes.extend_from_slice(&bytes[..kept]);
            piece.omitted += bytes.len() - kept;
        }
        self.changed.notify_one();
    }

    /// Says that nothing is added any more.
    pub(crate) fn end(&self) {
        self.lock().is_ended = true;
        self.changed.notify_one();
    }

    /// Sends what is added, until the end.
    pub(crate) async fn send(&self, target: &LogTarget) {
        loop {
            let (messages, is_ended) = self.take();
            for message in messages {
                target.send(message).await;
            }
            if is_ended {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Takes what is to be sent now, and returns whether nothing follows.
    fn take(&self) -> (impl Iterator<Item = Message>, bool) {
        let mut waiting = self.lock();
        let is_ended = waiting.is_ended;
        let stdout = waiting.stdout.take("stdout", is_ended);
        let stderr = waiting.stderr.take("stderr", is_ended);
        (stdout.into_iter().chain(stderr), is_ended)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Piece {
    /// Takes all of it, but a last character of which bytes are missing only at the end.
    fn take(&mut self, output: &'static str, is_ended: bool) -> Option<Message> {
        let whole = match is_ended || self.omitted > 0 {
            true => self.bytes.len(),
            false => whole_characters(&self.bytes).len(),
        };
        let rest = self.bytes.split_off(whole);
        let bytes = std::mem::replace(&mut self.bytes, rest);
        let omitted = std::mem::take(&mut self.omitted);
        (!bytes.is_empty() || omitted > 0).then(|| Message {
            output,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            omitted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(log: &OutputLog) -> Vec<(&'static str, String, usize)> {
        let (messages, _) = log.take();
        messages
            .map(|message| (message.output, message.text, message.omitted))
            .collect()
    }

    #[test]
    fn characters_are_not_cut_and_too_much_is_counted() {
        let log = OutputLog::default();
        log.add(OutputKind::Stdout, b"a\xc3");
        log.add(OutputKind::Stderr, b"e");
        let expected = [("stdout", "a".to_owned(), 0), ("stderr", "e".to_owned(), 0)];
        assert_eq!(taken(&log), expected);
        log.add(OutputKind::Stdout, b"\xa4");
        assert_eq!(taken(&log), [("stdout", "\u{e4}".to_owned(), 0)]);
        assert_eq!(taken(&log), []);
        log.add(OutputKind::Stdout, &[b'x'; MAX_WAITING + 5]);
        log.add(OutputKind::Stdout, b"yy");
        assert_eq!(taken(&log), [("stdout", "x".repeat(MAX_WAITING), 7)]);
        log.add(OutputKind::Stdout, b"z\xc3");
        log.end();
        assert_eq!(taken(&log), [("stdout", "z\u{fffd}".to_owned(), 0)]);
    }
}
