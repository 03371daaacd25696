//! What hosts ask for about services.

use vmcell_wire::{
    Attached, Channel, Event, Failure, FailureKind, Outcome, Stage, StreamId, encode,
    limits::{MAX_LISTED, MAX_WINDOW},
    service::{Logs, Service as Request, StartService},
};

use super::{Phase, Refusal, Service, ServiceId, phase::Then, run::World};
use crate::{
    agent::Agent,
    clock::Moment,
    link::{Conversation, Lost, Place, ServiceStream, Stream, Wanted},
};

impl Agent {
    /// Does what a request about services asks for.
    pub(crate) fn service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        request: &Request<'_>,
    ) -> Result<(), Lost> {
        let outcome = match request {
            Request::Start(start) => self.start_service(conversation, stream, start),
            Request::Look { name } => self.look_at_service(conversation, stream, name),
            Request::Wait { name, until } => {
                self.wait_for_service(conversation, stream, name, Wanted::Phase(*until))
            }
            Request::Stop { name } => self.end_service(conversation, stream, name, Then::Stop),
            Request::Restart { name } => self.end_service(conversation, stream, name, Then::Start),
            Request::Remove { name } => self.remove_service(conversation, stream, name),
            Request::List { after } => return self.list_services(conversation, stream, after),
            Request::Logs(logs) => self.read_log(conversation, stream, logs),
            _ => {
                let text = "the agent cannot do this";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                Err(Refusal::from(failure))
            }
        };
        self.tasks.look_after_services(&self.poller);
        match outcome {
            Ok(()) => Ok(()),
            Err(refusal) => conversation.close(stream, &Outcome::Failed(refusal.as_failure())),
        }
    }

    fn start_service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        start: &StartService<'_>,
    ) -> Result<(), Refusal> {
        let id = self.tasks.start_service(start, &self.poller)?;
        let starts = self
            .tasks
            .services
            .get_mut(id)
            .map(|service| service.starts);
        let start_number = starts.unwrap_or_default();
        let wanted = Wanted::Launched {
            start: start_number,
        };
        self.wait_for_service(conversation, stream, start.name, wanted)
    }

    fn look_at_service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        name: &str,
    ) -> Result<(), Refusal> {
        let id = self.find_service(name)?.id;
        self.tell_state(conversation, stream, id)
    }

    fn tell_state(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        id: ServiceId,
    ) -> Result<(), Refusal> {
        if let Some(service) = self.tasks.services.get_mut(id) {
            // A state always fits into a frame.
            let _ = conversation.close(stream, &Outcome::Service(service.state()));
        }
        Ok(())
    }

    /// Opens a stream that tells how a service is when that has come.
    fn wait_for_service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        name: &str,
        wanted: Wanted,
    ) -> Result<(), Refusal> {
        let id = self.find_service(name)?.id;
        let caller = conversation.caller(stream);
        self.tasks.services.join(id, caller);
        let waiting = ServiceStream::new(caller, id, wanted);
        conversation
            .streams
            .insert(stream, Stream::Service(waiting));
        Ok(())
    }

    /// Ends a service, and then what was asked for.
    fn end_service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        name: &str,
        then: Then,
    ) -> Result<(), Refusal> {
        let known = self.find_service(name)?;
        let (id, starts) = (known.id, known.starts);
        let is_closing = self.tasks.services.is_closing;
        let mut world = World {
            processes: &mut self.tasks.processes,
            poller: &self.poller,
            now: Moment::now(),
        };
        if let Some(service) = self.tasks.services.get_mut(id)
            && !is_closing
            && service.end_by_request(then, &mut world)
        {
            self.tasks.services.phase_changed(id);
        }
        self.tasks.services.tell(id);
        let wanted = Wanted::Gone { starts };
        self.wait_for_service(conversation, stream, name, wanted)
    }

    fn remove_service(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        name: &str,
    ) -> Result<(), Refusal> {
        let known = self.find_service(name)?;
        let id = known.id;
        if !known.is_over() {
            let text = "the service runs: stop it first";
            return Err(Refusal::new(FailureKind::Conflict, text));
        }
        self.tasks.services.remove(id);
        let _ = conversation.close(stream, &Outcome::Done);
        Ok(())
    }

    fn list_services(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        after: &str,
    ) -> Result<(), Lost> {
        let known = self.tasks.services.known();
        let mut services = known.filter(|service| service.name.as_str() > after);
        for service in services.by_ref().take(MAX_LISTED) {
            let event = Event::Service(service.state());
            encode::event(conversation.unhurried(), stream, &event)?;
        }
        let more = services.next().is_some();
        conversation.close(stream, &Outcome::EndOfList { more })
    }

    fn read_log(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        logs: &Logs<'_>,
    ) -> Result<(), Refusal> {
        let service = self.find_service(logs.name)?;
        if logs.window > MAX_WINDOW {
            return Err(Refusal::invalid("the window is too large"));
        }
        let offset = service.log_place(logs.from);
        let end = (!logs.follow).then(|| service.log.ring().end());
        let place = Place {
            offset,
            credit: logs.window,
            size: conversation.window().max(logs.window),
        };
        let event = Event::Attached(Attached {
            id: 0,
            pid: service.state().pid.unwrap_or(0),
            stdout: offset,
            stderr: 0,
            stdin: None,
        });
        // Such an event always fits into a frame.
        let _ = encode::event(conversation.unhurried(), stream, &event);
        let wanted = Wanted::log(Channel::Stdout, place, end);
        self.wait_for_service(conversation, stream, logs.name, wanted)
    }

    fn find_service(&self, name: &str) -> Result<&Service, Refusal> {
        let known = self.tasks.services.find(name);
        known.ok_or_else(|| Refusal::new(FailureKind::NotFound, "there is no such service"))
    }

    /// The power goes: no service is started again.
    pub(crate) fn close_services(&mut self) {
        self.tasks.services.is_closing = true;
        for id in self.tasks.services.ids() {
            let mut world = World {
                processes: &mut self.tasks.processes,
                poller: &self.poller,
                now: Moment::now(),
            };
            if let Some(service) = self.tasks.services.get_mut(id)
                && service.close(&mut world)
            {
                self.tasks.services.phase_changed(id);
                self.tasks.services.tell(id);
            }
        }
    }
}

impl Service {
    /// Somebody wants it to end. Answers whether that makes a difference.
    fn end_by_request(&mut self, then: Then, world: &mut World<'_>) -> bool {
        match &mut self.phase {
            Phase::Launching | Phase::Starting | Phase::Up => self.stop_run(then, world),
            Phase::Ending(former) => {
                *former = then;
                true
            }
            Phase::Waiting(_) | Phase::Pausing(_) if then == Then::Stop => {
                self.enter(Phase::Stopped)
            }
            Phase::Stopped | Phase::Failed(_) if then == Then::Stop => false,
            // It is not there, so it can start at once.
            _ => self.begin_anew(),
        }
    }
}
