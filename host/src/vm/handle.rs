use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use vmcell_wire::Request;

use super::{End, Health, VmBuilder, VmState, driver::Order};
use crate::{
    acceleration::AccelerationChoice,
    console::Console,
    error::Error,
    process::{Command, ExecStream, Output},
    session::{Closing, Lost, OpenError, Session, StreamEvent},
    vmm::VmmKiller,
};
use std::ffi::OsString;

/// A running VM.
///
/// Handles are cheap to clone and all mean the same VM. When the last one is
/// dropped the VM is killed; when the program ends, in whatever way, the VM
/// ends with it. Either way nothing of it is left behind.
///
/// ```no_run
/// # async fn example() -> Result<(), vmcell::Error> {
/// use vmcell::Vm;
///
/// let vm = Vm::builder().image("base.ext4").start().await?;
/// let output = vm.exec(["uname", "-a"]).await?;
/// println!("{}", output.stdout_text());
/// vm.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Vm {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) id: String,
    pub(super) session: Arc<Session>,
    pub(super) orders: mpsc::UnboundedSender<Order>,
    pub(super) state: watch::Receiver<VmState>,
    pub(super) killer: VmmKiller,
    pub(super) backend: &'static str,
    pub(super) acceleration: AccelerationChoice,
    pub(super) console: Console,
}

impl Vm {
    /// How long [`health`](Self::health) waits for the agent.
    const PING_TIMEOUT: Duration = Duration::from_secs(2);

    /// Begins to describe a VM.
    pub fn builder() -> VmBuilder {
        VmBuilder::default()
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Names this VM among all others.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// What the VM is doing.
    pub fn state(&self) -> VmState {
        *self.shared.state.borrow()
    }

    /// The end of what the guest's kernel printed on its console, made safe to
    /// print.
    pub fn console(&self) -> String {
        self.shared.console.text()
    }

    /// Runs a program and collects what it prints. A nonzero exit code is a
    /// result, not an error.
    ///
    /// The program may take [`Command::DEFAULT_TIMEOUT`] and print
    /// [`Command::DEFAULT_MAX_OUTPUT`] bytes to each output; use
    /// [`exec_with`](Self::exec_with) to change that.
    ///
    /// # Errors
    /// [`Error::Exec`] if it could not be started, [`Error::ExecTimeout`] and
    /// [`Error::OutputLimit`] with what it had printed if it was ended for
    /// that, [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the program and all its descendants are ended.
    pub async fn exec(
        &self,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, Error> {
        self.exec_with(argv, |command| command).await
    }

    /// As [`exec`](Self::exec), with a command that you can change first.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let sorted = vm.exec_with(["sort"], |command| command.stdin("b\na\n")).await?;
    /// assert_eq!(sorted.stdout, b"a\nb\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`exec`](Self::exec).
    ///
    /// # Cancel safety
    /// See [`exec`](Self::exec).
    pub async fn exec_with(
        &self,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        change: impl FnOnce(Command) -> Command,
    ) -> Result<Output, Error> {
        self.exec_command(change(Command::from_argv(argv))).await
    }

    /// As [`exec`](Self::exec), for a command that is made already.
    ///
    /// # Errors
    /// See [`exec`](Self::exec).
    ///
    /// # Cancel safety
    /// See [`exec`](Self::exec).
    pub async fn exec_command(&self, command: Command) -> Result<Output, Error> {
        self.exec_stream(command)?.wait_with_output().await
    }

    /// Runs a program and tells what happens, event by event.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// use vmcell::{Command, ExecEvent};
    ///
    /// let mut events = vm.exec_stream(Command::new("make").arg("test"))?;
    /// while let Some(event) = events.next().await? {
    ///     if let ExecEvent::Stdout(bytes) = event {
    ///         println!("{} bytes", bytes.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The timeout of the command counts for
    /// [`wait_with_output`](ExecStream::wait_with_output) only: who looks at
    /// events can drop the stream to end the command.
    ///
    /// # Errors
    /// The command makes no sense, or the VM has ended. That it could not be
    /// started comes with the first event.
    pub fn exec_stream(&self, command: Command) -> Result<ExecStream, Error> {
        tracing::debug!(vm = self.id(), program = ?command.program(), "exec");
        let stream = command.with_request(|request| {
            self.shared
                .session
                .open(request)
                .map_err(|error| self.open_error(error))
        })?;
        Ok(ExecStream::new(stream, self.clone(), command))
    }

    /// Asks the agent for an answer and says how the VM is. It changes nothing
    /// in the guest, and is fast.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn health(&self) -> Health {
        let round_trip = timeout(Self::PING_TIMEOUT, self.ping()).await;
        Health {
            state: self.state(),
            round_trip: round_trip.ok().flatten(),
            backend: self.shared.backend,
            acceleration: self.shared.acceleration,
            agent: self.shared.session.peer().build.clone(),
        }
    }

    /// Stops the VM: its processes are asked to end, its disk is made clean.
    /// A guest that does not manage that in ten seconds is killed. Stopping a
    /// VM that has ended does nothing.
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended in another way than in order.
    ///
    /// # Cancel safety
    /// The VM stops even if the future is dropped, as long as there is a
    /// handle.
    pub async fn stop(&self) -> Result<(), Error> {
        match self.order(Order::Stop).await {
            End::Stopped | End::Killed => Ok(()),
            other => Err(Error::Gone(other)),
        }
    }

    /// Ends the VM at once and waits until it is gone. Killing a VM that has
    /// ended does nothing.
    ///
    /// # Cancel safety
    /// The VM ends even if the future is dropped.
    pub async fn kill(&self) {
        self.order(Order::Kill).await;
    }

    /// Waits until the VM has ended and says why.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn ended(&self) -> End {
        let mut state = self.shared.state.clone();
        let ended = state
            .wait_for(|state| matches!(state, VmState::Ended(_)))
            .await;
        match ended.as_deref() {
            Ok(VmState::Ended(end)) => *end,
            // The driver is gone with its runtime, and has killed the VMM.
            _ => End::Killed,
        }
    }

