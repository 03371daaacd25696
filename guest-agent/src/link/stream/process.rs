use vmcell_wire::{
    Channel, Event, Failure, FailureKind, Outcome, Stage, credit::ReceiveWindow, encode,
};

use super::{
    Filled,
    reader::{ReadSource, Reader},
};
use crate::link::{
    LinkError,
    outgoing::{Outgoing, PayloadSource},
};
use crate::{
    clock::Moment,
    ids::{Caller, ProcessId},
    process::{INPUT_WINDOW, LAUNCH_CHECK_DELAY_MS, Processes, ReadPosition},
};

/// A stream of a request about a process.
///
/// Whether it owns the process or observes it is recorded in the process,
/// because that can change without this stream's involvement.
pub(crate) struct ProcessStream {
    caller: Caller,
    process: ProcessId,
    state: StreamState,
    /// Whether the start is still to be reported.
    reports_start: bool,
    stdin: ReceiveWindow,
    /// Input that arrived and whose credit was not returned.
    uncredited: u32,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// Closes when the process has executed its program.
    Start,
    /// Carries the outputs and closes with the exit status.
    Watch,
    /// Closes when the process and its descendants have ended.
    Kill,
    /// Has closed with the exit status of the process that it owns, and waits
    /// for the host's acknowledgement.
    AwaitAck,
}

impl ProcessStream {
    /// Creates a stream that owns a new process.
    pub(crate) fn owner(caller: Caller, process: ProcessId, window: u32) -> Self {
        let position = Some(ReadPosition {
            offset: 0,
            credit: window,
            size: window,
        });
        Self {
            reports_start: true,
            ..Self::watcher(caller, process, [position, position], Some(INPUT_WINDOW))
        }
    }

    /// Creates a stream that waits for the start of a process.
    pub(crate) fn starter(caller: Caller, process: ProcessId) -> Self {
        Self {
            state: StreamState::Start,
            reports_start: true,
            ..Self::watcher(caller, process, [None, None], None)
        }
    }

    /// Creates a stream that watches a process. `input` is how much input the
    /// host may send.
    pub(crate) fn watcher(
        caller: Caller,
        process: ProcessId,
        positions: [Option<ReadPosition>; 2],
        input: Option<u32>,
    ) -> Self {
        let [stdout, stderr] = positions;
        let input = input.unwrap_or(INPUT_WINDOW);
        Self {
            caller,
            process,
            state: StreamState::Watch,
            reports_start: false,
            stdin: ReceiveWindow::resumed(Channel::Stdin, INPUT_WINDOW, input),
            uncredited: INPUT_WINDOW.saturating_sub(input),
            stdout: stdout.map(|position| Reader::new(Channel::Stdout, position)),
            stderr: stderr.map(|position| Reader::new(Channel::Stderr, position)),
        }
    }

    /// Creates a stream that waits for the end of a process.
    pub(crate) fn killer(caller: Caller, process: ProcessId) -> Self {
        Self {
            state: StreamState::Kill,
            ..Self::watcher(caller, process, [None, None], None)
        }
    }

    /// Handles the loss of the link.
    pub(super) fn on_link_lost(&self, processes: &mut Processes) {
        processes.remove_stream(self.process, self.caller);
    }

    /// Cancels the request. Returns whether the stream will close by itself or
    /// has closed.
    pub(crate) fn cancel(&mut self, processes: &mut Processes) -> bool {
        if self.state == StreamState::AwaitAck {
            return true;
        }
        let ends = processes.cancel(self.process, self.caller);
        if ends {
            self.stdout = None;
            self.stderr = None;
        }
        ends
    }

    /// Handles the acknowledgement of its outcome. Returns whether there was
    /// one.
    pub(super) fn acknowledge(&self, processes: &mut Processes) -> bool {
        if self.state != StreamState::AwaitAck {
            return false;
        }
        processes.acknowledge(self.process, self.caller);
        true
    }

