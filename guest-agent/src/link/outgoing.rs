use alloc::vec::Vec;

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{Capabilities, Channel, Event, Header, Outcome, StreamId, WireError, encode};
use zeroize::Zeroize as _;

use super::{LinkError, staged::StagedFrames};
#[cfg(feature = "files")]
use crate::ids::JobId;
use crate::{ids::ProcessId, tasks::Tasks};

/// The frames to be written to a link.
pub(crate) struct Outgoing {
    /// What the host's hello announced.
    host: Capabilities,
    writable: bool,
    /// Whether the control frames must be written now; otherwise they wait for
    /// another frame.
    urgent: bool,
    /// Whole frames, control and small data.
    control: Vec<u8>,
    written: usize,
    /// Written before `control`, and only started when that is empty.
    frame: Option<FrameInFlight>,
    /// Frames stored with their payloads. Also written before `control`, and
    /// only added when that is empty.
    staged: StagedFrames,
}

/// A data frame whose payload is not copied: its source holds the bytes until
/// they are sent.
struct FrameInFlight {
    source: PayloadSource,
    header: [u8; Header::SIZE],
    header_written: usize,
    offset: u64,
    remaining: usize,
    /// A copy of the remaining payload, if the ring no longer holds it.
    copied_payload: Vec<u8>,
}

/// What holds the payload of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadSource {
    /// An output ring of a process.
    Process(ProcessId, Channel),
    /// The output of a job.
    #[cfg(feature = "files")]
    Job(JobId),
}

impl PayloadSource {
    fn channel(self) -> Channel {
        match self {
            Self::Process(_, channel) => channel,
            #[cfg(feature = "files")]
            Self::Job(_) => Channel::Stdout,
        }
    }
}

/// The result of adding data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// A frame with this many bytes of payload was added.
    Frame(usize),
    /// There is nothing to send.
    Nothing,
    /// The pending frames must be written first.
    Later,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing is left to write now.
    All,
    /// More may be left to write.
    Some,
    /// The link is not writable.
    Blocked,
}

/// A payload up to this size is copied, so that a short answer takes one write.
const COPY_THRESHOLD: usize = 4096;

/// The largest payload of a frame that is not copied. With its header it takes
/// two writes to a virtio-serial port, which accepts 32 KiB at once. A short
/// answer on the same link waits for at most one of these frames.
const MAX_UNCOPIED_PAYLOAD: usize = 2 * MAX_COPIED_FRAME - Header::SIZE;

/// The largest frame that is copied, including its header: a virtio-serial port
/// accepts no more at once.
const MAX_COPIED_FRAME: usize = 32 * 1024;

impl Drop for FrameInFlight {
    fn drop(&mut self) {
        self.copied_payload.as_mut_slice().zeroize();
    }
}

/// No more frames are added once this many bytes are pending.
const WRITE_BATCH: usize = 16 * 1024;

