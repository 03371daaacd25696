//! Handlers of requests about processes.

use vmcell_wire::{
    Attach, Attached, Event, Failure, FailureKind, Outcome, Position, ProcessMode, Resume,
    Selector, Stage, Start, StreamId,
    limits::{MAX_LISTED, MAX_WINDOW},
};

use super::{
    KillReason, Output, Process, ReadPosition, Role, spawn::raw_errno, streams::Outputs,
    terminal::NewTerminal,
};
use crate::{
    agent::Agent,
    clock::Moment,
    ids::{Caller, ProcessId},
    link::{LinkError, LinkSession, ProcessStream, Stream},
};

/// The outcome of a request that is answered at once.
pub(super) type Answer = Result<Outcome<'static>, Failure<'static>>;

impl Agent {
    pub(crate) fn start(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        start: &Start<'_>,
    ) -> Result<(), LinkError> {
        match self.try_start(session, stream, start, None) {
            Ok(()) => Ok(()),
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }

    /// Begins to start a process. Its stream reports when it has executed its
    /// program.
    pub(super) fn try_start(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        start: &Start<'_>,
        terminal: Option<NewTerminal>,
    ) -> Result<(), Failure<'static>> {
        let caller = session.caller(stream);
        let window = session.window();
        let id = match self.tasks.processes.find_ticket(start.ticket) {
            Some(id) => self.find_repeated_start(id, start.mode, terminal.is_some())?,
            None => {
                let outputs = terminal.map_or(Outputs::Pipes, Outputs::Terminal);
                let processes = &mut self.tasks.processes;
                let id = processes.start(start, Some(caller), window, outputs, &self.poller)?;
                processes.watch(id, &self.poller)?;
                id
            }
        };
        let waiting = match start.mode {
            ProcessMode::Foreground => ProcessStream::owner(caller, id, window),
            ProcessMode::Background => {
                self.process(id)?.observers.push(caller);
                ProcessStream::starter(caller, id)
            }
        };
        session.streams.insert(stream, Stream::Process(waiting));
        Ok(())
    }

