use vmcell_wire::{
    Channel, Event, Failure, FailureKind, Outcome, Stage, credit::ReceiveWindow, encode,
};

use super::{
    Filled, Place,
    reader::{From, Reader},
};
use crate::link::{
    Lost,
    outgoing::{Outgoing, Source},
};
use crate::{
    clock::Moment,
    process::{Caller, INPUT_WINDOW, ProcessId, Processes, UNWATCHED_MS},
};

/// A stream that waits for something to happen to a process.
///
/// Whether it owns the process or observes it is written there, because it can
/// change without this stream having a part in it.
pub(crate) struct ProcessStream {
    caller: Caller,
    process: ProcessId,
    purpose: Purpose,
    /// The host waits to hear that the process runs.
    tells_start: bool,
    stdin: ReceiveWindow,
    /// Input that came and whose credit was not given back.
    unreturned: u32,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It closes when the process has executed its program.
    Start,
    /// It carries outputs and closes with the exit.
    Watch,
    /// It closes when the process and its descendants are gone.
    Kill,
    /// It has closed with the exit of the process that it owns, and waits for
    /// the host to say that it knows.
    Wait,
}

impl ProcessStream {
    /// A stream that owns a new process.
    pub(crate) fn owner(caller: Caller, process: ProcessId, window: u32) -> Self {
        let place = Some(Place {
            offset: 0,
            credit: window,
            size: window,
        });
        Self {
            tells_start: true,
            ..Self::watcher(caller, process, [place, place], Some(INPUT_WINDOW))
        }
    }

    /// A stream that waits for the start of a process.
    pub(crate) fn starter(caller: Caller, process: ProcessId) -> Self {
        Self {
            purpose: Purpose::Start,
            tells_start: true,
            ..Self::watcher(caller, process, [None, None], None)
        }
    }

    /// A stream that takes a process up. `input` is how much it may send.
    pub(crate) fn watcher(
        caller: Caller,
        process: ProcessId,
        places: [Option<Place>; 2],
        input: Option<u32>,
    ) -> Self {
        let [stdout, stderr] = places;
        let input = input.unwrap_or(INPUT_WINDOW);
        Self {
            caller,
            process,
            purpose: Purpose::Watch,
            tells_start: false,
            stdin: ReceiveWindow::resumed(Channel::Stdin, INPUT_WINDOW, input),
            unreturned: INPUT_WINDOW.saturating_sub(input),
            stdout: stdout.map(|place| Reader::new(Channel::Stdout, place)),
            stderr: stderr.map(|place| Reader::new(Channel::Stderr, place)),
        }
    }

    /// A stream that waits for the end of a process.
    pub(crate) fn killer(caller: Caller, process: ProcessId) -> Self {
        Self {
            purpose: Purpose::Kill,
            ..Self::watcher(caller, process, [None, None], None)
        }
    }

    /// Its link is gone.
    pub(super) fn lose(&self, processes: &mut Processes) {
        processes.leave(self.process, self.caller);
    }

    /// The host does not want any more of it. Answers whether it will close by
    /// itself, or has.
    pub(crate) fn cancel(&mut self, processes: &mut Processes) -> bool {
        if self.purpose == Purpose::Wait {
            return true;
        }
        let ends = processes.cancel(self.process, self.caller);
        if ends {
            self.stdout = None;
            self.stderr = None;
        }
        ends
    }

    /// The host knows its outcome. Answers whether there was one.
    pub(super) fn acknowledge(&self, processes: &mut Processes) -> bool {
        if self.purpose != Purpose::Wait {
            return false;
        }
        processes.acknowledge(self.process, self.caller);
        true
    }

    /// Credit came for an output.
    pub(crate) fn credit(
        &mut self,
        channel: Channel,
        bytes: u32,
        processes: &mut Processes,
    ) -> Result<(), Lost> {
        let reader = match channel {
            Channel::Stdin => None,
            Channel::Stdout => self.stdout.as_mut(),
            Channel::Stderr => self.stderr.as_mut(),
        };
        let Some(reader) = reader else {
            return Ok(());
        };
        reader.granted(bytes)?;
        if let Some(process) = processes.get_mut(self.process)
            && process.is_held_for(self.caller)
            && let Some(output) = process.output_mut(channel)
        {
            output.acknowledge(reader.acknowledged());
            if output.can_read() && process.terminal.is_some() {
                processes.read_soon(self.process);
            }
        }
        Ok(())
    }

