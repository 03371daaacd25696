use vmcell_wire::{Channel, Event, Output, StreamId, credit::SendWindow, encode};

use crate::{
    link::{
        Lost,
        outgoing::{Added, Outgoing, Source},
    },
    ring::Ring,
};

/// Where an output is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    /// How much may be sent from there.
    pub(crate) credit: u32,
    /// The host's whole window, of which bytes that it already has may take a
    /// part.
    pub(crate) size: u32,
}

/// How far a stream has read an output.
///
/// ```text
///      first   acknowledged     offset           limit
///  ------+----------+--------------+---------------+----
///        |  consumed by the host's | may be sent   |
///        |  user    |  user: no    |               |
/// ```
///
/// The host gives credit back for what its user has consumed, so its limit is
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

/// What is read.
pub(super) struct From<'a> {
    pub(super) ring: &'a Ring,
    /// Where it ends, if that is known: nothing behind it is wanted.
    pub(super) end: Option<u64>,
    /// Where the bytes are held for this reader. None: they may be overwritten.
    pub(super) held: Option<Source>,
}

impl Reader {
    pub(super) fn new(channel: Channel, place: Place) -> Self {
        Self {
            channel,
            window: SendWindow::new(channel, place.credit),
            size: place.size,
            first: place.offset,
            offset: place.offset,
            limit: place.offset.saturating_add(place.credit.into()),
            ended: false,
        }
    }

    /// Whether it has told the end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn granted(&mut self, bytes: u32) -> Result<(), Lost> {
        self.window.granted(bytes)?;
        self.limit = self.limit.saturating_add(bytes.into());
        Ok(())
    }

    /// The offset before which the host needs nothing again.
    pub(super) fn acknowledged(&self) -> u64 {
        let consumed = self.limit.saturating_sub(self.size.into());
        consumed.min(self.offset).max(self.first)
    }

    /// Answers whether it added a frame.
    pub(super) fn fill(
        &mut self,
        stream: StreamId,
        from: From<'_>,
        outgoing: &mut Outgoing,
    ) -> Result<bool, Lost> {
        if self.ended {
            return Ok(false);
        }
        let From { ring, end, held } = from;
        let available = self.window.available();
        let gap = ring.start().saturating_sub(self.offset);
        // The gap may grow until there is credit for what follows it.
        if gap > 0 && (available > 0 || ring.start() == ring.end()) {
            let output = match self.channel {
                Channel::Stderr => Output::Stderr,
                Channel::Stdin | Channel::Stdout => Output::Stdout,
            };
            let event = Event::Gap { output, bytes: gap };
            encode::event(outgoing.unhurried(), stream, &event)?;
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
                encode::end(outgoing.unhurried(), stream, self.channel);
                self.ended = true;
                Ok(true)
            }
            Added::Nothing | Added::Later => Ok(false),
        }
    }
}