    /// Handles a repeated request whose answer was lost with its link. A
    /// background process is returned; a foreground process must be resumed
    /// instead.
    fn find_repeated_start(
        &mut self,
        id: ProcessId,
        mode: ProcessMode,
        terminal: bool,
    ) -> Result<ProcessId, Failure<'static>> {
        let process = self.process(id)?;
        let the_same = (mode, terminal) == (process.mode, process.terminal.is_some());
        if mode == ProcessMode::Background && the_same {
            return Ok(id);
        }
        let text = "a process with this ticket was started before";
        Err(Failure::new(FailureKind::Conflict, Stage::Request, text))
    }

    pub(crate) fn resume(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        resume: &Resume,
    ) -> Result<(), LinkError> {
        let positions = [Some(resume.stdout), Some(resume.stderr)];
        match self.try_resume(session, stream, resume.ticket, positions) {
            Ok(()) => Ok(()),
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }

    fn try_resume(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        ticket: u64,
        wanted: [Option<Position>; 2],
    ) -> Result<(), Failure<'static>> {
        let id = self.tasks.processes.find_ticket(ticket).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let window = session.window();
        let [stdout, stderr] = process.read_positions(wanted, window)?;
        let caller = session.caller(stream);
        if process.mode == ProcessMode::Background {
            // It was detached, or never had an owner.
            process.observers.push(caller);
        } else {
            let previous = process.owner.replace(caller);
            if process.stdin_writer == previous {
                process.stdin_writer = Some(caller);
            }
            for (output, position) in [(&mut process.stdout, stdout), (&mut process.stderr, stderr)]
            {
                if let Some(position) = position {
                    output.hold(position.offset, position.size);
                }
            }
            process.termination.exit_reported = false;
            if let Some(previous) = previous {
                self.release_stream(session, previous, id);
            }
            self.tasks.processes.cancel_resume_deadline(id);
        }
        self.attach_stream(session, caller, id, [stdout, stderr])
    }

    /// Handles a stream's loss of its process. The stream will close itself;
    /// the frame that it has begun to send must be copied, because the ring no
    /// longer holds it.
    fn release_stream(&mut self, session: &mut LinkSession, previous: Caller, id: ProcessId) {
        if previous.link == session.id {
            session.copy_frame_of(id, &mut self.tasks);
        } else if let Some(mut link) = self.take_link(previous.link) {
            link.session.copy_frame_of(id, &mut self.tasks);
            self.put_link(previous.link, link);
        }
        self.serve_soon(previous.link);
    }

    pub(crate) fn attach(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        attach: &Attach<'_>,
    ) -> Result<(), LinkError> {
        match self.try_attach(session, stream, attach) {
            Ok(()) => Ok(()),
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }

    fn try_attach(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        attach: &Attach<'_>,
    ) -> Result<(), Failure<'static>> {
        let id = self
            .tasks
            .processes
            .find(attach.process)
            .ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let window = session.window();
        if attach.stdin && process.terminal.is_some() {
            let text = "to write to a terminal, attach to it with a terminal request";
            return Err(Failure::new(FailureKind::Invalid, Stage::Terminal, text));
        }
        let positions = process.read_positions([attach.stdout, attach.stderr], window)?;
        let caller = session.caller(stream);
        process.observers.push(caller);
        let previous = process.stdin_writer;
        if attach.stdin {
            process.stdin_writer = Some(caller);
        }
        if attach.stdin
            && let Some(previous) = previous
        {
            self.serve_soon(previous.link);
        }
        self.attach_stream(session, caller, id, positions)
    }

    /// Creates a stream that watches a process from these positions on.
    pub(super) fn attach_stream(
        &mut self,
        session: &mut LinkSession,
        caller: Caller,
        id: ProcessId,
        positions: [Option<ReadPosition>; 2],
    ) -> Result<(), Failure<'static>> {
        let process = self.process(id)?;
        let stdin = process.input_of(caller);
        let [stdout, stderr] = positions;
        let may_read_more =
            stdout.is_some_and(|position| process.add_terminal_reader(caller, position));
        let offset = |position: Option<ReadPosition>, output: &Output| match position {
            Some(position) => position.offset,
            None => output.ring().end(),
        };
        let attached = Attached {
            id: id.0,
            pid: process.pid(),
            stdout: offset(stdout, &process.stdout),
            stderr: offset(stderr, &process.stderr),
            stdin,
        };
        let event = Event::Attached(attached);
        let stream = caller.stream;
        // Such an event always fits into a frame.
        let _ = session.event(stream, &event);
        let watching =
            ProcessStream::watcher(caller, id, positions, stdin.map(|stdin| stdin.window));
        session.streams.insert(stream, Stream::Process(watching));
        if may_read_more {
            self.tasks.processes.read_soon(id);
        }
        Ok(())
    }

    pub(crate) fn signal(&mut self, selector: Selector<'_>, signal: u8) -> Answer {
        check_signal(signal)?;
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        if process.has_ended() {
            let text = "the process has ended";
            return Err(Failure::new(FailureKind::NotFound, Stage::Process, text));
        }
        process.signal(signal).map_err(|errno| {
            let text = "the signal cannot be sent";
            Failure::from_errno(raw_errno(errno), Stage::Process, text)
        })?;
        Ok(Outcome::Done)
    }

    /// Counts all processes with their descendants. Nothing of it depends on how many
    /// there are: hosts ask every second.
    pub(crate) fn count_processes(&self) -> Answer {
        let count = self.tasks.processes.count_all().map_err(|errno| {
            let text = "the kernel does not count processes";
            Failure::from_errno(raw_errno(errno), Stage::Cgroup, text)
        })?;
        Ok(Outcome::Processes { count })
    }

    pub(crate) fn kill(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        selector: Selector<'_>,
    ) -> Result<(), LinkError> {
        let processes = &mut self.tasks.processes;
        let found = processes.find(selector);
        let Some(id) = found.or_else(|| processes.restore(selector)) else {
            return session.close(stream, &Outcome::Failed(NO_PROCESS));
        };
        self.tasks.processes.kill(id, KillReason::Host);
        let caller = session.caller(stream);
        if let Some(process) = self.tasks.processes.get_mut(id) {
            process.observers.push(caller);
        }
        let waiting = ProcessStream::killer(caller, id);
        session.streams.insert(stream, Stream::Process(waiting));
        // It may have ended already; otherwise its end will follow.
        self.tasks.processes.check_ended_soon();
        Ok(())
    }

    pub(crate) fn detach(&mut self, session: &mut LinkSession, selector: Selector<'_>) -> Answer {
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let owner = process.owner;
        process.detach();
        match owner {
            Some(owner) => self.release_stream(session, owner, id),
            None => self.tasks.processes.cancel_resume_deadline(id),
        }
        // No owner slows it down any more.
        self.tasks.processes.read_now(id);
        Ok(Outcome::Done)
    }

    pub(crate) fn forget(&mut self, selector: Selector<'_>) -> Answer {
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let conflict = |text| Failure::new(FailureKind::Conflict, Stage::Process, text);
        if process.mode == ProcessMode::Foreground {
            return Err(conflict("the process is in the foreground"));
        }
        if process.role == Role::Service {
            return Err(conflict("the process is a service: remove that"));
        }
        if !process.has_ended() {
            return Err(conflict("the process still runs"));
        }
        self.tasks.processes.forget(id);
        Ok(Outcome::Done)
    }

    pub(crate) fn list(
        &self,
        session: &mut LinkSession,
        stream: StreamId,
        after: u32,
        wanted: impl Fn(&Process) -> bool,
    ) -> Result<(), LinkError> {
        let now = Moment::now();
        let listed = |(id, process): &(ProcessId, &Process)| id.0 > after && wanted(process);
        let mut processes = self.tasks.processes.visible().filter(listed);
        for (id, process) in processes.by_ref().take(MAX_LISTED) {
            let event = Event::Listed(process.entry(id, now));
            session.deferred_event(stream, &event)?;
        }
        let more = processes.next().is_some();
        session.close(stream, &Outcome::EndOfList { more })
    }

    pub(super) fn process(&mut self, id: ProcessId) -> Result<&mut Process, Failure<'static>> {
        self.tasks.processes.get_mut(id).ok_or(NO_PROCESS)
    }
}

