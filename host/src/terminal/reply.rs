use bytes::Bytes;

use super::{Prompt, Status, Terminal, plain_text::PlainTextFilter};

/// What came of something that was done to a terminal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// What was printed since the reply before, or from the cursor on that was
    /// asked for: as a person would read it, without escape sequences.
    pub text: String,
    /// The same as it came.
    pub raw: Bytes,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its last byte, from which to read on.
    pub end: u64,
    /// How many bytes before it are not kept any more.
    pub lost: u64,
    /// Whether more was printed than fits in: the next reply begins with it.
    pub more: bool,
    /// Whether the time was over before the terminal was silent, or before
    /// anything came.
    pub timed_out: bool,
    /// What the terminal seems to wait for now.
    pub status: Status,
    /// What sort of prompt is there.
    pub prompt: Prompt,
}

impl Reply {
    /// Takes what no reply has told yet, or what is there from a cursor on.
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
