use vmcell_wire::{
    Channel, Outcome,
    credit::{ReceiveWindow, SendWindow},
    encode,
};

use super::Filled;
use crate::{
    ids::{Caller, JobId},
    job::{JOB_WINDOW, Jobs},
    link::{
        LinkError,
        outgoing::{Added, Outgoing, PayloadSource},
    },
};

/// The stream of a file job.
pub(crate) struct JobStream {
    caller: Caller,
    job: JobId,
    input: ReceiveWindow,
    /// How much input the job had consumed when credit was last returned.
    returned: u64,
    output: SendWindow,
    /// How much output was sent.
    sent: u64,
    is_cancelled: bool,
}

impl JobStream {
    pub(crate) fn new(caller: Caller, job: JobId, window: u32) -> Self {
        Self {
            caller,
            job,
            input: ReceiveWindow::new(Channel::Stdin, JOB_WINDOW),
            returned: 0,
            output: SendWindow::new(Channel::Stdout, window),
            sent: 0,
            is_cancelled: false,
        }
    }

    pub(super) fn on_link_lost(&self, jobs: &mut Jobs) {
        jobs.abandon(self.job);
    }

    pub(super) fn cancel(&mut self, jobs: &mut Jobs) {
        self.is_cancelled = true;
        jobs.cancel(self.job);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), LinkError> {
        if channel == Channel::Stdout {
            self.output.granted(bytes)?;
        }
        Ok(())
    }

    pub(super) fn input(&mut self, bytes: &[u8], jobs: &mut Jobs) -> Result<(), LinkError> {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.input.arrived(count)?;
        jobs.add_input(self.job, bytes);
        Ok(())
    }

    pub(super) fn input_ended(&mut self, jobs: &mut Jobs) {
        jobs.end_input(self.job);
    }

    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        jobs: &mut Jobs,
    ) -> Result<Filled, LinkError> {
        let consumed = jobs.consumed(self.job);
        let news = u32::try_from(consumed.saturating_sub(self.returned)).unwrap_or(0);
        self.returned = consumed;
        if let Some(credit) = self.input.consumed(news) {
            encode::credit(
                outgoing.control(),
                self.caller.stream,
                Channel::Stdin,
                credit,
            );
        }
        // Checked first, so that output which the job produced before it ended
        // is included below.
        let is_over = jobs.is_over(self.job);
        // A stream is polled again only when everything it added is written.
        let end = jobs.sent(self.job, self.sent);
        if self.is_cancelled {
            self.sent = end;
            jobs.sent(self.job, end);
        }
        let waiting = end.saturating_sub(self.sent);
        if waiting > 0 {
            return self.fill_data(outgoing, jobs, waiting);
        }
        if !is_over {
            return Ok(Filled::Nothing);
        }
        let stream = self.caller.stream;
        let close = |outcome: &Outcome<'_>| outgoing.close(stream, outcome);
        match jobs.finish(self.job, close) {
            Some(closed) => {
                closed?;
                Ok(Filled::Finished)
            }
            None => Ok(Filled::Nothing),
        }
    }

    fn fill_data(
        &mut self,
        outgoing: &mut Outgoing,
        jobs: &mut Jobs,
        waiting: u64,
    ) -> Result<Filled, LinkError> {
        let Some(output) = jobs.output(self.job) else {
            return Ok(Filled::Nothing);
        };
        let allowed = waiting.min(self.output.available().into());
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let piece = output.bytes_from(self.sent);
        let piece = piece.get(..allowed).unwrap_or(piece);
        let source = PayloadSource::Job(self.job);
        match outgoing.add_held(self.caller.stream, source, self.sent, piece)? {
            Added::Frame(count) => {
                self.output.take(u32::try_from(count).unwrap_or(u32::MAX));
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                self.sent = self.sent.saturating_add(count);
                Ok(Filled::Something)
            }
            Added::Nothing | Added::Later => Ok(Filled::Nothing),
        }
    }
}
