use vmcell_wire::{Attach, Request, Selector};

use super::{
    ExecFailure, ExecInput, ExecStream, Exit, Process, ProcessId, ProcessInfo, ProcessSelector,
    ReadFrom,
};
use crate::{
    error::Error,
    result_budget::ResultBudget,
    session::{Closing, Stream, StreamEvent},
    vm::Vm,
};

/// The processes of a VM: those that run, background ones that have ended and
/// are not forgotten, and commands that have ended and left processes behind.
#[derive(Clone, Copy, Debug)]
pub struct Processes<'a> {
    vm: &'a Vm,
}

impl<'a> Processes<'a> {
    pub(crate) fn new(vm: &'a Vm) -> Self {
        Self { vm }
    }

    /// The most processes that [`list`](Self::list) returns.
    pub const MAX_LISTED: usize = 65_536;

    /// The most memory that [`list`](Self::list) takes for them: 64 MiB.
    pub const MAX_LISTED_BYTES: usize = 64 << 20;

    /// All of them, in the order in which they were started: at most
    /// [65,536](Self::MAX_LISTED), and no more than fit into
    /// [64 MiB](Self::MAX_LISTED_BYTES).
    ///
    /// A command that has ended is among them as long as processes live that it
    /// left behind: [`ProcessInfo::left`] names them. (An agent of an older
    /// version does not tell of those.)
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if there are more, [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(self) -> Result<Vec<ProcessInfo>, Error> {
        let trees = self.list_by(|after| Request::ListTrees { after }).await;
        match trees {
            Err(Error::Unsupported { .. }) => self.list_by(|after| Request::List { after }).await,
            list => list,
        }
    }

    /// A list, page by page.
    pub(crate) async fn list_by(
        self,
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
                    StreamEvent::Listed(listed) if listed.id > after => {
                        let info = ProcessInfo::from_guest(*listed);
                        budget.add(info.memory())?;
                        list.push(info);
                    }
                    StreamEvent::Closed(Closing::EndOfList { more: false }) => return Ok(list),
                    StreamEvent::Closed(Closing::EndOfList { more: true })
                        if list.len() > before =>
                    {
                        break;
                    }
                    _ => return Err(Error::unexpected_reply()),
                }
            }
        }
    }

    /// A handle of the process with this name.
    ///
    /// # Errors
    /// [`Error::Exec`] of the kind
    /// [`NotFound`](crate::ExecFailureKind::NotFound) if there is none.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn find(self, process: impl Into<ProcessSelector>) -> Result<Process, Error> {
        let selector = process.into();
        let id = self.identify(&selector).await?;
        let list = self.list().await?;
        let found = list.into_iter().find(|info| info.id == id);
        let info = found.ok_or_else(|| ExecFailure::unknown(selector.to_string()))?;
        Ok(Process::new(self.vm.clone(), info.id, info.pid, info.tag))
    }

    /// Watches a process: every byte of its outputs from there on, and its end.
    /// Bytes that are not kept any more are told as a gap, never left out in
    /// silence. Any number of streams may watch one process.
    ///
    /// # Errors
    /// The VM ended. That there is no such process comes with the first event.
    pub fn attach(
        self,
        process: impl Into<ProcessSelector>,
        from: ReadFrom,
    ) -> Result<ExecStream, Error> {
        self.watch(&process.into(), Some(from), false)
    }

    /// As [`attach`](Self::attach), and feeds standard input from now on: see
    /// [`ExecStream::input`]. Whoever fed it before does so no more.
    ///
    /// # Errors
    /// See [`attach`](Self::attach).
    pub fn attach_with_input(
        self,
        process: impl Into<ProcessSelector>,
        from: ReadFrom,
    ) -> Result<ExecStream, Error> {
        self.watch(&process.into(), Some(from), true)
    }

    /// Sends a signal to a process and its group. Signal 0 only asks whether it
    /// runs.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process or signal, or it has ended.
    ///
    /// # Cancel safety
    /// The signal may or may not be sent if the future is dropped.
    pub async fn signal(
        self,
        process: impl Into<ProcessSelector>,
        signal: u8,
    ) -> Result<(), Error> {
        let selector = process.into();
        let process = selector.as_wire();
        self.done(&Request::Signal { process, signal }, &selector)
            .await
    }

    /// Ends a process and all its descendants, and waits until they are gone:
    /// [`Exit::tree_ended`] says whether that is proved, and what the proof covers.
    ///
    /// A command that has ended can be killed as long as processes live that it
    /// left behind: by its id, its tag (of several with the same tag, the newest
    /// is killed), or the pid of any of those processes. In each case all of them
    /// are ended.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process.
    ///
    /// # Cancel safety
    /// The process is ended even if the future is dropped.
    pub async fn kill(self, process: impl Into<ProcessSelector>) -> Result<Exit, Error> {
        let selector = process.into();
        let process = selector.as_wire();
        let mut stream = self.open(&Request::Kill { process })?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Exited(exit)) => Ok(Exit::from_wire(&exit)),
            event => Err(refusal(event, &selector)),
        }
    }

    /// Waits until a process has ended.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(self, process: impl Into<ProcessSelector>) -> Result<Exit, Error> {
        self.watch(&process.into(), None, false)?.end().await
    }

    /// Forgets a background process that has ended, its outputs included.
    ///
    /// # Errors
    /// [`Error::Exec`] if there is no such process, or it still runs.
    ///
    /// # Cancel safety
    /// It may or may not be forgotten if the future is dropped.
    pub async fn forget(self, process: impl Into<ProcessSelector>) -> Result<(), Error> {
        let selector = process.into();
        let process = selector.as_wire();
        self.done(&Request::Forget { process }, &selector).await
    }

    /// Writes `bytes` to the standard input of a process and ends it.
    pub(crate) fn feed(self, process: ProcessId, bytes: bytes::Bytes) -> Result<(), Error> {
        // Not an `ExecStream`: that would keep the VM alive.
        let stream = self.open_watch(&process.into(), None, true)?;
        tokio::spawn(async move {
            let input = ExecInput::new(stream.input());
            input.write(bytes).await;
            input.end();
        });
        Ok(())
    }

    /// What is known of one process.
    #[cfg(feature = "terminal")]
    pub(crate) async fn info(self, process: ProcessId) -> Result<ProcessInfo, Error> {
        let after = process.0.saturating_sub(1);
        let mut stream = self.open(&Request::List { after })?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Listed(listed) if listed.id == process.0 => {
                Ok(ProcessInfo::from_guest(*listed))
            }
            _ => Err(ExecFailure::unknown(ProcessSelector::from(process).to_string()).into()),
        }
    }

    pub(super) async fn detach(self, process: ProcessId) -> Result<(), Error> {
        let selector = process.into();
        let process = Selector::Id(process.0);
        self.done(&Request::Detach { process }, &selector).await
    }

    fn open_watch(
        self,
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
        self,
        selector: &ProcessSelector,
        from: Option<ReadFrom>,
        stdin: bool,
    ) -> Result<ExecStream, Error> {
        let stream = self.open_watch(selector, from, stdin)?;
        let vm = self.vm.clone();
        Ok(ExecStream::watching(stream, vm, selector.to_string()))
    }

    async fn identify(self, selector: &ProcessSelector) -> Result<ProcessId, Error> {
        let mut stream = self.watch(selector, None, false)?;
        let identified = stream.identified().await?;
        let (id, _) = identified.ok_or_else(|| ExecFailure::unknown(selector.to_string()))?;
        Ok(id)
    }

    async fn done(self, request: &Request<'_>, selector: &ProcessSelector) -> Result<(), Error> {
        let mut stream = self.open(request)?;
        match self.vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Done) => Ok(()),
            event => Err(refusal(event, selector)),
        }
    }

    fn open(self, request: &Request<'_>) -> Result<Stream, Error> {
        self.vm.open(request)
    }
}

fn refusal(event: StreamEvent, selector: &ProcessSelector) -> Error {
    match event {
        StreamEvent::Closed(Closing::Failed(failed)) => {
            ExecFailure::from_guest(failed, selector.to_string()).into()
        }
        _ => Error::unexpected_reply(),
    }
}
