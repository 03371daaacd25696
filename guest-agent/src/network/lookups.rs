use alloc::{string::String, vec::Vec};
use core::net::{Ipv6Addr, SocketAddrV6};

use super::dns::Question;

/// The questions that the host has not answered yet.
#[derive(Default)]
pub(super) struct Lookups(Vec<Lookup>);

/// What the host was asked, and for whom.
pub(super) struct Lookup {
    pub(super) ticket: u32,
    pub(super) name: String,
    pub(super) askers: Vec<Asker>,
}

/// A question, and where its answer goes.
pub(super) struct Asker {
    pub(super) question: Question,
    pub(super) from: AskedFrom,
}

/// Where a question came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedFrom {
    /// A datagram.
    Datagram {
        sender: SocketAddrV6,
        destination: Ipv6Addr,
    },
    /// The client with this id.
    Client(u32),
}

/// What becomes of a question.
pub(super) enum Joined {
    /// It waits for the answer for another one, or it is a repetition.
    Waits,
    /// The host is to be asked: it is to be [added](Lookups::add).
    New(Asker),
    /// There are too many.
    TooMany(Asker),
}

/// The maximum number of questions. One more fails at once.
const MAX_ASKERS: usize = 256;

impl Lookups {
    /// Adds a question to those for the same name. Programs ask for both kinds of
    /// addresses at once, and again after some seconds.
    pub(super) fn join(&mut self, name: &str, asker: Asker) -> Joined {
        let askers = self.0.iter().map(|lookup| lookup.askers.len());
        let is_full = askers.sum::<usize>() >= MAX_ASKERS;
        let Some(lookup) = self.0.iter_mut().find(|lookup| lookup.name == name) else {
            return match is_full {
                true => Joined::TooMany(asker),
                false => Joined::New(asker),
            };
        };
        let is_repeated = lookup.askers.iter().any(|other| {
            matches!(asker.from, AskedFrom::Datagram { .. })
                && (other.from, &other.question) == (asker.from, &asker.question)
        });
        match (is_repeated, is_full) {
            (true, _) => {}
            (false, true) => return Joined::TooMany(asker),
            (false, false) => lookup.askers.push(asker),
        }
        Joined::Waits
    }

    pub(super) fn add(&mut self, ticket: u32, name: &str, asker: Asker) {
        self.0.push(Lookup {
            ticket,
            name: name.into(),
            askers: Vec::from([asker]),
        });
    }

    /// Removes the one with this ticket.
    pub(super) fn take(&mut self, ticket: u32) -> Option<Lookup> {
        let index = self.0.iter().position(|lookup| lookup.ticket == ticket)?;
        Some(self.0.swap_remove(index))
    }

    /// Removes all.
    pub(super) fn take_all(&mut self) -> Vec<Lookup> {
        core::mem::take(&mut self.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lookup> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(id: u8, kind: u8, port: u16) -> Asker {
        let message = [
            id, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, kind, 0, 1,
        ];
        let address = Ipv6Addr::LOCALHOST;
        Asker {
            question: Question::parse(&message).unwrap(),
            from: AskedFrom::Datagram {
                sender: SocketAddrV6::new(address, port, 0, 0),
                destination: address,
            },
        }
    }

    #[test]
    fn the_host_is_asked_once_for_both_kinds_of_addresses() {
        let mut lookups = Lookups::default();
        let Joined::New(first) = lookups.join("a", asker(1, 1, 1000)) else {
            panic!("it is the first");
        };
        lookups.add(7, "a", first);
        assert!(matches!(
            lookups.join("a", asker(2, 28, 1000)),
            Joined::Waits
        ));
        // The program asks again.
        assert!(matches!(
            lookups.join("a", asker(1, 1, 1000)),
            Joined::Waits
        ));
        assert!(lookups.take(8).is_none());
        let lookup = lookups.take(7).unwrap();
        assert_eq!((lookup.askers.len(), &*lookup.name), (2, "a"));
        assert!(lookups.take(7).is_none());
    }

    #[test]
    fn questions_beyond_the_limit_fail() {
        let mut lookups = Lookups::default();
        for port in 0..256 {
            match lookups.join("a", asker(1, 1, port)) {
                Joined::New(asker) => lookups.add(1, "a", asker),
                Joined::Waits => {}
                Joined::TooMany(_) => panic!("{port}"),
            }
        }
        assert!(matches!(
            lookups.join("a", asker(1, 1, 999)),
            Joined::TooMany(_)
        ));
        assert!(matches!(
            lookups.join("b", asker(1, 1, 1)),
            Joined::TooMany(_)
        ));
        assert_eq!(lookups.take_all().len(), 1);
        assert!(matches!(lookups.join("b", asker(1, 1, 1)), Joined::New(_)));
    }
}
