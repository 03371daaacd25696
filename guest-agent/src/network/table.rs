use alloc::vec::Vec;
use core::net::{Ipv6Addr, SocketAddr};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{SocketFlags, accept_with, getsockname},
};
use vmcell_wire::{
    WireError,
    files::record::{self, Piece, Reader},
    network::{Answer, Refusal, Want},
};

use super::{
    dns::{BadQuestion, DnsAnswer, Question},
    dns_client::DnsClient,
    interception::{DNS_PORT, Interception},
    lookups::{AskedFrom, Asker, Joined, Lookups},
    names::{Names, stands_for_name},
    prefix::{OWN_V4, Prefix, extra},
    reports::Reports,
    resolver_file::replace_resolver_file,
    waiting::{Destination, WaitingConnection, WaitingConnections, reset},
    wants::Wants,
};
use crate::{
    clock::Moment,
    diagnostic::Diagnostic,
    event::{Event, NetworkSocket, Poller, Readiness},
    ids::{Caller, LinkId},
    port::Connections,
    sys,
};

/// All that programs want of other machines.
#[derive(Default)]
pub(crate) struct Network {
    /// `None` before the first request for it.
    interception: Option<Interception>,
    /// The request of the host that decides.
    capture: Option<Capture>,
    names: Names,
    waiting: WaitingConnections,
    lookups: Lookups,
    clients: Vec<DnsClient>,
    /// The number of the last connection, question or client.
    last_ticket: u32,
    /// Whether connections may wait to be accepted, and datagrams to be received.
    has_connections: bool,
    has_datagrams: bool,
    /// Whether clients may have questions.
    has_questions: bool,
    /// When to try again to accept, after an error.
    retry_at: Option<Moment>,
    links_to_serve: Vec<LinkId>,
    reports: Reports,
}

struct Capture {
    caller: Caller,
    wants: Wants,
    answers: Reader,
}

/// The maximum number of connections, with those that the host has accepted. One more
/// is reset at once, so that no program waits in vain.
const MAX_CONNECTIONS: usize = 512;

/// The maximum number of programs that ask for names over TCP.
const MAX_CLIENTS: usize = 32;

/// How many connections, and how many datagrams, are taken in one turn.
const TAKEN_PER_TURN: usize = 64;

/// How long to wait after a failed `accept`.
const RETRY_MS: u64 = 100;

/// The longest question in a datagram, in bytes. Longer ones are cut, and malformed.
const MAX_DATAGRAM: usize = 1024;

impl Network {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes connections for a host, in place of the one before. What waits for that
    /// one's decision waits for this one's.
    pub(super) fn begin(
        &mut self,
        caller: Caller,
        prefixes: &[u8],
        poller: &Poller,
    ) -> Result<(), Errno> {
        let extra = extra(Prefix::unpack(prefixes));
        match &mut self.interception {
            Some(interception) => interception.change(extra)?,
            None => {
                let interception = Interception::start(extra)?;
                let watch = |socket: &OwnedFd, event| poller.watch(socket, network_event(event));
                watch(&interception.listener, NetworkSocket::Listener)?;
                watch(&interception.datagrams, NetworkSocket::Datagrams)?;
                self.interception = Some(interception);
                if let Err(errno) = replace_resolver_file() {
                    self.reports.resolver_file(errno);
                }
            }
        }
        let mut wants = Wants::default();
        wants.add(&Want::Ready);
        for lookup in self.lookups.iter() {
            let (ticket, name) = (lookup.ticket, &*lookup.name);
            wants.add(&Want::Lookup { ticket, name });
        }
        for connection in self.waiting.iter() {
            wants.add(&connection.want());
        }
        let earlier = self.capture.replace(Capture {
            caller,
            wants,
            answers: Reader::new(),
        });
        // Its stream ends.
        self.links_to_serve.extend(earlier.map(|it| it.caller.link));
        Ok(())
    }

    /// Ends a host's request: everything that waits for it fails.
    pub(crate) fn end(&mut self, caller: Caller) {
        if self.capture.take_if(|it| it.caller == caller).is_none() {
            return;
        }
        self.waiting.reset_all();
        for lookup in self.lookups.take_all() {
            self.answer_all(lookup.askers, DnsAnswer::NoSuchName);
        }
    }

    /// Returns the records for a host. `None`: its request has been replaced.
    pub(crate) fn unsent(&self, caller: Caller) -> Option<&[u8]> {
        let capture = self.capture.as_ref().filter(|it| it.caller == caller)?;
        Some(capture.wants.bytes())
    }

