use alloc::{boxed::Box, vec, vec::Vec};
use core::time::Duration;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::OFlags,
    io::Errno,
    net::{SocketFlags, accept_with},
    process::Pid,
};
use vmcell_wire::Outcome;

use crate::{
    child_exit::{ChildExit, ResourceUsage},
    clock::Moment,
    diagnostic::Diagnostic,
    event::{Batch, Event, Poller},
    ids::{Caller, LinkId},
    kernel_error::KernelError,
    link::{Link, LinkError, LinkSession, Medium, Received, Turn, is_from_host},
    power::{PowerControl, PowerOff},
    process::Processes,
    snapshot::IdentityControl,
    sys::vsock_peer,
    tasks::Tasks,
    write_back::WriteBack,
};

/// Whether the agent goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The agent serves hosts.
    Serving,
    /// A host has requested a power-off, all processes have ended, and the host
    /// knows whether the disk is clean. The program switches the machine off now,
    /// or ends.
    PoweredOff,
}

/// What an [`Agent`] is made of.
pub(crate) struct AgentParts {
    pub(crate) poller: Poller,
    pub(crate) processes: Processes,
    pub(crate) boot_id: [u8; 16],
    pub(crate) has_clock: bool,
    pub(crate) has_network: bool,
    pub(crate) power_control: Option<Box<dyn PowerControl>>,
    pub(crate) identity_control: Option<Box<dyn IdentityControl>>,
    pub(crate) write_back: bool,
    pub(crate) on_diagnostic: Option<DiagnosticHandler>,
}

/// What the program does with a [`Diagnostic`].
pub(crate) type DiagnosticHandler = Box<dyn FnMut(&Diagnostic)>;

/// The agent: owns every link and every process.
///
/// The program that runs it calls [`turn`](Self::turn) whenever its descriptor
/// ([`AsFd`]) is readable or its [`timeout`](Self::timeout) is over. Dropping it
/// kills its processes and reaps none: see [`kill_all`](Self::kill_all).
pub struct Agent {
    pub(crate) poller: Poller,
    pub(crate) tasks: Tasks,
    pub(crate) power: Option<PowerOff>,
    /// `None`: power-off requests are rejected.
    pub(crate) power_control: Option<Box<dyn PowerControl>>,
    /// `None`: requests for snapshots are rejected.
    pub(crate) identity_control: Option<Box<dyn IdentityControl>>,
    pub(crate) boot_id: [u8; 16],
    pub(crate) has_clock: bool,
    pub(crate) has_network: bool,
    listener: Option<OwnedFd>,
    /// When to retry `accept` after it ran out of descriptors. Edge-triggered
    /// epoll does not report those connections a second time.
    accept_retry_at: Option<Moment>,
    /// Indexed by link id.
    links: Vec<Option<Link>>,
    /// Links to serve again before the agent sleeps.
    links_to_serve: Vec<LinkId>,
    /// When deferred frames are to be written.
    flush_at: Option<Moment>,
    /// When low-priority work may begin; `None` before the first hello.
    idle_work_at: Option<Moment>,
    batch: Batch,
    buffer: Box<[u8]>,
    on_diagnostic: Option<DiagnosticHandler>,
}

/// The size of the receive buffer. A virtio-serial port returns at most a page
/// per read.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// How long a deferrable frame waits for another one to share its write.
const FLUSH_DELAY_MS: u64 = 2;

/// How long after the first hello the agent holds back low-priority work, so
/// that the host's first command does not compete with it. Under emulation a
/// first command takes 0.1 s.
const IDLE_WORK_DELAY_MS: u64 = 250;

/// How long to wait before `accept` is retried after it ran out of descriptors.
/// The agent also retries whenever it has handled an event.
const ACCEPT_RETRY_MS: u64 = 100;

/// The longest sleep. A deadline may exceed what the kernel accepts, and an
/// early wake-up does no harm.
const LONGEST_SLEEP_NS: u64 = 3600 * 1_000_000_000;

/// The maximum number of links. Further connections are rejected.
const MAX_LINKS: usize = 64;

impl Agent {
    /// Creates an agent without links.
    pub(crate) fn new(parts: AgentParts) -> Self {
        Self {
            poller: parts.poller,
            tasks: Tasks::new(parts.processes, WriteBack::new(parts.write_back)),
            power: None,
            power_control: parts.power_control,
            identity_control: parts.identity_control,
            boot_id: parts.boot_id,
            has_clock: parts.has_clock,
            has_network: parts.has_network,
            listener: None,
            accept_retry_at: None,
            links: Vec::new(),
            links_to_serve: Vec::new(),
            flush_at: None,
            idle_work_at: None,
            batch: Batch::new(),
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            on_diagnostic: parts.on_diagnostic,
        }
    }

