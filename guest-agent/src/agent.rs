use alloc::{boxed::Box, vec, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::OFlags,
    io::Errno,
    net::{SocketFlags, accept_with},
    process::{getpid, set_child_subreaper},
};
use vmcell_wire::Outcome;

use crate::{
    boot::{self, Booted, RootDisk},
    cgroup::Cgroups,
    clock::Moment,
    console::Console,
    event::{Batch, Event, Poller},
    ids::{Caller, LinkId},
    job::Jobs,
    link::{Link, LinkError, LinkSession, Medium, Received, Turn, is_from_host},
    port::Connections,
    power::PowerOff,
    process::Processes,
    service::Services,
    sys::{
        SignalFd, raise_descriptor_limit, reset_and_block_signals, set_cloexec_on_all,
        use_batch_scheduling, vsock_peer,
    },
    tasks::Tasks,
    write_back::WriteBack,
};

/// The configuration of an [`Agent`].
pub struct AgentConfig<'a> {
    /// The boot id that the hello reports.
    pub boot_id: [u8; 16],
    /// The key that starts a reset on a virtio-serial port.
    pub reset_key: [u8; 16],
    /// Whether the agent may set the clock. It may not where other programs
    /// share that clock.
    pub has_clock: bool,
    /// The directory of the cgroup hierarchy; `None`: no cgroups.
    pub cgroups: Option<&'a str>,
    /// A listening socket on which hosts may connect: a Unix socket, or vsock.
    pub listener: Option<OwnedFd>,
    /// Open virtio-serial ports.
    pub ports: Vec<OwnedFd>,
    /// Where errors are logged.
    pub console: Console,
    /// Whether the agent is PID 1. Powering off then ends every process of the
    /// guest, otherwise only those that the agent started.
    pub is_init: bool,
    /// The kind of disk that holds the root file system.
    pub root_disk: RootDisk,
    /// How long a foreground process that lost its link waits to be resumed.
    pub resume_grace_ms: u64,
}

impl AgentConfig<'_> {
    /// The default of [`resume_grace_ms`](Self::resume_grace_ms).
    pub const RESUME_GRACE_MS: u64 = 10_000;
}

/// Why an agent stopped. All its processes have ended by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A host requested a power-off.
    PowerOff,
    /// A signal asked the agent to terminate.
    Signal,
}

/// Serves a booted guest as its PID 1 until it is to be powered off.
///
/// # Errors
/// A system call that the agent depends on failed.
pub fn serve_guest(booted: Booted) -> Result<StopReason, Errno> {
    let agent = Agent::new(AgentConfig {
        boot_id: booted.boot_id,
        reset_key: booted.reset_key,
        has_clock: booted.has_clock,
        cgroups: booted.has_cgroups.then_some(boot::CGROUPS),
        listener: booted.listener,
        ports: booted.ports,
        console: booted.console,
        is_init: true,
        root_disk: booted.root_disk,
        resume_grace_ms: AgentConfig::RESUME_GRACE_MS,
    })?;
    agent.run()
}

