use vmcell_wire::{Attach, Outcome, Request, Selector};

use super::{
    ExecFailure, ExecInput, ExecStream, Exit, Process, ProcessId, ProcessInfo, ProcessSelector,
    ReadFrom, Signal,
};
use crate::{
    error::Error,
    result_budget::ResultBudget,
    session::{Stream, StreamEvent},
    vm::Vm,
};

/// The processes of a VM: running ones, background ones that have ended and are
/// not forgotten, and commands that have ended while descendants of theirs
/// still run.
#[derive(Clone, Debug)]
pub struct Processes {
    vm: Vm,
}

impl Processes {
    pub(crate) fn new(vm: Vm) -> Self {
        Self { vm }
    }

    /// The most processes that [`list`](Self::list) returns.
    pub const MAX_LISTED: usize = 65_536;

    /// The most memory that [`list`](Self::list) uses for them: 64 MiB.
    pub const MAX_LISTED_BYTES: usize = 64 << 20;

    /// Lists all processes, in the order in which they were started: at most
    /// [65,536](Self::MAX_LISTED), and no more than fit into [64
    /// MiB](Self::MAX_LISTED_BYTES).
    ///
    /// A command that has ended is listed as long as descendants of it still
    /// run: [`ProcessInfo::left`] lists them. (Older agents do not report
    /// those.)
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if there are more, [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self) -> Result<Vec<ProcessInfo>, Error> {
        let trees = self.list_by(|after| Request::ListTrees { after }).await;
        match trees {
            Err(Error::Unsupported { .. }) => self.list_by(|after| Request::List { after }).await,
            list => list,
        }
    }

    /// Lists processes, page by page.
    pub(crate) async fn list_by(
        &self,
        page: impl Fn(u32) -> Request<'static>,
    ) -> Result<Vec<ProcessInfo>, Error> {
        let mut list: Vec<ProcessInfo> = Vec::new();
        let mut budget = ResultBudget::new(
            "the list of processes",
            Self::MAX_LISTED,
            Self::MAX_LISTED_BYTES,
            "name a process by its tag or number",
        );
        loop {
            let after = list.last().map_or(0, |last| last.id.0);
            let mut stream = self.open(&page(after))?;
            let before = list.len();
            loop {
                match self.vm.explained(stream.next().await).await? {
                    StreamEvent::Listed(entry) => {
                        let info = ProcessInfo::from_wire(&entry.event());
                        let info = info.ok_or_else(Error::unexpected_reply)?;
                        budget.add(info.memory())?;
                        list.push(info);
                    }
                    StreamEvent::Closed(closing) => match closing.outcome() {
                        Outcome::EndOfList { more: false } => return Ok(list),
                        Outcome::EndOfList { more: true } if list.len() > before => break,
                        _ => return Err(Error::unexpected_reply()),
                    },
                    _ => return Err(Error::unexpected_reply()),
                }
            }
        }
    }