    /// Standard input came. Answers how much credit to send back.
    pub(crate) fn input(
        &mut self,
        bytes: &[u8],
        processes: &mut Processes,
    ) -> Result<Option<u32>, Lost> {
        if self.purpose == Purpose::Wait {
            return Ok(None);
        }
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.stdin.arrived(count)?;
        self.unreturned = self.unreturned.saturating_add(count);
        if let Some(process) = processes.get_mut(self.process) {
            process.give(self.caller, bytes);
            processes.typed(self.process);
        }
        Ok(self.consumed(processes))
    }

    /// Standard input ends here.
    pub(crate) fn input_ended(&mut self, processes: &mut Processes) {
        if let Some(process) = processes.get_mut(self.process) {
            process.input_ended(self.caller);
        }
    }

    /// Moves bytes for its process and adds what there is to say.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        processes: &mut Processes,
    ) -> Result<Filled, Lost> {
        if self.purpose == Purpose::Wait {
            return Ok(Filled::Nothing);
        }
        let id = self.caller.stream;
        if let Some(credit) = self.consumed(processes) {
            encode::credit(outgoing.control(), id, Channel::Stdin, credit);
        }
        let Some(process) = processes.get_mut(self.process) else {
            return finish(outgoing, id, FailureKind::NotFound, "it was forgotten");
        };
        if let Some(failure) = process.start_failure() {
            encode::close(outgoing.control(), id, &Outcome::Failed(failure))?;
            processes.leave(self.process, self.caller);
            return Ok(Filled::Finished);
        }
        let owns = process.owner == Some(self.caller);
        if !owns && !process.observers.contains(&self.caller) {
            return finish(outgoing, id, FailureKind::Conflict, "another stream has it");
        }
        if self.tells_start {
            if process.is_starting() {
                return Ok(Filled::Nothing);
            }
            self.tells_start = false;
            let (ProcessId(number), pid) = (self.process, process.pid());
            if self.purpose == Purpose::Start {
                let outcome = Outcome::Spawned { id: number, pid };
                encode::close(outgoing.control(), id, &outcome)?;
                processes.leave(self.process, self.caller);
                return Ok(Filled::Finished);
            }
            let event = Event::Started { id: number, pid };
            // With luck it has company: what the program prints, or its end.
            let is_late = process.started.after_ms(UNWATCHED_MS) <= Moment::now();
            let frames = match is_late {
                true => outgoing.control(),
                false => outgoing.unhurried(),
            };
            encode::event(frames, id, &event)?;
        }
        let mut news = false;
        let mut added = false;
        let mut ended = true;
        for (channel, reader) in [
            (Channel::Stdout, &mut self.stdout),
            (Channel::Stderr, &mut self.stderr),
        ] {
            let (Some(reader), false) = (reader, added) else {
                continue;
            };
            let Some(output) = process.output_mut(channel) else {
                continue;
            };
            news |= !reader.has_ended() && output.collect();
            let held = owns.then_some(Source::Process(self.process, channel));
            let end = output.has_ended().then(|| output.ring().end());
            let from = From {
                ring: output.ring(),
                end,
                held,
            };
            added = reader.fill(id, from, outgoing)?;
            ended &= reader.has_ended();
        }
        if news && process.callers().nth(1).is_some() {
            processes.wake(self.process);
        }
        if added {
            return Ok(Filled::Something);
        }
        if !ended {
            return Ok(Filled::Nothing);
        }
        let exit = match self.purpose {
            Purpose::Kill => processes.killed(self.process),
            Purpose::Start | Purpose::Watch | Purpose::Wait => processes.settle(self.process),
        };
        let Some(exit) = exit else {
            return Ok(Filled::Nothing);
        };
        encode::close(outgoing.control(), id, &Outcome::Exited(exit))?;
        if owns {
            processes.told(self.process);
            self.purpose = Purpose::Wait;
            return Ok(Filled::Nothing);
        }
        processes.leave(self.process, self.caller);
        Ok(Filled::Finished)
    }

    /// Answers how much credit to give back for input that needs no more room.
    fn consumed(&mut self, processes: &mut Processes) -> Option<u32> {
        if self.unreturned == 0 {
            return None;
        }
        let count = match processes.get_mut(self.process) {
            Some(process) => process.consumed_of(self.caller, self.unreturned),
            None => self.unreturned,
        };
        let count = count.min(self.unreturned);
        self.unreturned = self.unreturned.saturating_sub(count);
        self.stdin.consumed(count)
    }
}

/// Closes a stream whose process is not there for it any more.
fn finish(
    outgoing: &mut Outgoing,
    stream: vmcell_wire::StreamId,
    kind: FailureKind,
    text: &str,
) -> Result<Filled, Lost> {
    let failure = Failure::new(kind, Stage::Process, text);
    encode::close(outgoing.control(), stream, &Outcome::Failed(failure))?;
    Ok(Filled::Finished)
}