    /// Does everything that can be done now, within bounds, and never blocks.
    /// There may be more to do: then [`timeout`](Self::timeout) is zero.
    ///
    /// # Errors
    /// The kernel does not report events. The agent cannot recover from that.
    pub fn turn(&mut self) -> Result<Progress, KernelError> {
        let mut batch = core::mem::take(&mut self.batch);
        let polled = self.poller.poll(&mut batch);
        for event in batch.events() {
            self.handle(event);
        }
        self.batch = batch;
        polled?;
        for pid in self.poller.retry_children() {
            self.child_lost(pid);
        }
        self.tasks.processes.settle_ended();
        self.tasks.processes.expire(&self.poller);
        self.tasks.processes.run_queued();
        self.tasks.freezer.expire();
        #[cfg(feature = "services")]
        self.tasks.supervise_services(&self.poller);
        #[cfg(feature = "network")]
        self.tasks.advance_network(&self.poller);
        while let Some(id) = self.tasks.next_link_to_serve() {
            self.serve_soon(id);
        }
        for id in core::mem::take(&mut self.links_to_serve) {
            self.serve(id);
        }
        #[cfg(feature = "network")]
        for report in self.tasks.network.take_reports() {
            self.report(report);
        }
        self.tasks.jobs.notify_workers();
        self.tasks.write_back.start_if_due(&self.poller);
        self.flush_deferred();
        if self.accept_retry_at.is_some() {
            self.accept();
        }
        if self.advance_power_off() {
            return Ok(Progress::PoweredOff);
        }
        if !self.has_work() && self.idle_work_at.is_some_and(|from| from <= Moment::now()) {
            self.tasks.processes.prepare();
        }
        self.tasks.processes.watch_full_terminals(&self.poller);
        Ok(Progress::Serving)
    }

    /// Returns how long the program may sleep before the next
    /// [`turn`](Self::turn), if the descriptor does not become readable. `None`:
    /// until then. It is out of date after any other call to the agent.
    pub fn timeout(&self) -> Option<Duration> {
        let deadline = self.wake_up()?;
        let nanoseconds = deadline.nanoseconds_since(Moment::now());
        Some(Duration::from_nanos(nanoseconds.min(LONGEST_SLEEP_NS)))
    }

    /// Takes a child that the program has reaped. Returns whether it was a child
    /// of the agent.
    ///
    /// With [`Reaping::HandedOver`](crate::Reaping::HandedOver), every child that
    /// the program has reaped is to be passed here before the next
    /// [`turn`](Self::turn). Others than the agent's may have been orphaned by its
    /// processes. A child that was only stopped or continued is ignored.
    pub fn child_ended(&mut self, exit: &ChildExit) -> bool {
        let Some(reaped) = exit.reaped() else {
            return false;
        };
        let is_own = self.poller.remove_child(reaped.pid);
        match is_own {
            true => self.tasks.reaped(reaped),
            false => self.tasks.orphan_reaped(),
        }
        is_own
    }

    /// Adds a connected stream socket to a host. The host has full control over
    /// the agent: whether the peer is one is for the program to decide.
    ///
    /// # Errors
    /// `EMFILE` if there are too many links, or the socket cannot be watched.
    pub fn add_socket(&mut self, socket: OwnedFd) -> Result<(), KernelError> {
        Ok(self.add_nonblocking(socket, Medium::Socket)?)
    }

    /// Adds an open virtio-serial port. A host begins a new session on it with a
    /// reset, which it authenticates with this key.
    ///
    /// # Errors
    /// `EMFILE` if there are too many links, or the port cannot be watched.
    pub fn add_port(&mut self, port: OwnedFd, reset_key: [u8; 16]) -> Result<(), KernelError> {
        Ok(self.add_nonblocking(port, Medium::Port { key: reset_key })?)
    }

    /// Adds a link, and makes its descriptor non-blocking.
    pub(crate) fn add_nonblocking(
        &mut self,
        descriptor: OwnedFd,
        medium: Medium,
    ) -> Result<(), Errno> {
        set_nonblocking(&descriptor)?;
        self.add_link(descriptor, medium)
    }

