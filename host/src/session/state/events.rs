//! How events change the state of a stream.

use std::task::Waker;

use vmcell_wire::{Attached, Channel, StartEvent, WireError, limits::MAX_LISTED};

use super::Inner;
use crate::session::{
    Shared,
    event::{Listed, StreamEvent},
    reopening::{AttachTarget, ListKey, Reopening},
};

impl Inner {
    pub(super) fn started(&mut self, id: u32, pid: u32) -> Result<(), WireError> {
        let Reopening::Resume { start, .. } = &mut self.reopening else {
            return Err(WireError::Malformed);
        };
        if std::mem::replace(&mut self.started, true) {
            return Err(WireError::Malformed);
        }
        *start = None;
        self.events.push_back(StreamEvent::Started { id, pid });
        Ok(())
    }

    /// Adds an entry of a list.
    pub(super) fn listed(&mut self, key: ListKey, entry: Listed) -> Result<(), WireError> {
        let Reopening::RepeatList { last, count, .. } = &mut self.reopening else {
            return Err(WireError::Malformed);
        };
        *count += 1;
        if *count > MAX_LISTED {
            return Err(WireError::Malformed);
        }
        // They come in order. A repeated request lists some again.
        if key.is_after(last).ok_or(WireError::Malformed)? {
            *last = key;
            self.events.push_back(StreamEvent::Listed(entry));
        }
        Ok(())
    }

    pub(super) fn connected(&mut self) -> Result<(), WireError> {
        let first = !std::mem::replace(&mut self.started, true);
        if !first || self.start_event != StartEvent::Connected {
            return Err(WireError::Malformed);
        }
        self.events.push_back(StreamEvent::Connected);
        Ok(())
    }

    /// Handles the offset at which a log begins, or continues on a new link.
    fn attached_log(&mut self, mut attached: Attached, first: bool) -> Result<(), WireError> {
        if first {
            attached.stdout = self.stdout.begin_at(attached.stdout)?;
            self.events.push_back(StreamEvent::Attached(attached));
            return Ok(());
        }
        // The oldest bytes may have been dropped while there was no link.
        match attached.stdout.checked_sub(self.stdout.arrived()) {
            None => Err(WireError::Malformed),
            Some(0) => Ok(()),
            Some(dropped) => {
                self.stdout.gap(dropped)?;
                self.wakers.wake_output(Channel::Stdout);
                Ok(())
            }
        }
    }

    pub(super) fn attached(
        &mut self,
        shared: &Shared,
        mut attached: Attached,
    ) -> Result<(), WireError> {
        let first = !std::mem::replace(&mut self.started, true);
        let resumed = std::mem::take(&mut self.resuming);
        match &mut self.reopening {
            Reopening::Reattach { target, .. } => {
                if first {
                    *target = AttachTarget::Id(attached.id);
                    attached.stdout = self.stdout.begin_at(attached.stdout)?;
                    attached.stderr = self.stderr.begin_at(attached.stderr)?;
                    let stdin = attached.stdin;
                    self.events.push_back(StreamEvent::Attached(attached));
                    match stdin {
                        Some(position) => {
                            self.stdin.begin_at(position)?;
                            if resumed {
                                // It may have ended on a link that is gone.
                                self.resend_input(shared);
                            }
                        }
                        None => self.stdin.end(),
                    }
                    self.wakers.stdin.drain(..).for_each(Waker::wake);
                    return Ok(());
                }
            }
            Reopening::Resume { start, .. } if resumed => {
                if first {
                    // The `Started` event was lost with the link.
                    let (id, pid) = (attached.id, attached.pid);
                    self.events.push_back(StreamEvent::Started { id, pid });
                }
                *start = None;
            }
            Reopening::ResumeLog { frame, .. } => {
                if first == frame.is_none() || !(first || resumed) {
                    return Err(WireError::Malformed);
                }
                *frame = None;
                return self.attached_log(attached, first);
            }
            _ => return Err(WireError::Malformed),
        }
        let stdout_continues =
            self.stdout.arrived() == attached.stdout || self.outputs.stdout.is_none();
        let stderr_continues =
            self.stderr.arrived() == attached.stderr || self.outputs.stderr.is_none();
        if !resumed || !stdout_continues || !stderr_continues {
            return Err(WireError::Malformed);
        }
        match attached.stdin {
            Some(position) => {
                self.stdin.resume(position)?;
                self.resend_input(shared);
            }
            // The process reads no more.
            None => {
                self.stdin.end();
                self.wakers.stdin.drain(..).for_each(Waker::wake);
            }
        }
        Ok(())
    }
}