/// The capacity that the control buffer retains after it was written.
const RETAINED_CAPACITY: usize = 4096;

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            host: Capabilities::NONE,
            writable: true,
            urgent: false,
            control: Vec::new(),
            written: 0,
            frame: None,
            staged: StagedFrames::new(),
        }
    }

    pub(super) fn on_ready(&mut self) {
        self.writable = true;
    }

    /// Restricts what is sent to what the host knows.
    pub(super) fn set_host_capabilities(&mut self, host: Capabilities) {
        self.host = host;
    }

    /// Adds the end of a stream, which must be written now.
    pub(super) fn close(
        &mut self,
        stream: StreamId,
        outcome: &Outcome<'_>,
    ) -> Result<(), WireError> {
        let outcome = outcome.for_host(self.host);
        encode::close(self.control(), stream, &outcome)
    }

    /// Adds an event that must be written now.
    pub(super) fn event(&mut self, stream: StreamId, event: &Event<'_>) -> Result<(), WireError> {
        self.urgent = true;
        self.deferred_event(stream, event)
    }

    /// Adds an event that can wait. An event that the host does not know is
    /// dropped.
    pub(super) fn deferred_event(
        &mut self,
        stream: StreamId,
        event: &Event<'_>,
    ) -> Result<(), WireError> {
        match self.host.contains(event.capability()) {
            true => encode::event(&mut self.control, stream, event),
            false => Ok(()),
        }
    }

    /// Returns the buffer for control frames that must be written now.
    pub(super) fn control(&mut self) -> &mut Vec<u8> {
        self.urgent = true;
        &mut self.control
    }

    /// Returns the buffer for control frames that can wait. They are written
    /// with the next urgent frame, or after [`flush_now`](Self::flush_now).
    /// Each write costs the guest a buffer, a trap and an interrupt.
    pub(super) fn deferred_control(&mut self) -> &mut Vec<u8> {
        &mut self.control
    }

    /// Makes the deferred frames urgent.
    pub(super) fn flush_now(&mut self) {
        self.urgent = true;
    }

    /// Returns whether there is something to write and the link is not
    /// writable.
    pub(super) fn is_blocked(&self) -> bool {
        !self.writable && (self.has_frame() || self.waiting() > 0)
    }

    /// Returns whether there are only deferred frames.
    pub(super) fn has_deferred(&self) -> bool {
        self.waiting() > 0 && !self.urgent
    }

    /// Returns how many bytes of control frames are unwritten.
    pub(super) fn waiting(&self) -> usize {
        self.control.len().saturating_sub(self.written)
    }

    /// Returns whether another frame may be added.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.waiting().saturating_add(self.staged.end());
        self.frame.is_none() && waiting < WRITE_BATCH
    }

    fn has_frame(&self) -> bool {
        self.frame.is_some() || !self.staged.is_empty()
    }

    /// Adds a data frame whose payload is a prefix of `payload`, which starts
    /// at `offset` in the source and is held there for this stream.
    pub(super) fn add_held(
        &mut self,
        stream: StreamId,
        source: PayloadSource,
        offset: u64,
        payload: &[u8],
    ) -> Result<Added, WireError> {
        let channel = source.channel();
        if payload.len() <= COPY_THRESHOLD {
            return self.add_copy(stream, channel, [payload, &[]], COPY_THRESHOLD);
        }
        let remaining = payload.len().min(MAX_UNCOPIED_PAYLOAD);
        if !self.staged.is_empty() {
            return Ok(Added::Later);
        }
        if self.waiting() > 0 {
            // The control frames are written first.
            self.urgent = true;
            return Ok(Added::Later);
        }
        self.frame = Some(FrameInFlight {
            source,
            header: encode::data_header(stream, channel, remaining)?,
            header_written: 0,
            offset,
            remaining,
            copied_payload: Vec::new(),
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
        let allowed = allowed.min(MAX_COPIED_FRAME.saturating_sub(Header::SIZE));
        let first = first.get(..allowed).unwrap_or(first);
        let left = allowed.saturating_sub(first.len());
        let second = second.get(..left).unwrap_or(second);
        let count = first.len().saturating_add(second.len());
        if count == 0 {
            return Ok(Added::Nothing);
        }
        let header = encode::data_header(stream, channel, count)?;
        self.urgent = true;
        self.make_room(count.saturating_add(Header::SIZE));
        self.control.extend_from_slice(&header);
        self.control.extend_from_slice(first);
        self.control.extend_from_slice(second);
        Ok(Added::Frame(count))
    }

    /// Adds a data frame with the bytes that `read` stores behind its header,
    /// up to `allowed` bytes.
    pub(super) fn add_read(
        &mut self,
        stream: StreamId,
        channel: Channel,
        allowed: usize,
        read: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Added, WireError> {
        // Pending control frames are written first, in the same write as this
        // frame.
        let most = match self.waiting() {
            0 => usize::MAX,
            waiting => MAX_COPIED_FRAME.saturating_sub(waiting.saturating_add(Header::SIZE)),
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
            self.make_room(count.saturating_add(Header::SIZE));
            self.control.extend_from_slice(&header);
            let payload = self.staged.payload(count);
            self.control.extend_from_slice(payload);
            payload.zeroize();
        }
        Ok(Added::Frame(count))
    }

    /// Makes room for more bytes. What programs have printed may be a secret, so no copy of
    /// it stays where the buffer was.
    fn make_room(&mut self, count: usize) {
        let length = self.control.len().saturating_add(count);
        if length > self.control.capacity() {
            let mut larger = Vec::with_capacity(length.next_power_of_two());
            larger.extend_from_slice(&self.control);
            self.control.as_mut_slice().zeroize();
            self.control = larger;
        }
    }

    /// Copies the rest of the frame in flight of a process whose ring is about
    /// to stop holding it.
    pub(super) fn copy_frame_of(&mut self, process: ProcessId, tasks: &mut Tasks) {
        if let Some(frame) = &mut self.frame
            && matches!(frame.source, PayloadSource::Process(other, _) if other == process)
            && frame.copied_payload.is_empty()
        {
            let [first, second] = frame.source_bytes(tasks);
            let copied_payload = first.iter().chain(second).take(frame.remaining);
            frame.copied_payload = copied_payload.copied().collect();
        }
    }

    /// Makes one write.
    pub(super) fn write(
        &mut self,
        descriptor: &OwnedFd,
        tasks: &mut Tasks,
    ) -> Result<Written, LinkError> {
        if !self.has_frame() && (self.waiting() == 0 || self.has_deferred()) {
            return Ok(Written::All);
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
            Err(_) => return Err(LinkError::Disconnected),
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
            self.control.as_mut_slice().zeroize();
            self.control.clear();
            self.control.shrink_to(RETAINED_CAPACITY);
            self.written = 0;
            self.urgent = false;
        }
    }
}

impl FrameInFlight {
    /// Makes one write. The header is written together with the payload if
    /// possible: a write of its own would cost as much as one of 32 KiB.
    fn write(&self, descriptor: &OwnedFd, tasks: &mut Tasks) -> Result<usize, Errno> {
        if self.header_written == 0
            && self.copied_payload.is_empty()
            && let Some(outcome) = self.write_with_header(descriptor, tasks)
        {
            return outcome;
        }
        rustix::io::write(descriptor, self.next_bytes(tasks))
    }

    /// Writes header and payload at once; `None`: there is no space for the
    /// header before the payload.
    fn write_with_header(
        &self,
        descriptor: &OwnedFd,
        tasks: &mut Tasks,
    ) -> Option<Result<usize, Errno>> {
        let length = Header::SIZE.saturating_add(self.remaining);
        let write =
            |bytes: &[u8]| rustix::io::write(descriptor, bytes.get(..length).unwrap_or(bytes));
        match self.source {
            PayloadSource::Process(process, channel) => {
                let process = tasks.processes.get_mut(process)?;
                let ring = process.output_mut(channel)?.ring_mut();
                ring.with_prefix(self.offset, &self.header, write)
            }
            #[cfg(feature = "files")]
            PayloadSource::Job(job) => {
                let output = tasks.jobs.output(job)?;
                output.with_prefix(self.offset, &self.header, write)
            }
        }
    }

    fn next_bytes<'a>(&'a self, tasks: &'a mut Tasks) -> &'a [u8] {
        if let Some(rest @ [_, ..]) = self.header.get(self.header_written..) {
            return rest;
        }
        if let Some(start) = self.copied_payload.len().checked_sub(self.remaining)
            && let Some(rest @ [_, ..]) = self.copied_payload.get(start..)
        {
            return rest;
        }
        match self.source_bytes(tasks) {
            // The process was killed in the middle of the frame, by the host's
            // request or because the host is gone. The frame is padded to the
            // length in its header, and its reader ignores it.
            [[], _] => PADDING.get(..self.remaining).unwrap_or(&PADDING),
            [bytes, _] => bytes.get(..self.remaining).unwrap_or(bytes),
        }
    }

    /// Returns the bytes that the source holds from the frame's offset on.
    fn source_bytes<'a>(&self, tasks: &'a mut Tasks) -> [&'a [u8]; 2] {
        match self.source {
            PayloadSource::Process(process, channel) => tasks
                .processes
                .get_mut(process)
                .and_then(|process| process.output_mut(channel))
                .map_or([&[], &[]], |output| output.ring().bytes_from(self.offset)),
            #[cfg(feature = "files")]
            PayloadSource::Job(job) => match tasks.jobs.output(job) {
                Some(output) => [output.bytes_from(self.offset), &[]],
                None => [&[], &[]],
            },
        }
    }

    /// Returns whether the frame is complete.
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

static PADDING: [u8; 4096] = [0; 4096];