    /// Returns a handle of a process, or `None` if there is no such process.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(&self, process: impl Into<ProcessSelector>) -> Result<Option<Process>, Error> {
        let Some(id) = ExecFailure::found(self.identify(&process.into()).await)? else {
            return Ok(None);
        };
        let list = self.list().await?;
        let info = list.into_iter().find(|info| info.id == id);
        let vm = self.vm.clone();
        Ok(info.map(|info| Process::new(vm, info.id, info.pid, info.tag)))
    }

    /// Attaches to a process: returns a stream of its outputs from the given
    /// position, and of its exit. Bytes that are no longer kept are reported as
    /// a gap, never omitted silently. Any number of streams may be attached to
    /// one process.
    ///
    /// # Errors
    /// Fails if the VM ended. If there is no such process, the first event
    /// fails.
    pub fn attach(
        &self,
        process: impl Into<ProcessSelector>,
        from: ReadFrom,
    ) -> Result<ExecStream, Error> {
        self.watch(&process.into(), Some(from), false)
    }

    /// Same as [`attach`](Self::attach), and takes over standard input: see
    /// [`ExecStream::input`]. A stream that wrote to it before no longer does.
    ///
    /// # Errors
    /// See [`attach`](Self::attach).
    pub fn attach_with_input(
        &self,
        process: impl Into<ProcessSelector>,
        from: ReadFrom,
    ) -> Result<ExecStream, Error> {
        self.watch(&process.into(), Some(from), true)
    }

    /// Sends a signal to a process and its group. [`Signal::NULL`] only checks
    /// that it runs.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process or signal, or it has ended.
    ///
    /// # Cancel safety
    /// The signal may or may not be sent if the future is dropped.
    pub async fn signal(
        &self,
        process: impl Into<ProcessSelector>,
        signal: Signal,
    ) -> Result<(), Error> {
        let selector = process.into();
        let request = Request::Signal {
            process: selector.as_wire(),
            signal: signal.number(),
        };
        self.confirm(&request, &selector).await
    }

    /// Kills a process and all its descendants, and waits until they are gone.
    /// [`Exit::tree_ended`] reports whether that is certain, and what that
    /// covers.
    ///
    /// A command that has ended can be killed as long as descendants of it
    /// still run: by its id, its tag (of several with the same tag, the newest
    /// is killed), or the pid of any of those descendants. In each case all of
    /// them are killed.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process.
    ///
    /// # Cancel safety
    /// The process is killed even if the future is dropped.
    pub async fn kill(&self, process: impl Into<ProcessSelector>) -> Result<Exit, Error> {
        let selector = process.into();
        let process = selector.as_wire();
        match self.vm.request(&Request::Kill { process }).await?.outcome() {
            Outcome::Exited(exit) => Ok(Exit::from_wire(&exit)),
            other => Err(ExecFailure::refusal(&other, selector.to_string())),
        }
    }

    /// Waits until a process has ended.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self, process: impl Into<ProcessSelector>) -> Result<Exit, Error> {
        self.watch(&process.into(), None, false)?.end().await
    }

    /// Forgets a background process that has ended, its outputs included.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process, or it still runs.
    ///
    /// # Cancel safety
    /// It may or may not be forgotten if the future is dropped.
    pub async fn forget(&self, process: impl Into<ProcessSelector>) -> Result<(), Error> {
        let selector = process.into();
        let process = selector.as_wire();
        self.confirm(&Request::Forget { process }, &selector).await
    }

    /// Writes `bytes` to the standard input of a process and closes it.
    pub(crate) fn feed(&self, process: ProcessId, bytes: bytes::Bytes) -> Result<(), Error> {
        // Not an `ExecStream`: that would keep the VM alive.
        let stream = self.open_attach(&process.into(), None, true)?;
        tokio::spawn(async move {
            let input = ExecInput::new(stream.input());
            input.write(bytes).await;
            input.end();
        });
        Ok(())
    }

    /// Returns information on one process.
    #[cfg(feature = "terminal")]
    pub(crate) async fn info(&self, process: ProcessId) -> Result<ProcessInfo, Error> {
        let after = process.0.saturating_sub(1);
        let mut stream = self.open(&Request::List { after })?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Listed(entry) => ProcessInfo::from_wire(&entry.event()),
            _ => None,
        }
        .filter(|info| info.id == process)
        .ok_or_else(|| ExecFailure::not_found(&process.into()).into())
    }

    pub(super) async fn detach(&self, process: ProcessId) -> Result<(), Error> {
        let selector = process.into();
        let process = Selector::Id(process.0);
        self.confirm(&Request::Detach { process }, &selector).await
    }

    fn open_attach(
        &self,
        selector: &ProcessSelector,
        from: Option<ReadFrom>,
        stdin: bool,
    ) -> Result<Stream, Error> {
        let positions = from.map(ReadFrom::positions);
        self.open(&Request::Attach(Attach {
            process: selector.as_wire(),
            stdout: positions.map(|[stdout, _]| stdout),
            stderr: positions.map(|[_, stderr]| stderr),
            stdin,
        }))
    }

    fn watch(
        &self,
        selector: &ProcessSelector,
        from: Option<ReadFrom>,
        stdin: bool,
    ) -> Result<ExecStream, Error> {
        let stream = self.open_attach(selector, from, stdin)?;
        let vm = self.vm.clone();
        Ok(ExecStream::watching(stream, vm, selector.to_string()))
    }

    async fn identify(&self, selector: &ProcessSelector) -> Result<ProcessId, Error> {
        let mut stream = self.watch(selector, None, false)?;
        let identified = stream.wait_started().await?;
        let (id, _) = identified.ok_or_else(|| ExecFailure::not_found(selector))?;
        Ok(id)
    }

    async fn confirm(
        &self,
        request: &Request<'_>,
        selector: &ProcessSelector,
    ) -> Result<(), Error> {
        match self.vm.request(request).await?.outcome() {
            Outcome::Done => Ok(()),
            other => Err(ExecFailure::refusal(&other, selector.to_string())),
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Stream, Error> {
        self.vm.open(request)
    }
}
