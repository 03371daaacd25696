//! Routes each decoded item from a host to the code that handles it.

use vmcell_wire::{
    Failure, FailureKind, Hello, Item, Outcome, Request, Stage, StreamId, WireError, encode,
};

use crate::{
    agent::Agent,
    clock::set_wall_clock,
    link::{LinkError, LinkSession},
    power::PowerOff,
    process::{INPUT_WINDOW, raw_errno},
};

#[cfg(feature = "ports")]
use crate::link::PortStream;
#[cfg(any(feature = "files", feature = "ports"))]
use crate::link::Stream;
#[cfg(feature = "files")]
use crate::{job::JOB_WINDOW, link::JobStream};

/// The name and version that the agent reports in its hello.
const BUILD: &str = concat!("vmcell-agent ", env!("CARGO_PKG_VERSION"));

impl Agent {
    pub(crate) fn dispatch(
        &mut self,
        session: &mut LinkSession,
        item: Item<'_>,
    ) -> Result<(), LinkError> {
        if session.peer_window.is_none() {
            return match item {
                Item::Hello(hello) => self.greet(session, &hello),
                _ => Err(LinkError::Violation(WireError::NotVmcell)),
            };
        }
        match item {
            Item::Open { stream, request } => self.open(session, stream, &request),
            Item::OpenUnknown { stream } => {
                let text = "the agent does not know this request";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                session.close(stream, &Outcome::Failed(failure))
            }
            Item::Cancel { stream } => {
                let Some(watching) = session.streams.get_mut(&stream) else {
                    return Ok(());
                };
                if watching.cancel(&mut self.tasks) {
                    return Ok(());
                }
                session.close(stream, &Outcome::Done)
            }
            Item::Ack { stream } => {
                if let Some(power) = &mut self.power {
                    power.acknowledge(session.caller(stream));
                }
                session.acknowledged(stream, &mut self.tasks);
                Ok(())
            }
            Item::Data {
                stream,
                bytes,
                channel,
            } => {
                let Some(watching) = session.streams.get_mut(&stream) else {
                    return Ok(());
                };
                if let Some(credit) = watching.input(bytes, &mut self.tasks)? {
                    encode::credit(session.control(), stream, channel, credit);
                }
                Ok(())
            }
            Item::End { stream, .. } => {
                if let Some(stream) = session.streams.get_mut(&stream) {
                    stream.input_ended(&mut self.tasks);
                }
                Ok(())
            }
            Item::Credit {
                stream,
                channel,
                bytes,
            } => match session.streams.get_mut(&stream) {
                Some(stream) => stream.credit(channel, bytes, &mut self.tasks),
                None => Ok(()),
            },
            // A second hello, or an item that only a guest may send.
            Item::Hello(_) | Item::Event { .. } | Item::Close { .. } => {
                Err(LinkError::Violation(WireError::Malformed))
            }
        }
    }

    fn greet(&mut self, session: &mut LinkSession, hello: &Hello<'_>) -> Result<(), LinkError> {
        session.greeted(hello);
        self.on_first_hello();
        let mut answer = Hello::new(BUILD, INPUT_WINDOW, self.boot_id);
        answer.capabilities = self.capabilities();
        Ok(encode::hello(session.control(), &answer)?)
    }

    fn open(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), LinkError> {
        if !session.may_open(stream) {
            return Err(LinkError::Violation(WireError::BadStream(stream.get())));
        }
        let answer = match request {
            Request::Ping => Ok(Outcome::Pong),
            Request::PowerOff { grace_ms } if self.power_control.is_some() => {
                self.power_off(PowerOff::new(session.caller(stream), *grace_ms));
                return Ok(());
            }
            #[cfg(feature = "files")]
            Request::Files(_) => return self.begin_job(session, stream, request),
            Request::Start(start) => return self.start(session, stream, start),
            Request::Resume(resume) => return self.resume(session, stream, resume),
            Request::Attach(attach) => return self.attach(session, stream, attach),
            Request::Kill { process } => return self.kill(session, stream, *process),
            Request::List { after } => return self.list(session, stream, *after, |_| true),
            Request::ListTrees { after } => return self.list_trees(session, stream, *after),
            #[cfg(feature = "terminals")]
            Request::Terminal(request) => return self.terminal(session, stream, request),
            #[cfg(feature = "services")]
            Request::Service(request) => return self.service(session, stream, request),
            #[cfg(feature = "ports")]
            Request::Dial { port } => return self.dial(session, stream, *port),
            #[cfg(feature = "network")]
            Request::Network(request) if self.has_network => {
                return self.network(session, stream, request);
            }
            #[cfg(feature = "network")]
            Request::SetTrustStore(store) if self.has_network => self.set_trust_store(store),
            Request::Signal { process, signal } => self.signal(*process, *signal),
            Request::Detach { process } => self.detach(session, *process),
            Request::Forget { process } => self.forget(*process),
            Request::SetClock { wall_time_ns } if self.has_clock => set_clock(*wall_time_ns),
            Request::Freeze if self.has_snapshots() => return self.freeze(session, stream),
            Request::Thaw if self.has_snapshots() => self.thaw(),
            Request::Renew(renew) if self.has_snapshots() => self.renew(session, renew),
            Request::CountProcesses if self.tasks.processes.has_cgroups() => self.count_processes(),
            _ => {
                let text = "the agent does not support this request";
                Err(Failure::new(FailureKind::Unsupported, Stage::Request, text))
            }
        };
        session.close(stream, &answer.unwrap_or_else(Outcome::Failed))
    }

    #[cfg(feature = "files")]
    fn begin_job(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), LinkError> {
        let caller = session.caller(stream);
        match self.tasks.jobs.begin(request, caller, &self.poller) {
            Ok(job) => {
                // The hello announced the smaller window of a process.
                let more = JOB_WINDOW.saturating_sub(INPUT_WINDOW);
                encode::credit(
                    session.deferred_control(),
                    stream,
                    vmcell_wire::Channel::Stdin,
                    more,
                );
                let waiting = JobStream::new(caller, job, session.window());
                session.streams.insert(stream, Stream::Job(waiting));
                Ok(())
            }
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }

    #[cfg(feature = "ports")]
    fn dial(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        port: u16,
    ) -> Result<(), LinkError> {
        let caller = session.caller(stream);
        match self.tasks.connections.dial(port, caller, &self.poller) {
            Ok(connection) => {
                let stream = PortStream::new(caller, connection, session.window());
                session.streams.insert(caller.stream, Stream::Port(stream));
                Ok(())
            }
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }
}

fn set_clock(wall_time_ns: u64) -> Result<Outcome<'static>, Failure<'static>> {
    set_wall_clock(wall_time_ns).map_err(|errno| {
        let text = "the clock cannot be set";
        Failure::from_errno(raw_errno(errno), Stage::Request, text)
    })?;
    Ok(Outcome::Done)
}
