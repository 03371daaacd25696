use vmcell_wire::{
    Attach, Outcome, Position, ProcessMode, Request, Selector,
    terminal::{AttachTerminal, OpenTerminal, Size, TerminalRequest},
};

use super::{Terminal, TerminalOptions, Unread, handle::Connection};
use crate::{
    error::Error,
    process::{ExecFailure, ExecFailureKind, ProcessId, ProcessInfo, ProcessSelector},
    random::random_bytes,
    session::{StreamEvent, WINDOW},
    vm::Vm,
};

/// The terminals of a VM.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
/// use vmcell::terminal::{Status, TerminalOptions};
///
/// let terminal = vm.terminals().open(TerminalOptions::new().tag("work")).await?;
/// let reply = terminal.run("cd /tmp && pwd").await?;
/// assert_eq!(reply.status, Status::Ready);
/// println!("{}", reply.text);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Terminals {
    vm: Vm,
}

impl Terminals {
    pub(crate) fn new(vm: Vm) -> Self {
        Self { vm }
    }

    /// Starts a program on a new terminal. It keeps running when nobody is
    /// attached, and is listed until it is [removed](Terminal::forget).
    ///
    /// # Errors
    /// [`Error::Exec`] if it could not be started, or the tag is in use;
    /// [`Error::Host`] if the records cannot be written; [`Error::Gone`] if the
    /// VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the program may or may not run.
    pub async fn open(&self, options: TerminalOptions) -> Result<Terminal, Error> {
        let command = &options.command;
        let (mut stream, tag) = command.with_start(ProcessMode::Background, |start| {
            let open = OpenTerminal {
                start,
                size: wire_size(options.size),
                unread: match options.unread {
                    Unread::Dropped => vmcell_wire::terminal::UnreadOutput::DropOldest,
                    Unread::Kept => vmcell_wire::terminal::UnreadOutput::Block,
                },
            };
            self.vm
                .open(&Request::Terminal(TerminalRequest::Open(open)))
        })?;
        let id = match self.vm.outcome(&mut stream).await?.outcome() {
            Outcome::Spawned { id, .. } => id,
            other => {
                let subject = format!("{:?} did not start", command.program());
                return Err(ExecFailure::refusal(&other, subject));
            }
        };
        let opened = self.connect(Selector::Id(id), &tag, options, true).await;
        if opened.is_err() {
            // The caller gets no handle, so remove the process.
            let processes = self.vm.processes();
            let _ = processes.kill(ProcessId(id)).await;
            let _ = processes.forget(ProcessId(id)).await;
        }
        opened
    }

    /// Attaches to a terminal that this or another program opened, and reads from
    /// the oldest byte that the guest has kept.
    ///
    /// # Errors
    /// [`Error::Exec`] of the kind
    /// [`NotFound`](crate::ExecFailureKind::NotFound) if there is none.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn attach(&self, terminal: impl Into<ProcessSelector>) -> Result<Terminal, Error> {
        self.attach_with(terminal, TerminalOptions::new()).await
    }

    /// Like [`attach`](Self::attach), with those options that control how this
    /// program reads the terminal. If this program has a handle already, the
    /// options are ignored, and another handle of the same terminal is returned.
    ///
    /// # Errors
    /// See [`attach`](Self::attach).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn attach_with(
        &self,
        terminal: impl Into<ProcessSelector>,
        options: TerminalOptions,
    ) -> Result<Terminal, Error> {
        let selector = terminal.into();
        self.connect(selector.as_wire(), &selector.to_string(), options, false)
            .await
    }

    /// Returns a terminal, or `None` if there is no such terminal. Never opens
    /// one.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(
        &self,
        terminal: impl Into<ProcessSelector>,
    ) -> Result<Option<Terminal>, Error> {
        ExecFailure::found(self.attach(terminal).await)
    }

    /// Returns the terminal with this tag, and opens it if there is none. One that
    /// has ended is returned too: it is not restarted unless it was
    /// [removed](Terminal::forget).
    ///
    /// # Errors
    /// See [`open`](Self::open).
    ///
    /// # Cancel safety
    /// If the future is dropped, the program may or may not run.
    pub async fn session(&self, tag: &str, options: TerminalOptions) -> Result<Terminal, Error> {
        let attached = self.attach_with(tag, options.clone()).await;
        if let Some(terminal) = ExecFailure::found(attached)? {
            return Ok(terminal);
        }
        match self.open(options.clone().tag(tag)).await {
            // Another program has opened it meanwhile.
            Err(Error::Exec(failure)) if failure.kind == ExecFailureKind::Conflict => {
                self.attach_with(tag, options).await
            }
            opened => opened,
        }
    }

    /// Lists all terminals in the order in which they were opened, including those
    /// that have ended. The limits are those of
    /// [`Processes::list`](crate::Processes::list).
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if there are more, [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(&self) -> Result<Vec<ProcessInfo>, Error> {
        let list = self.vm.processes();
        list.list_by(|after| Request::Terminal(TerminalRequest::List { after }))
            .await
    }

    async fn connect(
        &self,
        process: Selector<'_>,
        subject: &str,
        options: TerminalOptions,
        newly_opened: bool,
    ) -> Result<Terminal, Error> {
        let writer = u64::from_le_bytes(random_bytes()?);
        let output = Position {
            offset: 0,
            window: WINDOW,
        };
        let request = match options.view_only {
            false => Request::Terminal(TerminalRequest::Attach(AttachTerminal {
                process,
                output,
                writer,
            })),
            true => Request::Attach(Attach {
                process,
                stdout: Some(output),
                stderr: None,
                stdin: false,
            }),
        };
        let mut stream = self.vm.open(&request)?;
        let attached = match self.vm.explained(stream.next_except_output().await).await? {
            StreamEvent::Attached(attached) => attached,
            StreamEvent::Closed(closing) => {
                return Err(ExecFailure::refusal(&closing.outcome(), subject.to_owned()));
            }
            _ => return Err(Error::unexpected_reply()),
        };
        let known = self.vm.known_terminals();
        let view_only = options.view_only;
        if let Some(terminal) = known.get(attached.id).filter(|_| !view_only) {
            return Ok(terminal);
        }
        let connection = Connection {
            vm: self.vm.clone(),
            stream,
            attached,
            writer,
            newly_opened,
        };
        let terminal = Terminal::start(connection, options).await?;
        Ok(match view_only {
            // Not shared with later callers, who may want to type.
            true => terminal,
            false => known.add(attached.id, terminal),
        })
    }
}

pub(super) fn wire_size(size: super::TerminalSize) -> Size {
    Size {
        columns: size.columns,
        rows: size.rows,
    }
}
