use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use vmcell_wire::{
    Request, Selector,
    terminal::{Terminal as Wire, Typed, Typing},
};

use super::{
    model::{Model, Over},
    redaction::Passed,
    shared::Shared,
};
use crate::{
    process::Exit,
    session::{Closing, LinkError, Stream, StreamEvent},
    vm::Vm,
};

/// Reads what a terminal prints, for as long as somebody has a handle of it.
pub(super) struct Reader {
    pub(super) vm: Vm,
    pub(super) stream: Stream,
    pub(super) shared: Arc<Shared>,
    /// The process.
    pub(super) id: u32,
    /// As whom we answer what the program asks of its terminal.
    pub(super) writer: u64,
    /// The offset of the next byte.
    pub(super) offset: u64,
    /// From where on questions are ours to answer. What was asked before we came
    /// was answered, or its program does not wait any more and would take an
    /// answer for typing.
    pub(super) answers_from: u64,
}

/// So much is taken in at once, for others to have their turn.
const TURN: usize = 64 * 1024;

/// So long is held back what may be the beginning of a secret, for those who
/// follow live. The rest of an echo comes with its beginning. Of what comes later
/// only what is kept can be masked.
const HOLD: Duration = Duration::from_millis(100);

impl Reader {
    pub(super) async fn run(mut self) {
        let over = self.read().await;
        self.show(Model::release).await;
        self.shared.end(over).await;
    }

    async fn read(&mut self) -> Over {
        let mut held_until = None;
        loop {
            held_until = match self.shared.model().holds_back() {
                true => held_until.or_else(|| Some(Instant::now() + HOLD)),
                false => None,
            };
            let next = self.stream.next();
            let event = match held_until {
                None => next.await,
                Some(time) => match timeout_at(time, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.show(Model::release).await;
                        continue;
                    }
                },
            };
            match event {
                Ok(StreamEvent::Data(_, mut bytes)) => {
                    while !bytes.is_empty() {
                        let piece = bytes.split_to(bytes.len().min(self.turn()));
                        self.offset += piece.len() as u64;
                        self.show(|model| model.printed(piece)).await;
                        tokio::task::coop::consume_budget().await;
                    }
                }
                Ok(StreamEvent::Gap(_, bytes)) => {
                    self.offset = self.offset.saturating_add(bytes);
                    self.show(|model| model.lost(bytes)).await;
                }
                Ok(StreamEvent::Closed(Closing::Exited(exit))) => {
                    return Over::Ended(Exit::from_wire(&exit));
                }
                Ok(StreamEvent::Closed(_)) => return Over::Link(LinkError::Closed),
                Ok(_) => {}
                Err(lost) => return Over::Link(lost),
            }
        }
    }

    /// How much is taken in next. What was printed before we came and what was
    /// printed since are taken one after the other.
    fn turn(&self) -> usize {
        match self.answers_from.saturating_sub(self.offset) {
            0 => TURN,
            old => usize::try_from(old).map_or(TURN, |old| old.min(TURN)),
        }
    }

    async fn show(&self, change: impl FnOnce(&mut Model) -> Passed) {
        let answers = self.shared.show(change).await;
        self.answer(&answers);
    }

    /// Answers what the program asked its terminal. Whether the agent listens
    /// to us or to another who is attached is its business.
    fn answer(&self, bytes: &[u8]) {
        if bytes.is_empty() || self.offset <= self.answers_from {
            return;
        }
        let typing = Typing {
            process: Selector::Id(self.id),
            bytes,
            kind: Typed::Answer {
                writer: self.writer,
            },
        };
        // The request alone does it, whoever waits for the outcome.
        drop(self.vm.open(&Request::Terminal(Wire::Type(typing))));
    }
}
