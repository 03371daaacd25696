use alloc::vec::Vec;

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{Channel, Header, StreamId, WireError, encode};

use super::{Lost, staged::Staged};
use crate::{job::JobId, process::ProcessId, tasks::Tasks};

/// What is about to be written to a link.
pub(crate) struct Outgoing {
    writable: bool,
    /// Something must go out now; else what there is waits for company.
    urgent: bool,
    /// Whole frames, control and small data.
    control: Vec<u8>,
    written: usize,
    /// Goes out before `control`, and is only begun when that is empty.
    frame: Option<FrameUnderWay>,
    /// Frames that have their payloads with them. They go out before `control`,
    /// and are only begun when that is empty, too.
    staged: Staged,
}

/// A data frame that is not copied: its payload is held for its reader where
/// it comes from.
struct FrameUnderWay {
    source: Source,
    header: [u8; Header::SIZE],
    header_written: usize,
    offset: u64,
    remaining: usize,
    /// What remains, if the ring does not hold it any more.
    rescued: Vec<u8>,
}

/// Where the payload of a frame is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In a ring of a process.
    Process(ProcessId, Channel),
    /// In what a job gives.
    Job(JobId),
}

impl Source {
    fn channel(self) -> Channel {
        match self {
            Self::Process(_, channel) => channel,
            Self::Job(_) => Channel::Stdout,
        }
    }
}

/// What became of data that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// A frame with so many bytes.
    Frame(usize),
    /// There is nothing that may be sent.
    Nothing,
    /// There is no room before what waits is written.
    Later,
}

/// How a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// There is nothing more to write now.
    Everything,
    /// There may be more to write.
    Some,
    /// The link takes no more for now.
    Blocked,
}

/// A payload up to this size is copied, so that a short answer is one write.
const SMALL: usize = 4096;

/// The largest payload that is not copied: with its header, two writes to a
/// virtio-serial port, which takes 32 KiB at once. Whoever has a short answer
/// on the same link waits for one of these at most.
const LARGE: usize = 2 * COPIED - Header::SIZE;

/// The largest frame that is copied, with its header: a virtio-serial port
/// takes no more at once.
const COPIED: usize = 32 * 1024;

/// So many bytes are worth a write.
const ENOUGH: usize = 16 * 1024;

