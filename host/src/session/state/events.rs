//! How events change the state of a stream.

use std::task::Waker;

use vmcell_wire::{
    Attached, Channel, WireError, limits::MAX_LISTED, service::ServiceState as WireState,
};

use super::Inner;
use crate::session::{
    ServiceState, Shared,
    event::{ListedProcess, StreamEvent},
    recovery::{AttachTarget, Recovery},
};

impl Inner {
    pub(super) fn started(&mut self, id: u32, pid: u32) -> Result<(), WireError> {
        let Recovery::Resume { start, .. } = &mut self.recovery else {
            return Err(WireError::Malformed);
        };
        if std::mem::replace(&mut self.started, true) {
            return Err(WireError::Malformed);
        }
        *start = None;
        self.events.push_back(StreamEvent::Started { id, pid });
        Ok(())
    }

    pub(super) fn listed(&mut self, entry: ListedProcess) -> Result<(), WireError> {
        let Recovery::RepeatList { last, count, .. } = &mut self.recovery else {
            return Err(WireError::Malformed);
        };
        *count += 1;
        if *count > MAX_LISTED {
            return Err(WireError::Malformed);
        }
        // They come in order. A repeated request lists some again.
        if entry.id > *last {
            *last = entry.id;
            self.events.push_back(StreamEvent::Listed(Box::new(entry)));
        }
        Ok(())
    }

    pub(super) fn listed_service(&mut self, state: &WireState<'_>) -> Result<(), WireError> {
        let Recovery::RepeatServices { last, count, .. } = &mut self.recovery else {
            return Err(WireError::Malformed);
        };
        *count += 1;
        if *count > MAX_LISTED {
            return Err(WireError::Malformed);
        }
        if state.name > last.as_str() {
            let state = ServiceState::from_wire(state)?;
            last.clone_from(&state.name);
            self.events.push_back(StreamEvent::Service(Box::new(state)));
        }
        Ok(())
    }

    pub(super) fn connected(&mut self) -> Result<(), WireError> {
        let first = !std::mem::replace(&mut self.started, true);
        if !first || !matches!(self.recovery, Recovery::FailDial) {
            return Err(WireError::Malformed);
        }
        self.events.push_back(StreamEvent::Connected);
        Ok(())
    }

    /// Handles the offset at which a log begins, or continues on a new link.
    fn attached_log(&mut self, attached: Attached, first: bool) -> Result<(), WireError> {
        if first {
            self.stdout.begin_at(attached.stdout)?;
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
        attached: Attached,
    ) -> Result<(), WireError> {
        let first = !std::mem::replace(&mut self.started, true);
        let resumed = std::mem::take(&mut self.resuming);
        match &mut self.recovery {
            Recovery::Reattach { target, .. } => {
                if first {
                    *target = AttachTarget::Id(attached.id);
                    self.stdout.begin_at(attached.stdout)?;
                    self.stderr.begin_at(attached.stderr)?;
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
            Recovery::Resume { start, .. } if resumed => {
                if first {
                    // The `Started` event was lost with the link.
                    let (id, pid) = (attached.id, attached.pid);
                    self.events.push_back(StreamEvent::Started { id, pid });
                }
                *start = None;
            }
            Recovery::ResumeLog { frame, .. } => {
                if first == frame.is_none() || !(first || resumed) {
                    return Err(WireError::Malformed);
                }
                *frame = None;
                return self.attached_log(attached, first);
            }
            _ => return Err(WireError::Malformed),
        }
        let stdout_continues = self.stdout.arrived() == attached.stdout || !self.outputs.stdout;
        let stderr_continues = self.stderr.arrived() == attached.stderr || !self.outputs.stderr;
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
