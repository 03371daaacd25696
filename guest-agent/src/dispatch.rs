//! What each item from a host means.

use vmcell_wire::{
    Event, Exec, Failure, FailureKind, Hello, Item, Outcome, Request, Stage, StreamId, WireError,
    encode,
};

use crate::{
    agent::Agent,
    link::{Conversation, Lost, Stream},
    power::PowerOff,
    process::{INPUT_WINDOW, Owner},
};

/// What the agent calls itself.
const BUILD: &str = concat!("vmcell-agent ", env!("CARGO_PKG_VERSION"));

impl Agent {
    pub(crate) fn dispatch(
        &mut self,
        conversation: &mut Conversation,
        item: Item<'_>,
    ) -> Result<(), Lost> {
        let Some(peer_window) = conversation.peer_window else {
            return match item {
                Item::Hello(hello) => self.greet(conversation, &hello),
                _ => Err(Lost::Violation(WireError::NotVmcell)),
            };
        };
        match item {
            Item::Open { stream, request } => {
                self.open(conversation, peer_window, stream, &request)
            }
            Item::OpenUnknown { stream } => {
                let text = "the agent does not know this request";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                conversation.close(stream, &Outcome::Failed(failure))
            }
            Item::Cancel { stream } => {
                if let Some(stream) = conversation.streams.get_mut(&stream) {
                    stream.cancel();
                    self.processes.kill(stream.process());
                }
                Ok(())
            }
            Item::Data {
                stream,
                bytes,
                channel,
            } => {
                let Some(watching) = conversation.streams.get_mut(&stream) else {
                    return Ok(());
                };
                if let Some(credit) = watching.input(bytes, &mut self.processes)? {
                    encode::credit(conversation.control(), stream, channel, credit);
                }
                Ok(())
            }
            Item::End { stream, .. } => {
                if let Some(stream) = conversation.streams.get_mut(&stream) {
                    stream.input_ended(&mut self.processes);
                }
                Ok(())
            }
            Item::Credit {
                stream,
                channel,
                bytes,
            } => match conversation.streams.get_mut(&stream) {
                Some(stream) => stream.credit(channel, bytes),
                None => Ok(()),
            },
            // A second hello, or what only a guest may say.
            Item::Hello(_) | Item::Event { .. } | Item::Close { .. } => {
                Err(Lost::Violation(WireError::Malformed))
            }
        }
    }

    fn greet(&self, conversation: &mut Conversation, hello: &Hello<'_>) -> Result<(), Lost> {
        conversation.peer_window = Some(hello.window);
        let answer = Hello::new(BUILD, INPUT_WINDOW, self.boot_id);
        Ok(encode::hello(conversation.control(), &answer)?)
    }

    fn open(
        &mut self,
        conversation: &mut Conversation,
        peer_window: u32,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), Lost> {
        if !conversation.may_open(stream) {
            return Err(Lost::Violation(WireError::BadStream(stream.get())));
        }
        match request {
            Request::Ping => conversation.close(stream, &Outcome::Pong),
            Request::Exec(exec) => self.exec(conversation, peer_window, stream, exec),
            Request::PowerOff { grace_ms } => {
                let link = conversation.id;
                self.power_off(PowerOff::new(Owner { link, stream }, *grace_ms));
                Ok(())
            }
            _ => {
                let text = "the agent cannot do this";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                conversation.close(stream, &Outcome::Failed(failure))
            }
        }
    }

    fn exec(
        &mut self,
        conversation: &mut Conversation,
        peer_window: u32,
        stream: StreamId,
        exec: &Exec<'_>,
    ) -> Result<(), Lost> {
        let link = conversation.id;
        let started = self.processes.start(exec, Owner { link, stream });
        // A short command may have ended by now; then there is nothing to
        // watch and nothing to wait for.
        self.reap();
        let watched = started.and_then(|(process, pid)| {
            self.processes.watch(process, &self.poller)?;
            Ok((process, pid))
        });
        match watched {
            Ok((process, pid)) => {
                let pid = pid.as_raw_nonzero().get().unsigned_abs();
                encode::event(conversation.unhurried(), stream, &Event::Started { pid })?;
                let watching = Stream::new(stream, process, peer_window);
                conversation.streams.insert(stream, watching);
                Ok(())
            }
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }
}
