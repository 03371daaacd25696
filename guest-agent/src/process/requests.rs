//! What hosts ask for about processes.

use vmcell_wire::{
    Attach, Attached, Event, Failure, FailureKind, Lifetime, Outcome, Position, Resume, Selector,
    Stage, Start, StreamId, encode,
    limits::{MAX_LISTED, MAX_WINDOW},
};

use super::{
    Asked, Caller, Output, Process, ProcessId, Role, spawn::number, streams::Outputs,
    terminal::NewTerminal,
};
use crate::{
    agent::Agent,
    clock::Moment,
    link::{Conversation, Lost, Place, ProcessStream, Stream},
};

/// The outcome of a request that is over at once.
pub(super) type Answer = Result<Outcome<'static>, Failure<'static>>;

impl Agent {
    pub(crate) fn start(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        start: &Start<'_>,
    ) -> Result<(), Lost> {
        match self.try_start(conversation, stream, start, None) {
            Ok(()) => Ok(()),
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }

    /// Begins to start a process. The stream is told when it has executed its
    /// program.
    pub(super) fn try_start(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        start: &Start<'_>,
        terminal: Option<NewTerminal>,
    ) -> Result<(), Failure<'static>> {
        let caller = conversation.caller(stream);
        let window = conversation.window();
        let id = match self.tasks.processes.find_ticket(start.ticket) {
            Some(id) => self.started_before(id, start.lifetime, terminal.is_some())?,
            None => {
                let outputs = terminal.map_or(Outputs::Pipes, Outputs::Terminal);
                let processes = &mut self.tasks.processes;
                let id = processes.start(start, Some(caller), window, outputs, &self.poller)?;
                processes.watch(id, &self.poller)?;
                id
            }
        };
        let waiting = match start.lifetime {
            Lifetime::Foreground => ProcessStream::owner(caller, id, window),
            Lifetime::Background => {
                self.process(id)?.observers.push(caller);
                ProcessStream::starter(caller, id)
            }
        };
        conversation
            .streams
            .insert(stream, Stream::Process(waiting));
        Ok(())
    }

