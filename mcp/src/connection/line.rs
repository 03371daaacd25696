use rmcp::model::RequestId;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::message_id::MessageId;

/// The longest message of a client.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// Reads lines that are not longer than [`MAX_LINE`], and keeps nothing of longer ones.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Set while a line is read that is too long.
    too_long: Option<MessageId>,
}

/// What was read.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// One that was too long, with the id of the message if it has one.
    TooLong(Option<RequestId>),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            too_long: None,
        }
    }

    /// Returns the next line, or nothing at the end: what follows the last line end is no
    /// line.
    ///
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|&byte| byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if self.too_long.is_none() && self.line.len() + part.len() > MAX_LINE {
                let mut id = MessageId::default();
                id.read(&self.line);
                self.line = Vec::new();
                self.too_long = Some(id);
            }
            match &mut self.too_long {
                Some(id) => id.read(part),
                None => self.line.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(match self.too_long.take() {
                    Some(id) => Line::TooLong(id.found()),
                    None => Line::Whole(std::mem::take(&mut self.line)),
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_those_after_them_are_read() {
        let mut input = b"one\r\n\ntwo\n{\"id\":7,\"x\":\"".to_vec();
        input.resize(MAX_LINE + 100, b'a');
        input.extend(b"\"}\n");
        let exact = vec![b'b'; MAX_LINE];
        input.extend(&exact);
        input.extend(b"\nrest");
        let mut lines = LineReader::new(&input[..]);
        for expected in [
            Line::Whole(b"one\r".to_vec()),
            Line::Whole(Vec::new()),
            Line::Whole(b"two".to_vec()),
            Line::TooLong(Some(RequestId::Number(7))),
            Line::Whole(exact),
        ] {
            assert_eq!(lines.next().await.unwrap(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
