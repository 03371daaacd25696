use alloc::vec::Vec;

use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{Channel, Header, StreamId, WireError, encode};

use super::Lost;
use crate::process::{ProcessId, Processes};

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
}

/// A data frame whose payload is still in the ring of its process.
struct FrameUnderWay {
    process: ProcessId,
    channel: Channel,
    header: [u8; Header::SIZE],
    header_written: usize,
    offset: u64,
    remaining: usize,
}

/// What became of data that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is copied.
    Copied,
    /// It will be taken from the ring.
    UnderWay,
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
        !self.writable && (self.frame.is_some() || self.waiting() > 0)
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
        self.frame.is_none() && self.waiting() < ENOUGH
    }

    /// Adds a data frame. Its payload stands at `offset` in the ring.
    pub(super) fn add_data(
        &mut self,
        stream: StreamId,
        channel: Channel,
        process: ProcessId,
        offset: u64,
        payload: &[u8],
    ) -> Result<Added, WireError> {
        let header = encode::data_header(stream, channel, payload.len())?;
        self.urgent = true;
        if payload.len() <= SMALL {
            self.control.extend_from_slice(&header);
            self.control.extend_from_slice(payload);
            return Ok(Added::Copied);
        }
        if self.waiting() > 0 {
            return Ok(Added::Later);
        }
        self.frame = Some(FrameUnderWay {
            process,
            channel,
            header,
            header_written: 0,
            offset,
            remaining: payload.len(),
        });
        Ok(Added::UnderWay)
    }

    /// Makes one write.
    pub(super) fn write(
        &mut self,
        descriptor: &OwnedFd,
        processes: &mut Processes,
    ) -> Result<Written, Lost> {
        if self.frame.is_none() && (self.waiting() == 0 || self.is_patient()) {
            return Ok(Written::Everything);
        }
        if !self.writable {
            return Ok(Written::Blocked);
        }
        let outcome = match &self.frame {
            Some(frame) => rustix::io::write(descriptor, frame.next_bytes(processes)),
            None => rustix::io::write(
                descriptor,
                self.control.get(self.written..).unwrap_or_default(),
            ),
        };
        match outcome {
            Ok(count) => self.advance(count, processes),
            Err(Errno::AGAIN) => {
                self.writable = false;
                return Ok(Written::Blocked);
            }
            Err(Errno::INTR) => {}
            Err(_) => return Err(Lost::HungUp),
        }
        Ok(Written::Some)
    }

    fn advance(&mut self, count: usize, processes: &mut Processes) {
        if let Some(frame) = &mut self.frame {
            if frame.advance(count, processes) {
                self.frame = None;
            }
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
    fn next_bytes<'a>(&'a self, processes: &'a mut Processes) -> &'a [u8] {
        if let Some(rest @ [_, ..]) = self.header.get(self.header_written..) {
            return rest;
        }
        let kept = processes
            .get_mut(self.process)
            .and_then(|process| process.output_mut(self.channel))
            .map_or(&[][..], |output| output.ring().bytes_from(self.offset));
        match kept {
            // The process was killed in the middle of the frame, on the host's
            // word or because it is gone. What the header promised must
            // follow, and nobody will look at it.
            [] => FILLER.get(..self.remaining).unwrap_or(&FILLER),
            kept => kept.get(..self.remaining).unwrap_or(kept),
        }
    }

    /// Answers whether the frame is complete.
    fn advance(&mut self, count: usize, processes: &mut Processes) -> bool {
        if self.header_written < Header::SIZE {
            self.header_written = self.header_written.saturating_add(count);
            return false;
        }
        self.offset = self
            .offset
            .saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.remaining = self.remaining.saturating_sub(count);
        let output = processes
            .get_mut(self.process)
            .and_then(|process| process.output_mut(self.channel));
        if let Some(output) = output {
            output.release(self.offset);
        }
        self.remaining == 0
    }
}

static FILLER: [u8; 4096] = [0; 4096];