    /// The host has asked for this before, and the answer was lost with its
    /// link. A foreground process is not started again but resumed.
    fn started_before(
        &mut self,
        id: ProcessId,
        lifetime: Lifetime,
        terminal: bool,
    ) -> Result<ProcessId, Failure<'static>> {
        let process = self.process(id)?;
        let the_same = (lifetime, terminal) == (process.lifetime, process.terminal.is_some());
        if lifetime == Lifetime::Background && the_same {
            return Ok(id);
        }
        let text = "a process with this ticket was started before";
        Err(Failure::new(FailureKind::Conflict, Stage::Request, text))
    }

    pub(crate) fn resume(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        resume: &Resume,
    ) -> Result<(), Lost> {
        let places = [Some(resume.stdout), Some(resume.stderr)];
        match self.try_resume(conversation, stream, resume.ticket, places) {
            Ok(()) => Ok(()),
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }

    fn try_resume(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        ticket: u64,
        wanted: [Option<Position>; 2],
    ) -> Result<(), Failure<'static>> {
        let id = self.tasks.processes.find_ticket(ticket).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let window = conversation.window();
        let [stdout, stderr] = process.places(wanted, window)?;
        let caller = conversation.caller(stream);
        if process.lifetime == Lifetime::Background {
            // It was detached, or never had an owner.
            process.observers.push(caller);
        } else {
            let former = process.owner.replace(caller);
            if process.feeder == former {
                process.feeder = Some(caller);
            }
            for (output, place) in [(&mut process.stdout, stdout), (&mut process.stderr, stderr)] {
                if let Some(place) = place {
                    output.hold(place.offset, place.size);
                }
            }
            process.ending.told = false;
            if let Some(former) = former {
                self.part_with(conversation, former, id);
            }
            self.tasks.processes.resumed(id);
        }
        self.attach_stream(conversation, caller, id, [stdout, stderr])
    }

    /// A stream has lost its process to another one. It will close itself; what
    /// it has begun to send must be copied, because nobody holds it any more.
    fn part_with(&mut self, conversation: &mut Conversation, former: Caller, id: ProcessId) {
        if former.link == conversation.id {
            conversation.keep_frame_of(id, &mut self.tasks);
        } else if let Some(mut link) = self.take_link(former.link) {
            link.conversation.keep_frame_of(id, &mut self.tasks);
            self.put_link(former.link, link);
        }
        self.serve_soon(former.link);
    }

    pub(crate) fn attach(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        attach: &Attach<'_>,
    ) -> Result<(), Lost> {
        match self.try_attach(conversation, stream, attach) {
            Ok(()) => Ok(()),
            Err(failure) => conversation.close(stream, &Outcome::Failed(failure)),
        }
    }

    fn try_attach(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        attach: &Attach<'_>,
    ) -> Result<(), Failure<'static>> {
        let id = self
            .tasks
            .processes
            .find(attach.process)
            .ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let window = conversation.window();
        if attach.stdin && process.terminal.is_some() {
            let text = "who types on a terminal attaches to it as such";
            return Err(Failure::new(FailureKind::Invalid, Stage::Terminal, text));
        }
        let places = process.places([attach.stdout, attach.stderr], window)?;
        let caller = conversation.caller(stream);
        process.observers.push(caller);
        let former = process.feeder;
        if attach.stdin {
            process.feeder = Some(caller);
        }
        if attach.stdin
            && let Some(former) = former
        {
            self.serve_soon(former.link);
        }
        self.attach_stream(conversation, caller, id, places)
    }

    /// Begins a stream that takes a process up at these places.
    pub(super) fn attach_stream(
        &mut self,
        conversation: &mut Conversation,
        caller: Caller,
        id: ProcessId,
        places: [Option<Place>; 2],
    ) -> Result<(), Failure<'static>> {
        let process = self.process(id)?;
        let stdin = process.input_of(caller);
        let [stdout, stderr] = places;
        let takes_up = stdout.is_some_and(|place| process.read_terminal(caller, place));
        let offset = |place: Option<Place>, output: &Output| match place {
            Some(place) => place.offset,
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
        let _ = encode::event(conversation.control(), stream, &event);
        let watching = ProcessStream::watcher(caller, id, places, stdin.map(|stdin| stdin.window));
        conversation
            .streams
            .insert(stream, Stream::Process(watching));
        if takes_up {
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
            Failure::from_errno(number(errno), Stage::Process, text)
        })?;
        Ok(Outcome::Done)
    }

    pub(crate) fn kill(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        selector: Selector<'_>,
    ) -> Result<(), Lost> {
        let processes = &mut self.tasks.processes;
        let found = processes.find(selector);
        let Some(id) = found.or_else(|| processes.recall(selector)) else {
            return conversation.close(stream, &Outcome::Failed(NO_PROCESS));
        };
        self.tasks.processes.kill(id, Asked::Host);
        let caller = conversation.caller(stream);
        if let Some(process) = self.tasks.processes.get_mut(id) {
            process.observers.push(caller);
        }
        let waiting = ProcessStream::killer(caller, id);
        conversation
            .streams
            .insert(stream, Stream::Process(waiting));
        // It may be over already; else the reaper will tell.
        self.reap();
        Ok(())
    }

    pub(crate) fn detach(
        &mut self,
        conversation: &mut Conversation,
        selector: Selector<'_>,
    ) -> Answer {
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let owner = process.owner;
        process.detach();
        match owner {
            Some(owner) => self.part_with(conversation, owner, id),
            None => self.tasks.processes.resumed(id),
        }
        // Nobody paces it any more.
        self.tasks.processes.read_on(id);
        Ok(Outcome::Done)
    }

    pub(crate) fn forget(&mut self, selector: Selector<'_>) -> Answer {
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        let process = self.process(id)?;
        let conflict = |text| Failure::new(FailureKind::Conflict, Stage::Process, text);
        if process.lifetime == Lifetime::Foreground {
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
        conversation: &mut Conversation,
        stream: StreamId,
        after: u32,
        wanted: impl Fn(&Process) -> bool,
    ) -> Result<(), Lost> {
        let now = Moment::now();
        let listed = |(id, process): &(ProcessId, &Process)| id.0 > after && wanted(process);
        let mut processes = self.tasks.processes.known().filter(listed);
        for (id, process) in processes.by_ref().take(MAX_LISTED) {
            let event = Event::Listed(process.entry(id, now));
            encode::event(conversation.unhurried(), stream, &event)?;
        }
        let more = processes.next().is_some();
        conversation.close(stream, &Outcome::EndOfList { more })
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
    /// Where a stream takes up the outputs that it wants. `window` is what its
    /// host named as the size of its windows.
    pub(super) fn places(
        &self,
        wanted: [Option<Position>; 2],
        window: u32,
    ) -> Result<[Option<Place>; 2], Failure<'static>> {
        let [stdout, stderr] = wanted;
        Ok([
            place(stdout, &self.stdout, window)?,
            place(stderr, &self.stderr, window)?,
        ])
    }
}

fn place(
    wanted: Option<Position>,
    output: &Output,
    window: u32,
) -> Result<Option<Place>, Failure<'static>> {
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
    Ok(Some(Place {
        offset,
        credit,
        size: window.max(credit),
    }))
}
