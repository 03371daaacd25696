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
    job::Jobs,
    link::{Conversation, Heard, Link, LinkId, Lost, Medium, Turn, is_from_host},
    port::Connections,
    power::PowerOff,
    process::{Caller, Processes},
    service::Services,
    sys::{
        SignalFd, keep_descriptors_from_children, raise_descriptor_limit, take_over_signals,
        vsock_peer, wait_for_our_turn,
    },
    tasks::Tasks,
    write_back::WriteBack,
};

/// What an agent is given to work with.
pub struct AgentConfig<'a> {
    /// Names this boot in the hello.
    pub boot_id: [u8; 16],
    /// What a reset of a port begins with.
    pub reset_key: [u8; 16],
    /// Whether it may set the clock, which else is somebody else's.
    pub has_clock: bool,
    /// Where the cgroups are; none: no cgroups.
    pub cgroups: Option<&'a str>,
    /// A listening socket on which hosts may connect: a Unix socket, or vsock.
    pub listener: Option<OwnedFd>,
    /// Open virtio-serial ports.
    pub ports: Vec<OwnedFd>,
    /// Where to complain.
    pub console: Console,
    /// Whose processes powering off ends: PID 1 ends all of the guest's.
    pub is_init: bool,
    /// What the root is on.
    pub root_disk: RootDisk,
    /// How long a foreground process without its link waits to be resumed.
    pub resume_grace_ms: u64,
}

impl AgentConfig<'_> {
    /// A good [`resume_grace_ms`](Self::resume_grace_ms).
    pub const RESUME_GRACE_MS: u64 = 10_000;
}

/// Why an agent has ended. All its processes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A host asked for it.
    PowerOff,
    /// A signal asked for it.
    Signal,
}

/// Serves a guest that has booted, as its PID 1, until it is to be powered off.
///
/// # Errors
/// The kernel does not give what is needed, or fails.
pub fn serve_guest(booted: Booted) -> Result<Ending, Errno> {
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

/// The agent: every link, every process, and the loop that serves them.
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
    /// When to look for connections again that there was no descriptor for. The
    /// kernel does not tell of them a second time.
    accept_at: Option<Moment>,
    /// The place in the list is the link's id.
    links: Vec<Option<Link>>,
    /// Links that want another turn.
    unfinished: Vec<LinkId>,
    /// When links that wait for company have waited long enough.
    patience: Option<Moment>,
    /// When there will be time for what can wait; none before the first hello.
    quiet_from: Option<Moment>,
    buffer: Box<[u8]>,
    console: Console,
}

/// A virtio-serial port hands out at most a page for each read.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// How long a frame that is not urgent waits for another one.
const PATIENCE_MS: u64 = 2;

/// How long a host's first command may take before the agent does what can
/// wait. Under emulation a first command takes 0.1 s.
const FIRST_COMMAND_MS: u64 = 250;

/// How long connections wait at most that there was no descriptor for. The agent
/// looks whenever it has done something, and else after this time.
const ACCEPT_AGAIN_MS: u64 = 100;

/// More links than this are refused.
const MAX_LINKS: usize = 64;

impl Agent {
    /// Makes an agent and begins to watch what it was given.
    ///
    /// # Errors
    /// The kernel does not give it what it needs.
    pub fn new(config: AgentConfig<'_>) -> Result<Self, Errno> {
        take_over_signals()?;
        keep_descriptors_from_children()?;
        wait_for_our_turn()?;
        let descriptors = raise_descriptor_limit()?;
        rustix::process::chdir("/")?;
        if !config.is_init {
            // Orphans of our children come to us, as they do to PID 1.
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
            accept_at: None,
            links: Vec::new(),
            unfinished: Vec::new(),
            patience: None,
            quiet_from: None,
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            console: config.console,
        };
        for port in config.ports {
            let key = config.reset_key;
            agent.add_link(port, Medium::Port { key })?;
        }
        Ok(agent)
    }

