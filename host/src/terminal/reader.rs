use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use vmcell_wire::{
    Outcome, Request, Selector,
    terminal::{InputKind, TerminalRequest, WriteInput},
};

use super::{
    model::{EndReason, Model},
    shared::Shared,
};
use crate::{
    process::Exit,
    redaction::Redacted,
    session::{LinkError, Stream, StreamEvent},
    vm::Vm,
};

/// The task that reads a terminal's output, as long as there is a handle.
pub(super) struct Reader {
    pub(super) vm: Vm,
    pub(super) stream: Stream,
    pub(super) shared: Arc<Shared>,
    /// The id of the process.
    pub(super) id: u32,
    /// Identifies this attachment when it answers the program's queries.
    pub(super) writer: u64,
    /// The offset of the next byte.
    pub(super) offset: u64,
    /// The offset from which on this reader answers the program's queries.
    /// Earlier ones were answered already, or their program no longer waits and
    /// would take an answer for input.
    pub(super) answer_from: u64,
}

/// How many bytes are processed at once, before other tasks get a turn.
const MAX_CHUNK: usize = 64 * 1024;

/// How long the possible beginning of a secret is held back from live readers.
/// An echo arrives in one piece. If the rest comes later, only stored output can
/// still be masked.
const HOLD_BACK_TIME: Duration = Duration::from_millis(100);

impl Reader {
    pub(super) async fn run(mut self) {
        let ended = self.read().await;
        self.publish(Model::release_held).await;
        self.shared.end(ended).await;
    }

    async fn read(&mut self) -> EndReason {
        let mut held_until = None;
        loop {
            held_until = match self.shared.model().holds_back() {
                true => held_until.or_else(|| Some(Instant::now() + HOLD_BACK_TIME)),
                false => None,
            };
            let next = self.stream.next();
            let event = match held_until {
                None => next.await,
                Some(time) => match timeout_at(time, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.publish(Model::release_held).await;
                        continue;
                    }
                },
            };
            match event {
                Ok(StreamEvent::Data(_, mut bytes)) => {
                    while !bytes.is_empty() {
                        let piece = bytes.split_to(bytes.len().min(self.next_chunk_length()));
                        self.offset += piece.len() as u64;
                        let granted = self.vm.session().secrets().set();
                        let add = |model: &mut Model| {
                            model.hide_granted(granted);
                            model.add_output(piece)
                        };
                        self.publish(add).await;
                        tokio::task::coop::consume_budget().await;
                    }
                }
                Ok(StreamEvent::Gap(_, bytes)) => {
                    self.offset = self.offset.saturating_add(bytes);
                    self.publish(|model| model.skip_lost(bytes)).await;
                }
                Ok(StreamEvent::Closed(closing)) => {
                    return match closing.outcome() {
                        Outcome::Exited(exit) => EndReason::Exited(Exit::from_wire(&exit)),
                        _ => EndReason::LinkLost(LinkError::Closed),
                    };
                }
                Ok(_) => {}
                Err(error) => return EndReason::LinkLost(error),
            }
        }
    }

    /// Returns how many bytes to process next. No chunk spans `answer_from`.
    fn next_chunk_length(&self) -> usize {
        match self.answer_from.saturating_sub(self.offset) {
            0 => MAX_CHUNK,
            old => usize::try_from(old).map_or(MAX_CHUNK, |old| old.min(MAX_CHUNK)),
        }
    }

    async fn publish(&self, change: impl FnOnce(&mut Model) -> Redacted) {
        let answers = self.shared.publish(change).await;
        self.send_answers(&answers);
    }

    /// Sends answers to the program's queries. If several hosts are attached, the
    /// agent selects whose answers it uses.
    fn send_answers(&self, bytes: &[u8]) {
        if bytes.is_empty() || self.offset <= self.answer_from {
            return;
        }
        let typing = WriteInput {
            process: Selector::Id(self.id),
            bytes,
            kind: InputKind::QueryReply {
                writer: self.writer,
            },
        };
        // Sending the request is enough; the outcome is not needed.
        drop(
            self.vm
                .open(&Request::Terminal(TerminalRequest::WriteInput(typing))),
        );
    }
}
