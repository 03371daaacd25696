use vmcell_wire::{
    Channel, Outcome, StreamId,
    credit::{ReceiveWindow, SendWindow},
    encode,
    limits::MAX_PAYLOAD,
};

use super::{
    Lost,
    outgoing::{Added, Outgoing},
};
use crate::process::{INPUT_WINDOW, Process, ProcessId, Processes, Progress};

/// A stream that watches a process.
pub(crate) struct Stream {
    id: StreamId,
    process: ProcessId,
    stdin: ReceiveWindow,
    stdout: Reader,
    stderr: Reader,
}

/// How far a stream has read an output.
struct Reader {
    window: SendWindow,
    offset: u64,
    ended: bool,
}

/// Whether a stream had something to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Something,
    Nothing,
    /// It has said its last word.
    Finished,
}

impl Stream {
    pub(crate) fn new(id: StreamId, process: ProcessId, peer_window: u32) -> Self {
        let reader = |channel| Reader {
            window: SendWindow::new(channel, peer_window),
            offset: 0,
            ended: false,
        };
        Self {
            id,
            process,
            stdin: ReceiveWindow::new(Channel::Stdin, INPUT_WINDOW),
            stdout: reader(Channel::Stdout),
            stderr: reader(Channel::Stderr),
        }
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.process
    }

    /// The host does not want any more of it.
    pub(crate) fn cancel(&mut self) {
        self.stdout.ended = true;
        self.stderr.ended = true;
    }

    /// Credit came for an output.
    pub(crate) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), Lost> {
        let reader = match channel {
            Channel::Stdin => return Ok(()),
            Channel::Stdout => &mut self.stdout,
            Channel::Stderr => &mut self.stderr,
        };
        Ok(reader.window.granted(bytes)?)
    }

    /// Standard input came. Answers how much credit to send back.
    pub(crate) fn input(
        &mut self,
        bytes: &[u8],
        processes: &mut Processes,
    ) -> Result<Option<u32>, Lost> {
        self.stdin
            .arrived(u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
        let process = processes.get_mut(self.process);
        let consumed = match process.and_then(|process| process.stdin.as_mut()) {
            Some(input) => {
                let (consumed, progress) = input.give(bytes);
                close_if_finished(processes, self.process, progress);
                consumed
            }
            // The process has closed it: the bytes are of no use, but their
            // credit is.
            None => bytes.len(),
        };
        Ok(self.consumed(consumed))
    }

    /// Standard input ends here.
    pub(crate) fn input_ended(&mut self, processes: &mut Processes) {
        let process = processes.get_mut(self.process);
        if let Some(input) = process.and_then(|process| process.stdin.as_mut()) {
            let progress = input.end();
            close_if_finished(processes, self.process, progress);
        }
    }

    /// Moves bytes for its process and adds what there is to say.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        processes: &mut Processes,
    ) -> Result<Filled, Lost> {
        if let Some(credit) = self.flush_input(processes) {
            encode::credit(outgoing.control(), self.id, Channel::Stdin, credit);
        }
        let Some(process) = processes.get_mut(self.process) else {
            return Ok(Filled::Finished);
        };
        for (channel, reader) in [
            (Channel::Stdout, &mut self.stdout),
            (Channel::Stderr, &mut self.stderr),
        ] {
            if reader.fill(channel, self.id, self.process, process, outgoing)? {
                return Ok(Filled::Something);
            }
        }
        if !self.stdout.ended || !self.stderr.ended {
            return Ok(Filled::Nothing);
        }
        let Some(exit) = process.report() else {
            return Ok(Filled::Nothing);
        };
        encode::close(outgoing.control(), self.id, &Outcome::Exited(exit))?;
        processes.finish(self.process, exit.tree_ended);
        Ok(Filled::Finished)
    }

    fn flush_input(&mut self, processes: &mut Processes) -> Option<u32> {
        let input = processes.get_mut(self.process)?.stdin.as_mut()?;
        let (consumed, progress) = input.flush();
        close_if_finished(processes, self.process, progress);
        self.consumed(consumed)
    }

    fn consumed(&mut self, count: usize) -> Option<u32> {
        self.stdin
            .consumed(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

impl Reader {
    /// Answers whether it added a frame.
    fn fill(
        &mut self,
        channel: Channel,
        stream: StreamId,
        id: ProcessId,
        process: &mut Process,
        outgoing: &mut Outgoing,
    ) -> Result<bool, Lost> {
        if self.ended {
            return Ok(false);
        }
        let Some(output) = process.output_mut(channel) else {
            return Ok(false);
        };
        output.collect();
        let bytes = output.ring().bytes_from(self.offset);
        let allowed = self.window.available().min(MAX_PAYLOAD);
        let count = bytes.len().min(usize::try_from(allowed).unwrap_or(0));
        if count == 0 {
            if output.has_ended() && self.offset == output.ring().end() {
                encode::end(outgoing.unhurried(), stream, channel);
                self.ended = true;
                return Ok(true);
            }
            return Ok(false);
        }
        let payload = bytes.get(..count).unwrap_or_default();
        let added = outgoing.add_data(stream, channel, id, self.offset, payload)?;
        if added == Added::Later {
            return Ok(false);
        }
        self.window.take(u32::try_from(count).unwrap_or(u32::MAX));
        self.offset = self
            .offset
            .saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        // A frame under way lets go of its bytes as they are written.
        if added == Added::Copied {
            output.release(self.offset);
        }
        Ok(true)
    }
}

fn close_if_finished(processes: &mut Processes, id: ProcessId, progress: Progress) {
    if progress == Progress::Finished
        && let Some(process) = processes.get_mut(id)
    {
        process.stdin = None;
    }
}
