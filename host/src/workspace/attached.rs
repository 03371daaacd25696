//! The VM of a workspace for the requests of a handle, which stays attached to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{self, Handle};

use super::{
    Workspace, WorkspaceState,
    handle::MUST_RUN,
    locked::Locked,
    record::{Record, RunRecord},
    specification::Specification,
};
use crate::{Vm, error::Error, on_thread::on_thread};

/// The VM that a handle and its clones are attached to. It is kept from one request to the
/// next, because attaching takes a fifth of the time of a short command.
///
/// What is written down decides whether it is used again, and not whether this program has
/// noticed its end already: it belongs to one run of the workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct AttachedVm(Arc<Mutex<Option<Attached>>>);

#[derive(Debug)]
struct Attached {
    vm: Vm,
    run: RunRecord,
    /// The runtime that serves the connection. It may stand still while another one runs.
    runtime: Option<runtime::Id>,
}

/// What to do with a workspace that is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenPaused {
    Start,
    Fail,
}

/// How far a request has come.
enum Beginning<B, T> {
    /// It has begun.
    Begun(Vm, T),
    /// The handle is not attached to the VM, if there is one.
    NotAttached {
        record: Box<Record>,
        state: WorkspaceState,
        begin: B,
    },
}

impl AttachedVm {
    /// Returns the VM of a run, if it can be used. Else it is given up.
    fn get(&self, run: &RunRecord) -> Option<Vm> {
        let is_usable =
            |it: &Attached| it.run == *run && it.runtime == this_runtime() && it.vm.has_link();
        let mut slot = self.lock();
        *slot = slot.take().filter(is_usable);
        slot.as_ref().map(|it| it.vm.clone())
    }

    fn put(&self, run: &RunRecord, vm: &Vm) {
        let attached = Attached {
            vm: vm.clone(),
            run: run.clone(),
            runtime: this_runtime(),
        };
        *self.lock() = Some(attached);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Attached>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn this_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Workspace {
    /// Returns its VM, for its processes, files, services, terminals and ports. Counts as a
    /// use of it.
    ///
    /// The handle of the workspace and its clones stay attached to the VM, which costs two
    /// sockets and nothing else: it is paused when nobody uses it, and ends, as if there
    /// were no handle. Ports that are published with the VM stay open as long as one of
    /// them is there.
    ///
    /// ```no_run
    /// # async fn example(workspace: vmcell::workspace::Workspace) -> Result<(), vmcell::Error> {
    /// let vm = workspace.vm().await?;
    /// let text = vm.files().read("/workspace/README.md").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkspaceError::State`](super::WorkspaceError::State) if it does not run,
    /// [`WorkspaceError::NotFound`](super::WorkspaceError::NotFound).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn vm(&self) -> Result<Vm, Error> {
        let (vm, ()) = self.use_vm(WhenPaused::Fail, |_| Ok(())).await?;
        Ok(vm)
    }

    /// Records a use of it. Returns its VM, and the result of `begin`, which may block and
    /// is called when there is a VM.
    pub(super) async fn use_vm<T: Send + 'static>(
        &self,
        when_paused: WhenPaused,
        begin: impl FnOnce(&Specification) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Vm, T), Error> {
        let this = self.clone();
        // All of it at once, because a change of the thread takes as long as the rest.
        let beginning = on_thread("read the workspace", move || {
            let (record, vm) = this.touch_and_read()?;
            Ok(match vm {
                Some(vm) => Beginning::Begun(vm, begin(&record.specification)?),
                None => Beginning::NotAttached {
                    state: this.folder().state(&record),
                    record: Box::new(record),
                    begin,
                },
            })
        });
        let (record, state, begin) = match beginning.await? {
            Beginning::Begun(vm, begun) => return Ok((vm, begun)),
            Beginning::NotAttached {
                record,
                state,
                begin,
            } => (record, state, begin),
        };
        let vm = self.find_vm(&record, state, when_paused).await?;
        let begun = on_thread("use the workspace", move || begin(&record.specification));
        Ok((vm, begun.await?))
    }

    /// Records a use of it, if it runs. Returns what is written down, and its VM, if this
    /// handle is attached to it.
    fn touch_and_read(&self) -> Result<(Record, Option<Vm>), Error> {
        let folder = self.folder();
        let is_owned = folder.is_owned();
        if is_owned {
            // First: whoever pauses it for want of use looks at this last.
            folder.touch();
        }
        let record = folder.read()?.ok_or_else(|| self.not_found())?;
        let run = record.run.as_ref().filter(|_| is_owned);
        let vm = run.and_then(|run| self.attached_vm().get(run));
        Ok((record, vm))
    }

    async fn find_vm(
        &self,
        record: &Record,
        mut state: WorkspaceState,
        when_paused: WhenPaused,
    ) -> Result<Vm, Error> {
        if state == WorkspaceState::Running {
            if !record.is_about_to_end()
                && let Some(vm) = self.attach().await?
            {
                return Ok(self.keep_attached(record, vm));
            }
            // Somebody was about to start it, to pause it or to end it, or has died.
            let mut locked = self.lock().await?;
            if let Some(vm) = self.running_vm(&mut locked).await? {
                return Ok(vm);
            }
            state = locked.state();
        }
        match (state, when_paused) {
            (WorkspaceState::Paused, WhenPaused::Start) => self.start().await,
            (state, _) => Err(self.wrong_state(state, MUST_RUN).into()),
        }
    }

    /// Returns its VM if it runs. If that has just ended, the workspace does not run any more.
    pub(super) async fn running_vm(&self, locked: &mut Locked) -> Result<Option<Vm>, Error> {
        if locked.state() != WorkspaceState::Running {
            return Ok(None);
        }
        // The owner knows first: this handle may not have noticed the end of its VM.
        let Some(vm) = self.attach().await? else {
            locked.take_over().await?;
            return Ok(None);
        };
        Ok(Some(self.keep_attached(&locked.record, vm)))
    }

    /// Returns the VM to which this handle is attached already, because it may have ports, or
    /// else stays attached to this one.
    fn keep_attached(&self, record: &Record, vm: Vm) -> Vm {
        let kept = self.attached_vm();
        let Some(run) = &record.run else {
            return vm;
        };
        kept.get(run).unwrap_or_else(|| {
            kept.put(run, &vm);
            vm
        })
    }
}
