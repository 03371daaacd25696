use bytes::Bytes;

use super::{Prompt, Status, Terminal, plain_text::PlainTextFilter};

/// The result of an operation on a terminal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The output since the last reply, or from the requested offset on, as plain
    /// text without escape sequences.
    pub text: String,
    /// The same output as raw bytes.
    pub raw: Bytes,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset after its last byte, from which to read on.
    pub end: u64,
    /// How many bytes before it were dropped.
    pub lost: u64,
    /// Whether there is more output than fits; the next reply starts with it.
    pub more: bool,
    /// Whether the timeout passed before the wait was over.
    pub timed_out: bool,
    /// What the terminal seems to wait for now.
    pub status: Status,
    /// The kind of prompt at the cursor.
    pub prompt: Prompt,
}

impl Reply {
    /// Takes the output that no reply has returned yet, or reads from an offset.
    pub(super) fn take(terminal: &Terminal, cursor: Option<u64>, max_bytes: usize) -> Self {
        let model = &mut *terminal.core().shared.model();
        let from = cursor.unwrap_or(model.reply_offset);
        let piece = model.transcript.read(from, max_bytes);
        let end = piece.end();
        let mut text = String::new();
        let mut new_filter = PlainTextFilter::new();
        let filter = match cursor {
            Some(_) => &mut new_filter,
            None => {
                model.reply_offset = end;
                &mut model.plain_text
            }
        };
        filter.set_columns(model.size.columns);
        filter.feed(&piece.bytes, &mut text);
        filter.flush(&mut text);
        model.mask_secrets(&mut text);
        Self {
            text,
            start: piece.offset,
            end,
            lost: piece.offset.saturating_sub(from),
            more: end < model.transcript.end(),
            raw: piece.bytes,
            timed_out: false,
            status: Status::Unknown,
            prompt: Prompt::Unknown,
        }
    }
}