    /// Serves until it is asked to end.
    ///
    /// # Errors
    /// The kernel no longer tells what happens. There is no way on from there.
    pub fn run(mut self) -> Result<Ending, Errno> {
        let mut batch = Batch::new();
        loop {
            self.tasks.processes.watch_full(&self.poller);
            self.poller.wait(&mut batch, self.wake_up())?;
            for event in batch.events() {
                if self.handle(event)? == Some(Ending::Signal) {
                    self.tasks.processes.kill_all();
                    return Ok(Ending::Signal);
                }
            }
            self.tasks.processes.expire(&self.poller);
            self.tasks.processes.take_turns();
            self.tasks.look_after_services(&self.poller);
            while let Some(id) = self.tasks.next_awake() {
                self.serve_soon(id);
            }
            for id in core::mem::take(&mut self.unfinished) {
                self.serve(id);
            }
            self.tasks.jobs.notify_workers();
            self.tasks.write_back.start_if_due();
            self.keep_patience();
            if self.accept_at.is_some() {
                self.accept();
            }
            if self.advance_power_off() {
                return Ok(Ending::PowerOff);
            }
            if !self.has_work() && self.quiet_from.is_some_and(|from| from <= Moment::now()) {
                self.tasks.processes.prepare();
            }
        }
    }

    /// A host is here. The boot is over for it when its first command is.
    pub(crate) fn has_company(&mut self) {
        if self.quiet_from.is_none() {
            let quiet_from = Moment::now().after_ms(FIRST_COMMAND_MS);
            self.quiet_from = Some(quiet_from);
            self.tasks.write_back.begin_at(quiet_from);
        }
    }

    /// Whether there is something to do without an event.
    fn has_work(&self) -> bool {
        !self.unfinished.is_empty() || self.tasks.is_busy() || self.tasks.is_awake()
    }