/// What is kept of the control buffer when it has been written.
const RETAINED: usize = 4096;

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            writable: true,
            urgent: false,
            control: Vec::new(),
            written: 0,
            frame: None,
            staged: Staged::new(),
        }
    }

    pub(super) fn is_ready(&mut self) {
        self.writable = true;
    }

    /// Frames that somebody may be waiting for.
    pub(super) fn control(&mut self) -> &mut Vec<u8> {
        self.urgent = true;
        &mut self.control
    }

    /// Frames that nobody is in a hurry for. They go out with the next one that
    /// is urgent, or when [`hurry`](Self::hurry) says so. Each write costs the
    /// guest a buffer, a trap and an interrupt.
    pub(super) fn unhurried(&mut self) -> &mut Vec<u8> {
        &mut self.control
    }

    /// What waits for company shall wait no longer.
    pub(super) fn hurry(&mut self) {
        self.urgent = true;
    }

    /// Whether the link takes nothing of what must go out now.
    pub(super) fn is_blocked(&self) -> bool {
        !self.writable && (self.has_frame() || self.waiting() > 0)
    }

    /// Whether there is something that waits for company.
    pub(super) fn is_patient(&self) -> bool {
        self.waiting() > 0 && !self.urgent
    }

    /// How many bytes of control frames are not yet written.
    pub(super) fn waiting(&self) -> usize {
        self.control.len().saturating_sub(self.written)
    }

    /// Whether another frame may be added.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.waiting().saturating_add(self.staged.end());
        self.frame.is_none() && waiting < ENOUGH
    }

    fn has_frame(&self) -> bool {
        self.frame.is_some() || !self.staged.is_empty()
    }

    /// Adds a data frame whose payload, the beginning of `payload`, stands at
    /// `offset` in the source and is held there for this stream.
    pub(super) fn add_held(
        &mut self,
        stream: StreamId,
        source: Source,
        offset: u64,
        payload: &[u8],
    ) -> Result<Added, WireError> {
        let channel = source.channel();
        if payload.len() <= SMALL {
            return self.add_copy(stream, channel, [payload, &[]], SMALL);
        }
        let remaining = payload.len().min(LARGE);
        if !self.staged.is_empty() {
            return Ok(Added::Later);
        }
        if self.waiting() > 0 {
            // It goes out first.
            self.urgent = true;
            return Ok(Added::Later);
        }
        self.frame = Some(FrameUnderWay {
            source,
            header: encode::data_header(stream, channel, remaining)?,
            header_written: 0,
            offset,
            remaining,
            rescued: Vec::new(),
        });
        Ok(Added::Frame(remaining))
    }

    /// Adds a data frame with a copy of up to `allowed` bytes.
    pub(super) fn add_copy(
        &mut self,
        stream: StreamId,
        channel: Channel,
        [first, second]: [&[u8]; 2],
        allowed: usize,
    ) -> Result<Added, WireError> {
        let allowed = allowed.min(COPIED.saturating_sub(Header::SIZE));
        let first = first.get(..allowed).unwrap_or(first);
        let left = allowed.saturating_sub(first.len());
        let second = second.get(..left).unwrap_or(second);
        let count = first.len().saturating_add(second.len());
        if count == 0 {
            return Ok(Added::Nothing);
        }
        let header = encode::data_header(stream, channel, count)?;
        self.urgent = true;
        self.control.extend_from_slice(&header);
        self.control.extend_from_slice(first);
        self.control.extend_from_slice(second);
        Ok(Added::Frame(count))
    }

    /// Adds a data frame with what `read` puts behind its header, up to
    /// `allowed` bytes.
    pub(super) fn add_read(
        &mut self,
        stream: StreamId,
        channel: Channel,
        allowed: usize,
        read: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Added, WireError> {
        // What waits must go out first, and goes out with this.
        let most = match self.waiting() {
            0 => usize::MAX,
            waiting => COPIED.saturating_sub(waiting.saturating_add(Header::SIZE)),
        };
        let room = self.staged.room();
        let room = match room.split_at_mut_checked(allowed.min(most)) {
            Some((room, _)) => room,
            None => room,
        };
        let count = read(room);
        if count == 0 {
            return Ok(Added::Nothing);
        }
        let header = encode::data_header(stream, channel, count)?;
        if self.waiting() == 0 {
            self.staged.add(header, count);
        } else {
            self.urgent = true;
            self.control.extend_from_slice(&header);
            self.control.extend_from_slice(self.staged.payload(count));
        }
        Ok(Added::Frame(count))
    }

    /// The ring of a process is about to hold nothing any more: what is under
    /// way is copied.
    pub(super) fn keep_frame_of(&mut self, process: ProcessId, tasks: &mut Tasks) {
        if let Some(frame) = &mut self.frame
            && matches!(frame.source, Source::Process(other, _) if other == process)
            && frame.rescued.is_empty()
        {
            let [first, second] = frame.kept(tasks);
            let rescued = first.iter().chain(second).take(frame.remaining);
            frame.rescued = rescued.copied().collect();
        }
    }

    /// Makes one write.
    pub(super) fn write(
        &mut self,
        descriptor: &OwnedFd,
        tasks: &mut Tasks,
    ) -> Result<Written, Lost> {
        if !self.has_frame() && (self.waiting() == 0 || self.is_patient()) {
            return Ok(Written::Everything);
        }
        if !self.writable {
            return Ok(Written::Blocked);
        }
        let outcome = match &self.frame {
            Some(frame) => frame.write(descriptor, tasks),
            None if !self.staged.is_empty() => rustix::io::write(descriptor, self.staged.rest()),
            None => rustix::io::write(
                descriptor,
                self.control.get(self.written..).unwrap_or_default(),
            ),
        };
        match outcome {
            Ok(count) => self.advance(count),
            Err(Errno::AGAIN) => {
                self.writable = false;
                return Ok(Written::Blocked);
            }
            Err(Errno::INTR) => {}
            Err(_) => return Err(Lost::HungUp),
        }
        Ok(Written::Some)
    }

    fn advance(&mut self, count: usize) {
        if let Some(frame) = &mut self.frame {
            if frame.advance(count) {
                self.frame = None;
            }
            return;
        }
        if !self.staged.is_empty() {
            self.staged.advance(count);
            return;
        }
        self.written = self.written.saturating_add(count);
        if self.waiting() == 0 {
            self.control.clear();
            self.control.shrink_to(RETAINED);
            self.written = 0;
            self.urgent = false;
        }
    }
}