/// The agent: owns every link and every process, and runs the event loop.
pub struct Agent {
    pub(crate) poller: Poller,
    pub(crate) tasks: Tasks,
    pub(crate) power: Option<PowerOff>,
    pub(crate) boot_id: [u8; 16],
    pub(crate) is_init: bool,
    pub(crate) has_clock: bool,
    pub(crate) root_disk: RootDisk,
    signals: SignalFd,
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
    buffer: Box<[u8]>,
    console: Console,
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

/// The maximum number of links. Further connections are rejected.
const MAX_LINKS: usize = 64;

impl Agent {
    /// Creates an agent and registers its listener and ports with epoll.
    ///
    /// # Errors
    /// A system call that the agent depends on failed.
    pub fn new(config: AgentConfig<'_>) -> Result<Self, Errno> {
        reset_and_block_signals()?;
        set_cloexec_on_all()?;
        use_batch_scheduling()?;
        let descriptors = raise_descriptor_limit()?;
        rustix::process::chdir("/")?;
        if !config.is_init {
            // Orphaned descendants are reparented to this process, as they are
            // to PID 1.
            set_child_subreaper(Some(getpid()))?;
        }
        let poller = Poller::new()?;
        let signals = SignalFd::new()?;
        poller.watch(&signals, Event::Signal)?;
        if let Some(listener) = &config.listener {
            rustix::fs::fcntl_setfl(listener, OFlags::NONBLOCK)?;
            poller.watch(listener, Event::Listener)?;
        }
        let cgroups = config.cgroups.map(Cgroups::new).transpose()?;
        let mut agent = Self {
            poller,
            tasks: Tasks {
                processes: Processes::new(cgroups, descriptors, config.resume_grace_ms)?,
                jobs: Jobs::new(),
                services: Services::new(),
                connections: Connections::new(),
                write_back: WriteBack::new(config.root_disk),
            },
            power: None,
            boot_id: config.boot_id,
            is_init: config.is_init,
            has_clock: config.has_clock,
            root_disk: config.root_disk,
            signals,
            listener: config.listener,
            accept_retry_at: None,
            links: Vec::new(),
            links_to_serve: Vec::new(),
            flush_at: None,
            idle_work_at: None,
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            console: config.console,
        };
        for port in config.ports {
            let key = config.reset_key;
            agent.add_link(port, Medium::Port { key })?;
        }
        Ok(agent)
    }

    /// Runs the event loop until the agent is asked to stop.
    ///
    /// # Errors
    /// Waiting for events or reading signals failed. The agent cannot recover
    /// from that.
    pub fn run(mut self) -> Result<StopReason, Errno> {
        let mut batch = Batch::new();
        loop {
            self.tasks.processes.watch_full(&self.poller);
            self.poller.wait(&mut batch, self.wake_up())?;
            for event in batch.events() {
                if self.handle(event)? == Some(StopReason::Signal) {
                    self.tasks.processes.kill_all();
                    return Ok(StopReason::Signal);
                }
            }
            self.tasks.processes.expire(&self.poller);
            self.tasks.processes.run_queued();
            self.tasks.supervise_services(&self.poller);
            while let Some(id) = self.tasks.next_awake() {
                self.serve_soon(id);
            }
            for id in core::mem::take(&mut self.links_to_serve) {
                self.serve(id);
            }
            self.tasks.jobs.notify_workers();
            self.tasks.write_back.start_if_due();
            self.flush_deferred();
            if self.accept_retry_at.is_some() {
                self.accept();
            }
            if self.advance_power_off() {
                return Ok(StopReason::PowerOff);
            }
            if !self.has_work() && self.idle_work_at.is_some_and(|from| from <= Moment::now()) {
                self.tasks.processes.prepare();
            }
        }
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
        !self.links_to_serve.is_empty() || self.tasks.is_busy() || self.tasks.is_awake()
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
            self.tasks.write_back.next_start(),
            power,
            self.flush_at,
            self.accept_retry_at,
            quiet,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle(&mut self, event: Event) -> Result<Option<StopReason>, Errno> {
        match event {
            Event::Signal => {
                // A power-off sends SIGTERM to every process, and only PID 1 is
                // exempt from that.
                if self.signals.drain()? && self.power.is_none() && !self.is_init {
                    return Ok(Some(StopReason::Signal));
                }
                self.reap();
            }
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
                self.tasks.connections.on_ready(id, ready, &self.poller);
            }
            Event::Log(id) => self.tasks.services.on_log_ready(id),
            Event::Probe(id) => self.tasks.services.mark_changed(id),
        }
        Ok(None)
    }

    /// Reaps ended children and notifies their waiters.
    pub(crate) fn reap(&mut self) {
        let children_left = self.tasks.reap_all();
        if let Some(power) = &mut self.power {
            power.children_left(children_left);
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
                        self.console.error(format_args!("link {}: {error}", id.0));
                    }
                }
                self.put_link(id, link);
            }
            Err(error) => self.drop_link(id, link, error),
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
            let LinkId(id) = session.id;
            self.console.error(format_args!("link {id}: {error}"));
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
                        self.console.error(format_args!("new link: {error}"));
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