    /// Removes records that were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        if let Some(capture) = &mut self.capture {
            capture.wants.sent(count);
        }
    }

    /// Takes answers of a host.
    pub(crate) fn answer(&mut self, caller: Caller, mut bytes: &[u8]) -> Result<(), WireError> {
        loop {
            let capture = self.capture.as_mut().filter(|it| it.caller == caller);
            let Some(capture) = capture else {
                return Ok(());
            };
            match capture.answers.next(&mut bytes)? {
                None => return Ok(()),
                Some(Piece::Raw(_)) => return Err(WireError::Malformed),
                Some(Piece::Message(message)) => match record::decode(message)? {
                    Answer::Allow { ticket } => self.allow(ticket),
                    Answer::Refuse { ticket, refusal } => self.refuse(ticket, refusal),
                    _ => {}
                },
            }
        }
    }

    fn allow(&mut self, ticket: u32) {
        let Some(lookup) = self.lookups.take(ticket) else {
            return;
        };
        let answer = match self.names.addresses(&lookup.name) {
            Some((v4, v6)) => DnsAnswer::Host(v4, v6),
            None => DnsAnswer::NoSuchName,
        };
        self.answer_all(lookup.askers, answer);
    }

    fn refuse(&mut self, ticket: u32, refusal: Refusal) {
        let is_denied = refusal == Refusal::NotAllowed;
        if let Some(lookup) = self.lookups.take(ticket) {
            let answer = match refusal {
                Refusal::Limit => DnsAnswer::Failure,
                _ => DnsAnswer::NoSuchName,
            };
            self.answer_all(lookup.askers, answer);
            if is_denied {
                self.reports.not_allowed(lookup.name, None);
            }
        } else if let Some(connection) = self.waiting.take(ticket) {
            reset(connection.socket);
            if is_denied {
                let target = connection.destination.text();
                self.reports.not_allowed(target, Some(connection.port));
            }
        }
    }

    /// Takes a connection that the host accepts.
    pub(super) fn take_connection(&mut self, ticket: u32) -> Option<OwnedFd> {
        Some(self.waiting.take(ticket)?.socket)
    }

    /// Handles an epoll event.
    pub(crate) fn on_ready(&mut self, socket: NetworkSocket, ready: Readiness) {
        match socket {
            NetworkSocket::Listener => self.has_connections = true,
            NetworkSocket::Datagrams => self.has_datagrams = true,
            // The program has reset it.
            NetworkSocket::Waiting(ticket) => drop(self.waiting.take(ticket)),
            NetworkSocket::Client(id) => {
                if let Some(client) = self.client_mut(id) {
                    client.on_ready(ready);
                    self.serve_client(id);
                }
            }
        }
    }

    /// Takes connections and questions, up to the limits of one turn.
    pub(crate) fn advance(&mut self, connections: &Connections, poller: &Poller) {
        if self.interception.is_none() {
            return;
        }
        let now = Moment::now();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.has_connections = true;
        }
        self.clients.retain(|client| client.deadline > now);
        for _ in 0..TAKEN_PER_TURN {
            if !self.has_connections {
                break;
            }
            self.accept(connections, poller);
        }
        for _ in 0..TAKEN_PER_TURN {
            if !self.has_datagrams {
                break;
            }
            self.receive();
        }
        if core::mem::take(&mut self.has_questions) {
            let clients: Vec<u32> = self.clients.iter().map(|client| client.id).collect();
            for id in clients {
                self.serve_client(id);
            }
        }
    }

    /// Returns whether there is work that needs no event.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_connections || self.has_datagrams || self.has_questions || !self.reports.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        let clients = self.clients.iter().map(|client| client.deadline);
        clients.chain(self.retry_at).min()
    }

    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        self.links_to_serve.pop()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        !self.links_to_serve.is_empty()
    }

    pub(crate) fn take_reports(&mut self) -> Vec<Diagnostic> {
        self.reports.take()
    }

    fn accept(&mut self, connections: &Connections, poller: &Poller) {
        let Some(interception) = &self.interception else {
            self.has_connections = false;
            return;
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(&interception.listener, flags) {
            Ok(socket) => socket,
            Err(Errno::INTR | Errno::CONNABORTED) => return,
            Err(error) => {
                self.has_connections = false;
                if error != Errno::AGAIN {
                    self.retry_at = Some(Moment::now().after_ms(RETRY_MS));
                }
                return;
            }
        };
        // The address that the program has connected to.
        let Ok(SocketAddr::V6(address)) = getsockname(&socket).and_then(SocketAddr::try_from)
        else {
            return reset(socket);
        };
        let (address, port) = (*address.ip(), address.port());
        if self.capture.is_none() {
            reset(socket);
        } else if port == DNS_PORT {
            self.add_client(socket, poller);
        } else if self.waiting.len().saturating_add(connections.adopted()) >= MAX_CONNECTIONS {
            reset(socket);
        } else {
            match self.destination(address) {
                Some(destination) => self.add_connection(socket, destination, port, poller),
                None => reset(socket),
            }
        }
    }

    /// Returns what an address is for the host. `None`: it is not one that programs
    /// were given, or the agent's own.
    fn destination(&self, address: Ipv6Addr) -> Option<Destination> {
        if stands_for_name(address) {
            let name = self.names.name(address)?;
            return Some(Destination::Name(name.into()));
        }
        match address.to_ipv4_mapped() {
            Some(OWN_V4) => None,
            Some(address) => Some(Destination::V4(address)),
            None => Some(Destination::V6(address)),
        }
    }

    fn add_connection(
        &mut self,
        socket: OwnedFd,
        destination: Destination,
        port: u16,
        poller: &Poller,
    ) {
        let ticket = self.next_ticket();
        let connection = WaitingConnection {
            ticket,
            socket,
            destination,
            port,
        };
        let event = network_event(NetworkSocket::Waiting(ticket));
        let is_watched = poller.watch(&connection.socket, event).is_ok();
        if is_watched && self.want(&connection.want()) {
            self.waiting.add(connection);
        } else {
            reset(connection.socket);
        }
    }

    fn add_client(&mut self, socket: OwnedFd, poller: &Poller) {
        let id = self.next_ticket();
        let event = network_event(NetworkSocket::Client(id));
        if self.clients.len() >= MAX_CLIENTS || poller.watch(&socket, event).is_err() {
            return reset(socket);
        }
        self.clients.push(DnsClient::new(id, socket));
        self.serve_client(id);
    }

    /// Takes the questions of a client, and removes it if it is over.
    fn serve_client(&mut self, id: u32) {
        for _ in 0..TAKEN_PER_TURN {
            let Some(client) = self.client_mut(id) else {
                return;
            };
            client.flush();
            let Some(question) = client.next_question() else {
                break;
            };
            let from = AskedFrom::Client(id);
            self.ask(Asker { question, from });
        }
        self.clients
            .retain(|client| client.id != id || !client.is_over());
    }

    fn client_mut(&mut self, id: u32) -> Option<&mut DnsClient> {
        self.clients.iter_mut().find(|client| client.id == id)
    }

    fn receive(&mut self) {
        let Some(interception) = &self.interception else {
            self.has_datagrams = false;
            return;
        };
        let mut buffer = [0; MAX_DATAGRAM];
        let datagram = match sys::receive_datagram(&interception.datagrams, &mut buffer) {
            Ok(datagram) => datagram,
            Err(Errno::AGAIN) => {
                self.has_datagrams = false;
                return;
            }
            // Of an earlier answer, for example: nobody waits for it any more.
            Err(_) => return,
        };
        let message = buffer.get(..datagram.length).unwrap_or_default();
        let from = AskedFrom::Datagram {
            sender: datagram.sender,
            destination: datagram.destination,
        };
        match Question::parse(message) {
            Ok(question) => self.ask(Asker { question, from }),
            Err(BadQuestion::Answered(answer)) => self.send(from, &answer),
            Err(BadQuestion::Ignored) => {}
        }
    }

    /// Asks the host for a name, unless the answer is clear.
    fn ask(&mut self, asker: Asker) {
        let name = asker.question.name.clone();
        let answer = match name.as_deref() {
            Some("") => DnsAnswer::NoData,
            // Addresses have no names.
            Some(name) if !name.ends_with(".arpa") && self.capture.is_some() => {
                return self.look_up(name, asker);
            }
            _ => DnsAnswer::NoSuchName,
        };
        self.reply(asker, answer);
    }

    fn look_up(&mut self, name: &str, asker: Asker) {
        match self.lookups.join(name, asker) {
            Joined::Waits => {}
            Joined::TooMany(asker) => self.reply(asker, DnsAnswer::Failure),
            Joined::New(asker) => {
                let ticket = self.next_ticket();
                match self.want(&Want::Lookup { ticket, name }) {
                    true => self.lookups.add(ticket, name, asker),
                    false => self.reply(asker, DnsAnswer::Failure),
                }
            }
        }
    }

    fn answer_all(&mut self, askers: Vec<Asker>, answer: DnsAnswer) {
        for asker in askers {
            self.reply(asker, answer);
        }
    }

    fn reply(&mut self, asker: Asker, answer: DnsAnswer) {
        let message = asker.question.answer(answer);
        self.send(asker.from, &message);
    }

    fn send(&mut self, to: AskedFrom, message: &[u8]) {
        match to {
            AskedFrom::Datagram {
                sender,
                destination,
            } => {
                if let Some(interception) = &self.interception {
                    let socket = &interception.datagrams;
                    // If it does not arrive, the program asks again.
                    let _ = sys::send_datagram(socket, message, destination, sender);
                }
            }
            AskedFrom::Client(id) => {
                if let Some(client) = self.client_mut(id) {
                    client.answer(message);
                    // It may have another question, or be over.
                    self.has_questions = true;
                }
            }
        }
    }

    /// Sends something to the host. Returns whether there was room for it.
    fn want(&mut self, want: &Want<'_>) -> bool {
        let Some(capture) = &mut self.capture else {
            return false;
        };
        let link = capture.caller.link;
        if !self.links_to_serve.contains(&link) {
            self.links_to_serve.push(link);
        }
        capture.wants.add(want)
    }

    fn next_ticket(&mut self) -> u32 {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        self.last_ticket
    }
}

fn network_event(socket: NetworkSocket) -> Event {
    Event::Network(socket, Readiness::NONE)
}
