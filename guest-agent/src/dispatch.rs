//! What each item from a host means.

use vmcell_wire::{
    Capabilities, Channel, Failure, FailureKind, Hello, Item, Outcome, Request, Stage, StreamId,
    WireError, encode,
};

use crate::{
    agent::Agent,
    clock::set_wall_clock,
    job::JOB_WINDOW,
    link::{Conversation, JobStream, Lost, PortStream, Stream},
    power::PowerOff,
    process::{INPUT_WINDOW, number},
};

/// What the agent calls itself.
const BUILD: &str = concat!("vmcell-agent ", env!("CARGO_PKG_VERSION"));

impl Agent {
    pub(crate) fn dispatch(
        &mut self,
        conversation: &mut Conversation,
        item: Item<'_>,
    ) -> Result<(), Lost> {
        if conversation.peer_window.is_none() {
            return match item {
                Item::Hello(hello) => self.greet(conversation, &hello),
                _ => Err(Lost::Violation(WireError::NotVmcell)),
            };
        }
        match item {
            Item::Open { stream, request } => self.open(conversation, stream, &request),
            Item::OpenUnknown { stream } => {
                let text = "the agent does not know this request";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                conversation.close(stream, &Outcome::Failed(failure))
            }
            Item::Cancel { stream } => {
                let Some(watching) = conversation.streams.get_mut(&stream) else {
                    return Ok(());
                };
                if watching.cancel(&mut self.tasks) {
                    return Ok(());
                }
                conversation.close(stream, &Outcome::Done)
            }
            Item::Ack { stream } => {
                if let Some(power) = &mut self.power {
                    power.acknowledge(conversation.caller(stream));
                }
                conversation.acknowledged(stream, &mut self.tasks);
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
                if let Some(credit) = watching.input(bytes, &mut self.tasks)? {
                    encode::credit(conversation.control(), stream, channel, credit);
                }
                Ok(())
            }
            Item::End { stream, .. } => {
                if let Some(stream) = conversation.streams.get_mut(&stream) {
                    stream.input_ended(&mut self.tasks);
                }
                Ok(())
            }
            Item::Credit {
                stream,
                channel,
                bytes,
            } => match conversation.streams.get_mut(&stream) {
                Some(stream) => stream.credit(channel, bytes, &mut self.tasks),
                None => Ok(()),
            },
            // A second hello, or what only a guest may say.
            Item::Hello(_) | Item::Event { .. } | Item::Close { .. } => {
                Err(Lost::Violation(WireError::Malformed))
            }
        }
    }

    fn greet(&mut self, conversation: &mut Conversation, hello: &Hello<'_>) -> Result<(), Lost> {
        conversation.peer_window = Some(hello.window);
        self.has_company();
        let mut answer = Hello::new(BUILD, INPUT_WINDOW, self.boot_id);
        if !self.has_clock {
            answer.capabilities = answer.capabilities.without(Capabilities::CLOCK);
        }
        Ok(encode::hello(conversation.control(), &answer)?)
    }

    fn open(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), Lost> {
        if !conversation.may_open(stream) {
            return Err(Lost::Violation(WireError::BadStream(stream.get())));
        }
        let answer = match request {
            Request::Ping => Ok(Outcome::Pong),
            Request::PowerOff { grace_ms } => {
                self.power_off(PowerOff::new(conversation.caller(stream), *grace_ms));
                return Ok(());
            }
            Request::Files(_) => return self.begin_job(conversation, stream, request),
            Request::Start(start) => return self.start(conversation, stream, start),
            Request::Resume(resume) => return self.resume(conversation, stream, resume),
            Request::Attach(attach) => return self.attach(conversation, stream, attach),
            Request::Kill { process } => return self.kill(conversation, stream, *process),
            Request::List { after } => return self.list(conversation, stream, *after, |_| true),
            Request::ListTrees { after } => return self.list_trees(conversation, stream, *after),
            Request::Terminal(request) => return self.terminal(conversation, stream, request),
            Request::Service(request) => return self.service(conversation, stream, request),
            Request::Dial { port } => return self.dial(conversation, stream, *port),
            Request::Signal { process, signal } => self.signal(*process, *signal),
            Request::Detach { process } => self.detach(conversation, *process),
            Request::Forget { process } => self.forget(*process),
            Request::SetClock { wall_time_ns } if self.has_clock => set_clock(*wall_time_ns),
            _ => {
                let text = "the agent cannot do this";
                Err(Failure::new(FailureKind::Unsupported, Stage::Request, text))
            }
        };
        conversation.close(stream, &answer.unwrap_or_else(Outcome::Failed))
    }

    fn begin_job(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), Lost> {
        let caller = conversation.caller(stream);
        match self.tasks.jobs.begin(request, caller, &self.poller) {
            Ok(job) => {
                // The hello has named the window of a process.
                let more = JOB_WINDOW.saturating_sub(INPUT_WINDOW);
                encode::credit(conversation.unhurried(), stream, Channel::Stdin, more);
                let waiting = JobStream::new(caller, job, conversation.window());
                conversation.streams.insert(stream, Stream::Job(waiting));
                Ok(())
            }
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }

    fn dial(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        port: u16,
    ) -> Result<(), Lost> {
        let caller = conversation.caller(stream);
        match self.tasks.connections.dial(port, caller, &self.poller) {
            Ok(connection) => {
                let stream = PortStream::new(caller, connection, conversation.window());
                conversation
                    .streams
                    .insert(caller.stream, Stream::Port(stream));
                Ok(())
            }
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }
}

fn set_clock(wall_time_ns: u64) -> Result<Outcome<'static>, Failure<'static>> {
    set_wall_clock(wall_time_ns).map_err(|errno| {
        let text = "the clock cannot be set";
        Failure::from_errno(number(errno), Stage::Request, text)
    })?;
    Ok(Outcome::Done)
}
