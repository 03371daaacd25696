//! The connection with a client: one JSON message in each line.

mod backlog;
mod line;
mod message_id;
mod refusal;

pub(crate) use line::MAX_LINE;
pub(crate) use refusal::Refusal;

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use backlog::Backlog;
use line::{Line, LineReader};

/// The connection with a client. What is no message gets an error, and nothing that a client
/// sends or does not read fills the memory.
pub(crate) struct Connection<R, W> {
    input: LineReader<R>,
    /// None when it is closed.
    output: Arc<tokio::sync::Mutex<Option<W>>>,
    backlog: Backlog,
    /// The requests that are not answered yet.
    requests: Arc<Requests>,
}

#[derive(Default)]
struct Requests(Mutex<HashSet<RequestId>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R, W> Connection<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(input: R, output: W) -> Self {
        Self {
            input: LineReader::new(input),
            output: Arc::new(tokio::sync::Mutex::new(Some(output))),
            backlog: Backlog::default(),
            requests: Arc::default(),
        }
    }

    /// Returns the message of a line, or nothing if it is to be ignored.
    fn message(&self, line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Refusal> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let message = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => return Refusal::of(line, &error).map_or(Ok(None), Err),
        };
        if let JsonRpcMessage::Request(request) = &message
            && !self.requests.lock().insert(request.id.clone())
        {
            return Err(Refusal::used_id(&request.id));
        }
        // A request that is cancelled gets no answer.
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.requests.lock().remove(id);
        }
        Ok(Some(message))
    }
}

impl<R, W> Transport<RoleServer> for Connection<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.requests.lock().remove(id);
        }
        let line = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            line
        });
        let waiting = self.backlog.add(line.as_ref().map_or(0, Vec::len));
        let output = self.output.clone();
        async move {
            let _waiting = waiting;
            let line = line?;
            let mut output = output.lock().await;
            let output = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if !self.backlog.has_room().await {
                tracing::warn!("the client does not read its answers");
                return None;
            }
            let refusal = match self.input.next().await {
                Ok(Some(Line::Whole(line))) => match self.message(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(refusal) => refusal,
                },
                Ok(Some(Line::TooLong(id))) => Refusal::too_long(id),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "cannot read from the client");
                    return None;
                }
            };
            let sending = self.send(JsonRpcMessage::error(refusal.error, refusal.id));
            // Not here: this future may be dropped.
            tokio::spawn(async move {
                if let Err(error) = sending.await {
                    tracing::debug!(%error, "cannot tell the client what is wrong");
                }
            });
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A client that does not read keeps it locked; what is not sent yet is dropped next.
        if let Ok(mut output) = self.output.try_lock() {
            output.take();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock, ServerResult};
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::*;

    type Server = Connection<DuplexStream, DuplexStream>;

    /// Returns a connection, and its other ends.
    fn connect() -> (Server, DuplexStream, DuplexStream) {
        let (input, requests) = duplex(1 << 20);
        let (output, answers) = duplex(1024);
        (Connection::new(input, output), requests, answers)
    }

    /// Sends an answer of 1 MiB.
    fn answer(server: &mut Server, id: i64) {
        let text = ContentBlock::text("a".repeat(1 << 20));
        let result = CallToolResult::success(vec![text]);
        let result = ServerResult::CallToolResult(result);
        let message = JsonRpcMessage::response(result, RequestId::Number(id));
        tokio::spawn(server.send(message));
    }

    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

    #[tokio::test(start_paused = true)]
    async fn nothing_is_received_while_too_much_is_not_read() {
        let (mut server, mut requests, mut answers) = connect();
        requests.write_all(PING).await.unwrap();
        assert!(server.receive().await.is_some());
        for number in 0..16 {
            answer(&mut server, number);
        }
        requests.write_all(PING).await.unwrap();
        let limit = std::time::Duration::from_secs(20);
        let waiting = tokio::time::timeout(limit, server.receive()).await;
        assert!(waiting.is_err(), "it is received");
        // One that reads is served again.
        let mut read = vec![0; 1 << 20];
        for _ in 0..2 {
            answers.read_exact(&mut read).await.unwrap();
        }
        assert!(server.receive().await.is_some());
        // One that does not has gone.
        for number in 0..2 {
            answer(&mut server, number);
        }
        requests.write_all(PING).await.unwrap();
        assert!(server.receive().await.is_none());
        server.close().await.unwrap();
    }
}