/// The kernel's `_NSIG`.
const LAST_SIGNAL: u8 = 64;

pub(super) fn check_signal(signal: u8) -> Result<(), Failure<'static>> {
    if signal > LAST_SIGNAL {
        let text = "there is no such signal";
        return Err(Failure::new(FailureKind::Invalid, Stage::Request, text));
    }
    Ok(())
}

pub(super) const NO_PROCESS: Failure<'static> = Failure {
    kind: FailureKind::NotFound,
    errno: 0,
    stage: Stage::Process,
    text: "no such process",
};

impl Process {
    /// Returns where a stream starts to read the outputs that it wants.
    /// `window` is the size of its host's windows.
    pub(super) fn read_positions(
        &self,
        wanted: [Option<Position>; 2],
        window: u32,
    ) -> Result<[Option<ReadPosition>; 2], Failure<'static>> {
        let [stdout, stderr] = wanted;
        Ok([
            read_position(stdout, &self.stdout, window)?,
            read_position(stderr, &self.stderr, window)?,
        ])
    }
}

fn read_position(
    wanted: Option<Position>,
    output: &Output,
    window: u32,
) -> Result<Option<ReadPosition>, Failure<'static>> {
    let Some(Position {
        offset,
        window: credit,
    }) = wanted
    else {
        return Ok(None);
    };
    let invalid = |text| Failure::new(FailureKind::Invalid, Stage::Request, text);
    let end = output.ring().end();
    let offset = match offset {
        Position::NOW => end,
        offset if offset > end => return Err(invalid("the offset is beyond the end")),
        offset => offset,
    };
    if credit > MAX_WINDOW {
        return Err(invalid("the window is too large"));
    }
    Ok(Some(ReadPosition {
        offset,
        credit,
        size: window.max(credit),
    }))
}