    /// When to wake up even if nothing happens.
    fn wake_up(&self) -> Option<Moment> {
        if self.has_work() {
            return Some(Moment::now());
        }
        let power = self.power.as_ref().map(PowerOff::deadline);
        let quiet = self
            .quiet_from
            .filter(|_| !self.tasks.processes.is_prepared());
        [
            self.tasks.processes.next_deadline(),
            self.tasks.services.next_deadline(),
            self.tasks.write_back.next_start(),
            power,
            self.patience,
            self.accept_at,
            quiet,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle(&mut self, event: Event) -> Result<Option<Ending>, Errno> {
        match event {
            Event::Signal => {
                // Power off asks every process to end, and the agent is
                // exempt from that only as PID 1.
                if self.signals.drain()? && self.power.is_none() && !self.is_init {
                    return Ok(Some(Ending::Signal));
                }
                self.reap();
            }
            Event::Listener => self.accept(),
            Event::Link(id) => {
                if let Some(link) = self.link_mut(id) {
                    link.is_ready();
                }
                self.serve(id);
            }
            Event::Pipe(id, channel) => {
                self.tasks.processes.pipe_is_ready(id, channel);
            }
            Event::Launch(id) => self.tasks.processes.look_at_launch(id),
            Event::Worker(place) => self.tasks.jobs.worker_notified(place),
            Event::Connection(id, ready) => {
                self.tasks.connections.is_ready(id, ready, &self.poller);
            }
            Event::Log(id) => self.tasks.services.log_is_ready(id),
            Event::Prober(id) => self.tasks.services.tell(id),
        }
        Ok(None)
    }

    /// Collects ended children and tells those who wait for them.
    pub(crate) fn reap(&mut self) {
        let children_left = self.tasks.reap_all();
        if let Some(power) = &mut self.power {
            power.children_left(children_left);
        }
    }

    /// Gives a link a turn before the agent sleeps again.
    pub(crate) fn serve_soon(&mut self, id: LinkId) {
        if !self.unfinished.contains(&id) {
            self.unfinished.push(id);
        }
    }

    /// Gives a link its turn.
    pub(crate) fn serve(&mut self, id: LinkId) {
        // The link leaves its place meanwhile, so that requests can use
        // everything else.
        let Some(mut link) = self.take_link(id) else {
            return;
        };
        let mut buffer = core::mem::take(&mut self.buffer);
        let received = link.receive(&mut buffer, |conversation, heard| match heard {
            Heard::Item(item) => self.dispatch(conversation, item),
            Heard::Over(lost) => {
                self.hang_up(conversation, lost);
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
            Err(lost) => self.lose(id, link, lost),
        }
    }

    /// Sends what has waited for company long enough.
    fn keep_patience(&mut self) {
        if !self.links.iter().flatten().any(Link::is_patient) {
            self.patience = None;
            return;
        }
        let now = Moment::now();
        let until = *self.patience.get_or_insert(now.after_ms(PATIENCE_MS));
        if until > now {
            return;
        }
        self.patience = None;
        for place in 0..self.links.len() {
            let Ok(id) = u32::try_from(place).map(LinkId) else {
                return;
            };
            if let Some(link) = self.link_mut(id).filter(|link| link.is_patient()) {
                link.hurry();
                self.serve(id);
            }
        }
    }

    /// A conversation is over.
    fn hang_up(&mut self, conversation: &mut Conversation, lost: Lost) {
        if let Lost::Violation(error) = lost {
            let LinkId(id) = conversation.id;
            self.console.error(format_args!("link {id}: {error}"));
        }
        conversation.lose_streams(&mut self.tasks);
    }

    /// A link is of no more use, unless another conversation can follow.
    fn lose(&mut self, id: LinkId, mut link: Link, lost: Lost) {
        self.hang_up(&mut link.conversation, lost);
        if link.can_begin_anew() {
            link.begin_anew();
            self.put_link(id, link);
        }
    }

    /// Takes every connection that waits.
    fn accept(&mut self) {
        self.accept_at = None;
        while let Some(listener) = &self.listener {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(listener, flags) {
                Ok(socket) => {
                    if !is_from_host(vsock_peer(&socket)) {
                        continue;
                    }
                    if let Err(error) = self.add_link(socket, Medium::Socket) {
                        self.console.error(format_args!("no link: {error}"));
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // They stay where they are until there is room for them.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.accept_at = Some(Moment::now().after_ms(ACCEPT_AGAIN_MS));
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn add_link(&mut self, descriptor: OwnedFd, medium: Medium) -> Result<(), Errno> {
        let place = match self.links.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.links.len() < MAX_LINKS => {
                self.links.push(None);
                self.links.len().saturating_sub(1)
            }
            None => return Err(Errno::MFILE),
        };
        let id = LinkId(u32::try_from(place).map_err(|_| Errno::MFILE)?);
        let link = Link::new(id, descriptor, medium);
        self.poller.watch(&link, Event::Link(id))?;
        self.put_link(id, link);
        Ok(())
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.place(id)?.as_mut()
    }

    pub(crate) fn take_link(&mut self, id: LinkId) -> Option<Link> {
        self.place(id)?.take()
    }

    pub(crate) fn put_link(&mut self, id: LinkId, link: Link) {
        if let Some(place) = self.place(id) {
            *place = Some(link);
        }
    }

    fn place(&mut self, id: LinkId) -> Option<&mut Option<Link>> {
        self.links.get_mut(usize::try_from(id.0).ok()?)
    }

    /// Tells the host that asked for the end what came of it, as far as its
    /// link takes it.
    pub(crate) fn say_goodbye(&mut self, caller: Caller, outcome: &Outcome<'_>) {
        let Some(mut link) = self.take_link(caller.link) else {
            return;
        };
        // The VM ends in any case.
        let _ = link.conversation.close(caller.stream, outcome);
        let _ = link.send(&mut self.tasks);
        self.put_link(caller.link, link);
    }
}