impl FrameUnderWay {
    /// Makes one write. The header goes out with the payload if it can: a
    /// write of its own would cost as much as one of 32 KiB.
    fn write(&self, descriptor: &OwnedFd, tasks: &mut Tasks) -> Result<usize, Errno> {
        if self.header_written == 0
            && self.rescued.is_empty()
            && let Some(outcome) = self.write_with_header(descriptor, tasks)
        {
            return outcome;
        }
        rustix::io::write(descriptor, self.next_bytes(tasks))
    }

    /// None: there is no place for the header.
    fn write_with_header(
        &self,
        descriptor: &OwnedFd,
        tasks: &mut Tasks,
    ) -> Option<Result<usize, Errno>> {
        let length = Header::SIZE.saturating_add(self.remaining);
        let write =
            |bytes: &[u8]| rustix::io::write(descriptor, bytes.get(..length).unwrap_or(bytes));
        match self.source {
            Source::Process(process, channel) => {
                let process = tasks.processes.get_mut(process)?;
                let ring = process.output_mut(channel)?.ring_mut();
                ring.with_prefix(self.offset, &self.header, write)
            }
            Source::Job(job) => {
                let output = tasks.jobs.output(job)?;
                output.with_prefix(self.offset, &self.header, write)
            }
        }
    }

    fn next_bytes<'a>(&'a self, tasks: &'a mut Tasks) -> &'a [u8] {
        if let Some(rest @ [_, ..]) = self.header.get(self.header_written..) {
            return rest;
        }
        if let Some(start) = self.rescued.len().checked_sub(self.remaining)
            && let Some(rest @ [_, ..]) = self.rescued.get(start..)
        {
            return rest;
        }
        match self.kept(tasks) {
            // The process was killed in the middle of the frame, on the host's
            // word or because it is gone. What the header promised must
            // follow, and nobody will look at it.
            [[], _] => FILLER.get(..self.remaining).unwrap_or(&FILLER),
            [kept, _] => kept.get(..self.remaining).unwrap_or(kept),
        }
    }

    /// What the source has from where the frame is.
    fn kept<'a>(&self, tasks: &'a mut Tasks) -> [&'a [u8]; 2] {
        match self.source {
            Source::Process(process, channel) => tasks
                .processes
                .get_mut(process)
                .and_then(|process| process.output_mut(channel))
                .map_or([&[], &[]], |output| output.ring().bytes_from(self.offset)),
            Source::Job(job) => match tasks.jobs.output(job) {
                Some(output) => [output.bytes_from(self.offset), &[]],
                None => [&[], &[]],
            },
        }
    }

    /// Answers whether the frame is complete.
    fn advance(&mut self, count: usize) -> bool {
        let header = count.min(Header::SIZE.saturating_sub(self.header_written));
        self.header_written = self.header_written.saturating_add(header);
        let count = count.saturating_sub(header);
        self.offset = self
            .offset
            .saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.remaining = self.remaining.saturating_sub(count);
        self.remaining == 0
    }
}

static FILLER: [u8; 4096] = [0; 4096];
