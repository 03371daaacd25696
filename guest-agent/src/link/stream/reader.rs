use vmcell_wire::{Channel, Event, Output, StreamId, credit::SendWindow, encode};

use crate::{
    link::{
        LinkError,
        outgoing::{Added, Outgoing, PayloadSource},
    },
    process::ReadPosition,
    ring::Ring,
};

/// How far a stream has read an output.
///
/// ```text
///      first   acknowledged     offset           limit
///  ------+----------+--------------+---------------+----
///        |  consumed by the host's | may be sent   |
///        |  user    |  user: no    |               |
/// ```
///
/// The host returns credit for what its user has consumed, so its limit is
/// always one window beyond that.
pub(crate) struct Reader {
    channel: Channel,
    window: SendWindow,
    size: u32,
    first: u64,
    offset: u64,
    limit: u64,
    ended: bool,
}

/// What a [`Reader`] reads.
pub(super) struct ReadSource<'a> {
    pub(super) ring: &'a Ring,
    /// Where to stop reading, if that is known.
    pub(super) end: Option<u64>,
    /// What holds the bytes for this reader; `None`: they may be overwritten.
    pub(super) held: Option<PayloadSource>,
}

impl Reader {
    pub(super) fn new(channel: Channel, position: ReadPosition) -> Self {
        Self {
            channel,
            window: SendWindow::new(channel, position.credit),
            size: position.size,
            first: position.offset,
            offset: position.offset,
            limit: position.offset.saturating_add(position.credit.into()),
            ended: false,
        }
    }

    /// Returns whether it has reported the end of the output.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn granted(&mut self, bytes: u32) -> Result<(), LinkError> {
        self.window.granted(bytes)?;
        self.limit = self.limit.saturating_add(bytes.into());
        Ok(())
    }

    /// Returns the offset before which the host needs nothing again.
    pub(super) fn acknowledged(&self) -> u64 {
        let consumed = self.limit.saturating_sub(self.size.into());
        consumed.min(self.offset).max(self.first)
    }

    /// Adds the next frame. Returns whether there was one.
    pub(super) fn fill(
        &mut self,
        stream: StreamId,
        from: ReadSource<'_>,
        outgoing: &mut Outgoing,
    ) -> Result<bool, LinkError> {
        if self.ended {
            return Ok(false);
        }
        let ReadSource { ring, end, held } = from;
        let available = self.window.available();
        let gap = ring.start().saturating_sub(self.offset);
        // The gap is reported late, because it may grow until there is credit
        // for what follows it.
        if gap > 0 && (available > 0 || ring.start() == ring.end()) {
            let output = match self.channel {
                Channel::Stderr => Output::Stderr,
                Channel::Stdin | Channel::Stdout => Output::Stdout,
            };
            let event = Event::Gap { output, bytes: gap };
            outgoing.deferred_event(stream, &event)?;
            self.offset = ring.start();
            self.limit = self.limit.saturating_add(gap);
            self.first = self.first.max(self.offset);
        }
        let wanted = end.map_or(u64::MAX, |end| end.saturating_sub(self.offset));
        let allowed = usize::try_from(wanted.min(available.into())).unwrap_or(usize::MAX);
        let pieces = ring.bytes_from(self.offset);
        let added = match held {
            Some(source) => {
                let [piece, _] = pieces;
                let piece = piece.get(..allowed).unwrap_or(piece);
                outgoing.add_held(stream, source, self.offset, piece)?
            }
            None => outgoing.add_copy(stream, self.channel, pieces, allowed)?,
        };
        match added {
            Added::Frame(count) => {
                self.window.take(u32::try_from(count).unwrap_or(u32::MAX));
                self.offset = self
                    .offset
                    .saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                Ok(true)
            }
            Added::Nothing if end.is_some_and(|end| self.offset >= end) => {
                encode::end(outgoing.deferred_control(), stream, self.channel);
                self.ended = true;
                Ok(true)
            }
            Added::Nothing | Added::Later => Ok(false),
        }
    }
}
