//! Handlers of requests about services.

use vmcell_wire::{
    Attached, Channel, Event, Failure, FailureKind, Outcome, Stage, StreamId,
    limits::{MAX_LISTED, MAX_WINDOW},
    service::{ReadLog, ServiceRequest, StartService},
};

use super::{Phase, Service, ServiceError, phase::AfterExit};
use crate::{
    agent::Agent,
    clock::Moment,
    ids::ServiceId,
    link::{LinkError, LinkSession, ServiceStream, Stream, WaitCondition},
    process::{Context, ReadPosition},
};

impl Agent {
    /// Handles a request about a service.
    pub(crate) fn service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        request: &ServiceRequest<'_>,
    ) -> Result<(), LinkError> {
        let outcome = match request {
            ServiceRequest::Start(start) => self.start_service(session, stream, start),
            ServiceRequest::GetState { name } => self.report_service(session, stream, name),
            ServiceRequest::Wait { name, until } => {
                self.wait_for_service(session, stream, name, WaitCondition::Phase(*until))
            }
            ServiceRequest::Stop { name } => {
                self.stop_service(session, stream, name, AfterExit::Stop)
            }
            ServiceRequest::Restart { name } => {
                self.stop_service(session, stream, name, AfterExit::Start)
            }
            ServiceRequest::Remove { name } => self.remove_service(session, stream, name),
            ServiceRequest::List { after } => return self.list_services(session, stream, after),
            ServiceRequest::ReadLog(logs) => self.read_log(session, stream, logs),
            _ => {
                let text = "the agent does not support this request";
                let failure = Failure::new(FailureKind::Unsupported, Stage::Request, text);
                Err(ServiceError::from(failure))
            }
        };
        self.tasks.supervise_services(&self.poller);
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => session.close(stream, &Outcome::Failed(error.as_failure())),
        }
    }

    fn start_service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        start: &StartService<'_>,
    ) -> Result<(), ServiceError> {
        let tasks = &mut self.tasks;
        let id = (tasks.services).start(start, &mut tasks.processes, &self.poller)?;
        let starts = self
            .tasks
            .services
            .get_mut(id)
            .map(|service| service.starts);
        let start_number = starts.unwrap_or_default();
        let wait_for = WaitCondition::Launched {
            start: start_number,
        };
        self.wait_for_service(session, stream, start.name, wait_for)
    }

    fn report_service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        name: &str,
    ) -> Result<(), ServiceError> {
        let id = self.find_service(name)?.id;
        self.send_state(session, stream, id)
    }

    fn send_state(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        id: ServiceId,
    ) -> Result<(), ServiceError> {
        if let Some(service) = self.tasks.services.get_mut(id) {
            // A state always fits into a frame.
            let _ = session.close(stream, &Outcome::Service(service.state()));
        }
        Ok(())
    }

    /// Opens a stream that reports the state of a service when `wait_for` is
    /// reached.
    fn wait_for_service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        name: &str,
        wait_for: WaitCondition,
    ) -> Result<(), ServiceError> {
        let id = self.find_service(name)?.id;
        let caller = session.caller(stream);
        self.tasks.services.add_watcher(id, caller);
        let waiting = ServiceStream::new(caller, id, wait_for);
        session.streams.insert(stream, Stream::Service(waiting));
        Ok(())
    }

    /// Stops a service, and then does `then`.
    fn stop_service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        name: &str,
        then: AfterExit,
    ) -> Result<(), ServiceError> {
        let known = self.find_service(name)?;
        let (id, starts) = (known.id, known.starts);
        let is_closing = self.tasks.services.is_closing;
        let mut context = Context {
            processes: &mut self.tasks.processes,
            poller: &self.poller,
            now: Moment::now(),
        };
        if let Some(service) = self.tasks.services.get_mut(id)
            && !is_closing
            && service.stop_by_request(then, &mut context)
        {
            self.tasks.services.phase_changed(id);
        }
        self.tasks.services.mark_changed(id);
        let wait_for = WaitCondition::Gone { starts };
        self.wait_for_service(session, stream, name, wait_for)
    }

    fn remove_service(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        name: &str,
    ) -> Result<(), ServiceError> {
        let known = self.find_service(name)?;
        let id = known.id;
        if !known.is_final() {
            let text = "the service runs: stop it first";
            return Err(ServiceError::new(FailureKind::Conflict, text));
        }
        self.tasks.services.remove(id);
        let _ = session.close(stream, &Outcome::Done);
        Ok(())
    }

    fn list_services(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        after: &str,
    ) -> Result<(), LinkError> {
        let visible = self.tasks.services.visible();
        let mut services = visible.filter(|service| service.name.as_str() > after);
        for service in services.by_ref().take(MAX_LISTED) {
            let event = Event::Service(service.state());
            session.deferred_event(stream, &event)?;
        }
        let more = services.next().is_some();
        session.close(stream, &Outcome::EndOfList { more })
    }

    fn read_log(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        logs: &ReadLog<'_>,
    ) -> Result<(), ServiceError> {
        let service = self.find_service(logs.name)?;
        if logs.window > MAX_WINDOW {
            return Err(ServiceError::invalid("the window is too large"));
        }
        let offset = service.log_offset(logs.from);
        let end = (!logs.follow).then(|| service.log.ring().end());
        let position = ReadPosition {
            offset,
            credit: logs.window,
            size: session.window().max(logs.window),
        };
        let event = Event::Attached(Attached {
            id: 0,
            pid: service.state().pid.unwrap_or(0),
            stdout: offset,
            stderr: 0,
            stdin: None,
        });
        // Such an event always fits into a frame.
        let _ = session.deferred_event(stream, &event);
        let wait_for = WaitCondition::log(Channel::Stdout, position, end);
        self.wait_for_service(session, stream, logs.name, wait_for)
    }

    fn find_service(&self, name: &str) -> Result<&Service, ServiceError> {
        let known = self.tasks.services.find(name);
        known.ok_or_else(|| ServiceError::new(FailureKind::NotFound, "there is no such service"))
    }

    /// Handles a power-off: no service is started again.
    pub(crate) fn close_services(&mut self) {
        self.tasks.services.is_closing = true;
        for id in self.tasks.services.ids() {
            let mut context = Context {
                processes: &mut self.tasks.processes,
                poller: &self.poller,
                now: Moment::now(),
            };
            if let Some(service) = self.tasks.services.get_mut(id)
                && service.shut_down(&mut context)
            {
                self.tasks.services.phase_changed(id);
                self.tasks.services.mark_changed(id);
            }
        }
    }
}

impl Service {
    /// Stops it by request. Returns whether its phase changed.
    fn stop_by_request(&mut self, then: AfterExit, context: &mut Context<'_>) -> bool {
        match &mut self.phase {
            Phase::Launching | Phase::Starting | Phase::Up => self.stop_run(then, context),
            Phase::Stopping(previous) => {
                *previous = then;
                true
            }
            Phase::Waiting(_) | Phase::Pausing(_) if then == AfterExit::Stop => {
                self.enter(Phase::Stopped)
            }
            Phase::Stopped | Phase::Failed(_) if then == AfterExit::Stop => false,
            // It does not run, so it can start at once.
            _ => self.begin_start(),
        }
    }
}