    /// The error that a lost link means to the caller: usually the VM is gone.
    pub(crate) async fn explain(&self, lost: Lost) -> Error {
        const PATIENCE: Duration = Duration::from_millis(500);
        match timeout(PATIENCE, self.ended()).await {
            Ok(end) if !matches!(lost, Lost::Violation(_)) => Error::Gone(end),
            _ => Error::Transport(lost.to_string()),
        }
    }

    async fn order(&self, order: Order) -> End {
        // It fails only if the driver has ended, and the VM with it.
        let _ = self.shared.orders.send(order);
        self.ended().await
    }

    async fn ping(&self) -> Option<Duration> {
        let asked = Instant::now();
        let mut stream = self.shared.session.open(&Request::Ping).ok()?;
        match stream.next().await {
            Ok(StreamEvent::Closed(Closing::Pong)) => Some(asked.elapsed()),
            _ => None,
        }
    }

    fn open_error(&self, error: OpenError) -> Error {
        match (error, self.state()) {
            (OpenError::TooLarge, _) => {
                Error::Invalid("arguments and environment are larger than 256 KiB".to_owned())
            }
            (OpenError::Unsupported, _) => {
                Error::Invalid("the agent is too old for this request".to_owned())
            }
            (OpenError::Full, _) => Error::Busy("too many commands run at once in this VM"),
            (_, VmState::Ended(end) | VmState::Killing(end)) => Error::Gone(end),
            (OpenError::Lost(lost @ Lost::Violation(_)), _) => Error::Transport(lost.to_string()),
            (OpenError::Lost(_), _) => Error::Gone(End::Died),
        }
    }
}

impl Drop for Shared {
    /// The driver would do it too, but only when its runtime gets to it.
    fn drop(&mut self) {
        self.killer.kill();
    }
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm")
            .field("id", &self.shared.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
