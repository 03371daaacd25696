use crate::ids::Caller;
use alloc::vec::Vec;

/// The writers of a terminal, in the order in which they attached.
///
/// A writer whose link was lost is kept, so that it can continue where it was.
#[derive(Default)]
pub(crate) struct Writers(Vec<Writer>);

struct Writer {
    ticket: u64,
    /// How many bytes were received in total.
    received: u64,
    /// `None`: its stream is gone.
    caller: Option<Caller>,
}

/// The maximum number of writers. For a new one, the oldest that is gone is
/// removed.
const MAX_WRITERS: usize = 64;

/// [`MAX_WRITERS`] writers are attached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyWriters;

impl Writers {
    /// Attaches a stream as a writer. Returns the stream that was attached with
    /// the same ticket until now.
    pub(super) fn attach(
        &mut self,
        ticket: u64,
        caller: Caller,
    ) -> Result<Option<Caller>, TooManyWriters> {
        if let Some(known) = self.0.iter_mut().find(|writer| writer.ticket == ticket) {
            return Ok(known.caller.replace(caller));
        }
        if self.0.len() >= MAX_WRITERS {
            let gone = self.0.iter().position(|writer| writer.caller.is_none());
            self.0.remove(gone.ok_or(TooManyWriters)?);
        }
        self.0.push(Writer {
            ticket,
            received: 0,
            caller: Some(caller),
        });
        Ok(None)
    }

    /// Detaches a stream.
    pub(super) fn detach(&mut self, caller: Caller) {
        if let Some(writer) = self.find(caller) {
            writer.caller = None;
        }
    }

    /// Returns how many bytes a stream's writer has sent; `None` if the stream
    /// is no writer.
    pub(in crate::process) fn received(&self, caller: Caller) -> Option<u64> {
        self.0
            .iter()
            .find(|writer| writer.caller == Some(caller))
            .map(|writer| writer.received)
    }

    /// Records bytes from a stream. Returns whether it is a writer.
    pub(in crate::process) fn record(&mut self, caller: Caller, count: usize) -> bool {
        let Some(writer) = self.find(caller) else {
            return false;
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        writer.received = writer.received.saturating_add(count);
        true
    }

    /// Returns whether this writer answers the program's queries: the first
    /// that is present.
    pub(super) fn is_first(&self, ticket: u64) -> bool {
        let mut present = self.0.iter().filter(|writer| writer.caller.is_some());
        present.next().is_some_and(|first| first.ticket == ticket)
    }

    fn find(&mut self, caller: Caller) -> Option<&mut Writer> {
        self.0
            .iter_mut()
            .find(|writer| writer.caller == Some(caller))
    }
}

#[cfg(test)]
mod tests {
    use vmcell_wire::StreamId;

    use super::*;
    use crate::ids::LinkId;

    fn caller(stream: u32) -> Caller {
        Caller {
            link: LinkId(0),
            stream: StreamId::new(stream).unwrap(),
        }
    }

    #[test]
    fn a_writer_that_comes_back_goes_on_where_it_was() {
        let mut writers = Writers::default();
        assert_eq!(writers.attach(7, caller(1)), Ok(None));
        assert!(writers.record(caller(1), 10));
        writers.detach(caller(1));
        assert!(!writers.record(caller(1), 10));
        assert_eq!(writers.attach(7, caller(2)), Ok(None));
        assert_eq!(writers.received(caller(2)), Some(10));
        // Its first link was lost without the agent noticing.
        assert_eq!(writers.attach(7, caller(3)), Ok(Some(caller(2))));
        assert_eq!(writers.received(caller(2)), None);
        assert_eq!(writers.received(caller(3)), Some(10));
    }

    #[test]
    fn the_first_of_those_present_answers() {
        let mut writers = Writers::default();
        assert!(!writers.is_first(1));
        for ticket in 1..=3 {
            writers
                .attach(ticket.into(), caller(ticket))
                .expect("there is room");
        }
        assert!(writers.is_first(1) && !writers.is_first(2));
        writers.detach(caller(1));
        assert!(writers.is_first(2) && !writers.is_first(1));
        writers.attach(1, caller(9)).expect("it is known");
        assert!(writers.is_first(1));
    }

    #[test]
    fn those_who_are_gone_make_room_the_oldest_first() {
        let mut writers = Writers::default();
        for number in 1..=64 {
            assert_eq!(writers.attach(number.into(), caller(number)), Ok(None));
            assert!(writers.record(caller(number), 5));
        }
        assert_eq!(writers.attach(65, caller(65)), Err(TooManyWriters));
        writers.detach(caller(2));
        writers.detach(caller(40));
        assert_eq!(writers.attach(65, caller(65)), Ok(None));
        assert_eq!(writers.attach(40, caller(66)), Ok(None));
        assert_eq!(writers.received(caller(66)), Some(5));
        assert_eq!(writers.attach(2, caller(67)), Err(TooManyWriters));
    }
}