    /// Sets the listening socket on which hosts connect, in place of the one
    /// before.
    pub(crate) fn listen(&mut self, listener: OwnedFd) -> Result<(), Errno> {
        set_nonblocking(&listener)?;
        self.poller.watch(&listener, Event::Listener)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Returns whether the agent has children that are not reaped yet: programs,
    /// or processes that it has forked for its own work.
    pub fn has_children(&self) -> bool {
        self.poller.has_children()
    }

    /// Returns whether a host has requested a power-off that is not complete.
    pub fn is_powering_off(&self) -> bool {
        self.power.is_some()
    }

    /// Kills all children of the agent, with their descendants as far as they are
    /// in cgroups. A program that goes on continues to take turns while there are
    /// [children](Self::has_children).
    pub fn kill_all(&mut self) {
        self.tasks.processes.kill_all();
        self.poller.kill_children();
    }

    /// Records the first hello. Low-priority work begins [`IDLE_WORK_DELAY_MS`]
    /// later, when the host's first command has probably finished.
    pub(crate) fn on_first_hello(&mut self) {
        if self.idle_work_at.is_none() {
            let idle_work_at = Moment::now().after_ms(IDLE_WORK_DELAY_MS);
            self.idle_work_at = Some(idle_work_at);
            self.tasks.write_back.begin_at(idle_work_at);
        }
    }

    /// Returns whether there is work to do without waiting for an event.
    fn has_work(&self) -> bool {
        !self.links_to_serve.is_empty() || self.tasks.is_busy() || self.tasks.has_links_to_serve()
    }

    /// Returns when to wake up without an event.
    fn wake_up(&self) -> Option<Moment> {
        if self.has_work() {
            return Some(Moment::now());
        }
        let power = self.power.as_ref().map(PowerOff::deadline);
        let quiet = self
            .idle_work_at
            .filter(|_| !self.tasks.processes.is_prepared());
        [
            self.tasks.processes.next_deadline(),
            self.tasks.services.next_deadline(),
            self.tasks.network.next_deadline(),
            self.tasks.write_back.next_start(),
            self.tasks.freezer.next_deadline(),
            self.poller.next_retry(),
            power,
            self.flush_at,
            self.accept_retry_at,
            quiet,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Child(pid) => self.reap(pid),
            Event::Listener => self.accept(),
            Event::Link(id) => {
                if let Some(link) = self.link_mut(id) {
                    link.on_ready();
                }
                self.serve(id);
            }
            Event::Pipe(id, channel) => {
                self.tasks.processes.on_pipe_ready(id, channel);
            }
            Event::Launch(id) => self.tasks.processes.check_launch(id),
            Event::Worker(index) => self.tasks.jobs.worker_notified(index),
            Event::Connection(id, ready) => {
                self.tasks
                    .connections
                    .on_connection_ready(id, ready, &self.poller);
            }
            Event::Log(id) => self.tasks.services.on_log_ready(id),
            Event::Probe(id) => self.tasks.services.mark_changed(id),
            Event::Freezer => self.tasks.freezer.check(),
            Event::Network(socket, ready) => self.tasks.network.on_ready(socket, ready),
        }
    }

    /// Reaps a child of the agent that has ended.
    fn reap(&mut self, pid: u32) {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        match self.poller.reap_child(pid) {
            Ok(Some(exit)) => self.own_child_ended(&exit),
            Err(Errno::CHILD) => self.child_lost(pid),
            // A process that traces it is yet to reap it. Another event follows.
            Ok(None) | Err(_) => {}
        }
    }

    /// Handles a child of the agent that another part of the program has reaped.
    fn child_lost(&mut self, pid: Pid) {
        let pid = pid.as_raw_nonzero().get();
        self.report(Diagnostic::LostChild { pid });
        self.own_child_ended(&ChildExit {
            pid,
            status: libc::SIGKILL,
            usage: ResourceUsage::default(),
        });
    }

    fn own_child_ended(&mut self, exit: &ChildExit) {
        self.child_ended(exit);
        // Its descendants may have ended before it, and another process reaps
        // them.
        self.tasks.orphan_reaped();
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if let Some(handler) = &mut self.on_diagnostic {
            handler(&diagnostic);
        }
    }

    /// Queues a link to be served before the agent sleeps again.
    pub(crate) fn serve_soon(&mut self, id: LinkId) {
        if !self.links_to_serve.contains(&id) {
            self.links_to_serve.push(id);
        }
    }

    /// Receives from and sends to a link, up to the limits of one turn.
    pub(crate) fn serve(&mut self, id: LinkId) {
        // The link is moved out meanwhile, so that requests can borrow the rest
        // of the agent.
        let Some(mut link) = self.take_link(id) else {
            return;
        };
        let mut buffer = core::mem::take(&mut self.buffer);
        let received = link.receive(&mut buffer, |session, input| match input {
            Received::Item(item) => self.dispatch(session, item),
            Received::SessionOver(error) => {
                self.end_session(session, error);
                Ok(())
            }
        });
        self.buffer = buffer;
        let outcome = received.and_then(|received| {
            let sent = link.send(&mut self.tasks)?;
            Ok(if received == Turn::More {
                received
            } else {
                sent
            })
        });
        match outcome {
            Ok(turn) => {
                if turn == Turn::More {
                    self.serve_soon(id);
                }
                let blocked = link.is_blocked();
                if link.watched_for_writes != blocked {
                    link.watched_for_writes = blocked;
                    let event = Event::Link(id);
                    if let Err(error) = self.poller.watch_writes(&link, event, blocked) {
                        self.report(Diagnostic::Unwatched { link: id.0, error });
                    }
                }
                self.put_link(id, link);
            }
            Err(error) => self.drop_link(id, link, error),
        }
    }

    /// Replaces the key of resets on all links but the one that is being served.
    pub(crate) fn change_reset_key(&mut self, key: [u8; 16]) {
        for link in self.links.iter_mut().flatten() {
            link.session.change_reset_key(key);
        }
    }

    /// Writes deferred frames whose delay is over.
    fn flush_deferred(&mut self) {
        if !self.links.iter().flatten().any(Link::has_deferred) {
            self.flush_at = None;
            return;
        }
        let now = Moment::now();
        let until = *self.flush_at.get_or_insert(now.after_ms(FLUSH_DELAY_MS));
        if until > now {
            return;
        }
        self.flush_at = None;
        for index in 0..self.links.len() {
            let Ok(id) = u32::try_from(index).map(LinkId) else {
                return;
            };
            if let Some(link) = self.link_mut(id).filter(|link| link.has_deferred()) {
                link.flush_now();
                self.serve(id);
            }
        }
    }

    /// Ends a session: logs a protocol violation and gives up the session's
    /// streams.
    fn end_session(&mut self, session: &mut LinkSession, error: LinkError) {
        if let LinkError::Violation(error) = error {
            let LinkId(link) = session.id;
            self.report(Diagnostic::Violation { link, error });
        }
        session.drop_streams(&mut self.tasks);
    }

    /// Drops a link after an error, or starts a new session on it if its medium
    /// outlives a session.
    fn drop_link(&mut self, id: LinkId, mut link: Link, error: LinkError) {
        self.end_session(&mut link.session, error);
        if link.can_restart_session() {
            link.restart_session();
            self.put_link(id, link);
        }
    }

    /// Accepts all pending connections.
    fn accept(&mut self) {
        self.accept_retry_at = None;
        while let Some(listener) = &self.listener {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(listener, flags) {
                Ok(socket) => {
                    if !is_from_host(vsock_peer(&socket)) {
                        continue;
                    }
                    if let Err(error) = self.add_link(socket, Medium::Socket) {
                        self.report(Diagnostic::NewLink(error));
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // They stay in the backlog until descriptors or memory are
                // available.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.accept_retry_at = Some(Moment::now().after_ms(ACCEPT_RETRY_MS));
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn add_link(&mut self, descriptor: OwnedFd, medium: Medium) -> Result<(), Errno> {
        let index = match self.links.iter().position(Option::is_none) {
            Some(index) => index,
            None if self.links.len() < MAX_LINKS => {
                self.links.push(None);
                self.links.len().saturating_sub(1)
            }
            None => return Err(Errno::MFILE),
        };
        let id = LinkId(u32::try_from(index).map_err(|_| Errno::MFILE)?);
        let link = Link::new(id, descriptor, medium);
        self.poller.watch(&link, Event::Link(id))?;
        self.put_link(id, link);
        Ok(())
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.slot(id)?.as_mut()
    }

    pub(crate) fn take_link(&mut self, id: LinkId) -> Option<Link> {
        self.slot(id)?.take()
    }

    pub(crate) fn put_link(&mut self, id: LinkId, link: Link) {
        if let Some(slot) = self.slot(id) {
            *slot = Some(link);
        }
    }

    fn slot(&mut self, id: LinkId) -> Option<&mut Option<Link>> {
        self.links.get_mut(usize::try_from(id.0).ok()?)
    }

    /// Sends the outcome of the power-off to the host that requested it, as far
    /// as its link accepts it.
    pub(crate) fn send_power_off_outcome(&mut self, caller: Caller, outcome: &Outcome<'_>) {
        let Some(mut link) = self.take_link(caller.link) else {
            return;
        };
        // Errors do not matter: the VM ends in any case.
        let _ = link.session.close(caller.stream, outcome);
        let _ = link.send(&mut self.tasks);
        self.put_link(caller.link, link);
    }
}

impl AsFd for Agent {
    /// Returns the descriptor that becomes readable when the agent is to take a
    /// turn: its epoll instance, which can be polled, and watched by another one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn set_nonblocking(descriptor: &OwnedFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    rustix::fs::fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)
}