    /// Adds credit for an output.
    pub(crate) fn credit(
        &mut self,
        channel: Channel,
        bytes: u32,
        processes: &mut Processes,
    ) -> Result<(), LinkError> {
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

    /// Takes standard input. Returns how much credit to send back.
    pub(crate) fn input(
        &mut self,
        bytes: &[u8],
        processes: &mut Processes,
    ) -> Result<Option<u32>, LinkError> {
        if self.state == StreamState::AwaitAck {
            return Ok(None);
        }
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.stdin.arrived(count)?;
        self.uncredited = self.uncredited.saturating_add(count);
        if let Some(process) = processes.get_mut(self.process) {
            process.push_input(self.caller, bytes);
            processes.check_terminal_full(self.process);
        }
        Ok(self.consumed(processes))
    }

    /// Handles the end of standard input.
    pub(crate) fn input_ended(&mut self, processes: &mut Processes) {
        if let Some(process) = processes.get_mut(self.process) {
            process.input_ended(self.caller);
        }
    }

    /// Moves bytes of its process and adds the frames that are ready.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        processes: &mut Processes,
    ) -> Result<Filled, LinkError> {
        if self.state == StreamState::AwaitAck {
            return Ok(Filled::Nothing);
        }
        let id = self.caller.stream;
        if let Some(credit) = self.consumed(processes) {
            encode::credit(outgoing.control(), id, Channel::Stdin, credit);
        }
        let Some(process) = processes.get_mut(self.process) else {
            return finish(outgoing, id, FailureKind::NotFound, "it was removed");
        };
        if let Some(failure) = process.start_failure() {
            outgoing.close(id, &Outcome::Failed(failure))?;
            processes.remove_stream(self.process, self.caller);
            return Ok(Filled::Finished);
        }
        let owns = process.owner == Some(self.caller);
        if !owns && !process.observers.contains(&self.caller) {
            return finish(outgoing, id, FailureKind::Conflict, "another stream has it");
        }
        if self.reports_start {
            if process.is_starting() {
                return Ok(Filled::Nothing);
            }
            self.reports_start = false;
            let (ProcessId(number), pid) = (self.process, process.pid());
            if self.state == StreamState::Start {
                let outcome = Outcome::Spawned { id: number, pid };
                outgoing.close(id, &outcome)?;
                processes.remove_stream(self.process, self.caller);
                return Ok(Filled::Finished);
            }
            let event = Event::Started { id: number, pid };
            // Deferred, because output or the exit often follows soon and
            // shares the write.
            let is_late = process.started.after_ms(LAUNCH_CHECK_DELAY_MS) <= Moment::now();
            match is_late {
                true => outgoing.event(id, &event)?,
                false => outgoing.deferred_event(id, &event)?,
            }
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
            news |= !reader.has_ended() && output.read_pipe();
            let held = owns.then_some(PayloadSource::Process(self.process, channel));
            let end = output.has_ended().then(|| output.ring().end());
            let from = ReadSource {
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
        let exit = match self.state {
            StreamState::Kill => processes.exit_after_kill(self.process),
            StreamState::Start | StreamState::Watch | StreamState::AwaitAck => {
                processes.finalize_exit(self.process)
            }
        };
        let Some(exit) = exit else {
            return Ok(Filled::Nothing);
        };
        outgoing.close(id, &Outcome::Exited(exit))?;
        if owns {
            processes.exit_reported(self.process);
            self.state = StreamState::AwaitAck;
            return Ok(Filled::Nothing);
        }
        processes.remove_stream(self.process, self.caller);
        Ok(Filled::Finished)
    }

    /// Returns how much credit to send back for input that no longer occupies a
    /// buffer.
    fn consumed(&mut self, processes: &mut Processes) -> Option<u32> {
        if self.uncredited == 0 {
            return None;
        }
        let count = match processes.get_mut(self.process) {
            Some(process) => process.consumed_from(self.caller, self.uncredited),
            None => self.uncredited,
        };
        let count = count.min(self.uncredited);
        self.uncredited = self.uncredited.saturating_sub(count);
        self.stdin.consumed(count)
    }
}

/// Closes a stream that no longer has access to its process.
fn finish(
    outgoing: &mut Outgoing,
    stream: vmcell_wire::StreamId,
    kind: FailureKind,
    text: &str,
) -> Result<Filled, LinkError> {
    let failure = Failure::new(kind, Stage::Process, text);
    outgoing.close(stream, &Outcome::Failed(failure))?;
    Ok(Filled::Finished)
}
