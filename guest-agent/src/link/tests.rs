//! Sessions on a port, one after the other, and their resets.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use vmcell_wire::{Renew, Request, encode, reset::ResetKey};

use super::*;

/// What the agent received.
#[derive(Clone, Debug, PartialEq)]
enum Note {
    Hello,
    Open(u32),
    Data(Vec<u8>),
    Over(LinkError),
}

fn port() -> (Link, OwnedFd, ResetKey) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let key = ResetKey::new(*b"a key to a reset");
    let medium = Medium::Port {
        key: key.to_bytes(),
    };
    (Link::new(LinkId(0), ours, medium), theirs, key)
}

/// Sends bytes in pieces and returns what was received, with adjacent data
/// joined.
fn received(link: &mut Link, host: &OwnedFd, bytes: &[u8], piece: usize) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for piece in bytes.chunks(piece) {
        assert_eq!(rustix::io::write(host, piece), Ok(piece.len()));
        link.on_ready();
        let outcome = link.receive(&mut [0; 4096], |session, input| {
            if let Received::Item(Item::Open { request, .. }) = &input
                && let Request::Renew(renew) = request
            {
                session.change_reset_key(renew.reset_key);
            }
            match (input, notes.last_mut()) {
                (Received::SessionOver(error), _) => notes.push(Note::Over(error)),
                (Received::Item(Item::Hello(_)), _) => notes.push(Note::Hello),
                (Received::Item(Item::Open { stream, .. }), _) => {
                    notes.push(Note::Open(stream.get()));
                }
                (Received::Item(Item::Data { bytes, .. }), Some(Note::Data(all))) => {
                    all.extend(bytes);
                }
                (Received::Item(Item::Data { bytes, .. }), _) => {
                    notes.push(Note::Data(bytes.to_vec()));
                }
                (Received::Item(_), _) => {}
            }
            Ok(())
        });
        assert_eq!(outcome, Ok(Turn::Done));
    }
    notes
}

fn hello(out: &mut Vec<u8>) {
    encode::hello(out, &Hello::new("test", 1000, [0; 16])).unwrap();
}

fn ping(out: &mut Vec<u8>, stream: u32) {
    encode::open(out, StreamId::new(stream).unwrap(), &Request::Ping).unwrap();
}

fn renew(out: &mut Vec<u8>, stream: u32, key: ResetKey, hostname: &str) {
    let renew = Renew {
        boot_id: [1; 16],
        reset_key: key.to_bytes(),
        seed: [2; 32],
        wall_time_ns: 3,
        hostname,
    };
    let request = Request::Renew(renew);
    encode::open(out, StreamId::new(stream).unwrap(), &request).unwrap();
}

fn written(link: &mut Link) -> Vec<u8> {
    link.session.control().clone()
}

proptest! {
    /// Wherever a host stops in a frame, and however the bytes are split,
    /// the next host is understood.
    #[test]
    fn a_reset_is_found_anywhere(stop in 0..200usize, piece in 1..100usize, nonce: [u8; 16]) {
        let (mut link, host, key) = port();
        let mut bytes = Vec::new();
        hello(&mut bytes);
        ping(&mut bytes, 5);
        let stream = StreamId::new(6).unwrap();
        let data = encode::data_header(stream, vmcell_wire::Channel::Stdin, 200).unwrap();
        bytes.extend(data);
        // The payload repeats the beginning of the key.
        bytes.extend(key.to_bytes().iter().take(7).cycle().take(200));
        bytes.truncate(stop);
        bytes.extend(key.reset(nonce));
        let before = received(&mut link, &host, &bytes, piece);
        prop_assert_eq!(before.last(), Some(&Note::Over(LinkError::Reset(nonce))));
        prop_assert_eq!(written(&mut link), nonce.to_vec());
        let mut next = Vec::new();
        hello(&mut next);
        ping(&mut next, 7);
        let after = received(&mut link, &host, &next, piece);
        prop_assert_eq!(after, vec![Note::Hello, Note::Open(7)]);
    }

    #[test]
    fn after_garbage_nothing_is_heard_before_a_reset(
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1..100usize,
    ) {
        let (mut link, host, key) = port();
        let mut bytes = vec![0xff; 8];
        bytes.extend(garbage);
        hello(&mut bytes);
        ping(&mut bytes, 1);
        let violation = WireError::UnexpectedKind(0xff);
        prop_assert_eq!(
            received(&mut link, &host, &bytes, piece),
            vec![Note::Over(LinkError::Violation(violation))]
        );
        let mut next = key.reset([9; 16]).to_vec();
        hello(&mut next);
        ping(&mut next, 2);
        prop_assert_eq!(
            received(&mut link, &host, &next, piece),
            vec![Note::Over(LinkError::Reset([9; 16])), Note::Hello, Note::Open(2)]
        );
    }

    /// Its sender may wait for the answer.
    #[test]
    fn a_frame_that_ends_like_a_key_begins_is_heard_at_once(
        before in 0..20usize,
        like_key in 1..16usize,
        piece in 1..40usize,
    ) {
        let (mut link, host, key) = port();
        let mut bytes = Vec::new();
        hello(&mut bytes);
        let mut payload = vec![b'x'; before];
        payload.extend(&key.to_bytes()[..like_key]);
        let stream = StreamId::new(6).unwrap();
        let channel = vmcell_wire::Channel::Stdin;
        bytes.extend(encode::data_header(stream, channel, payload.len()).unwrap());
        bytes.extend(&payload);
        prop_assert_eq!(
            received(&mut link, &host, &bytes, piece),
            vec![Note::Hello, Note::Data(payload)]
        );
        // A reset after it is still found.
        let notes = received(&mut link, &host, &key.reset([3; 16]), piece);
        prop_assert_eq!(notes, vec![Note::Over(LinkError::Reset([3; 16]))]);
    }
}

proptest! {
    /// The request ends like the old key begins, so its end is held back at
    /// first. What follows it may begin like either of them.
    #[test]
    fn a_reset_with_a_new_key_is_found_anywhere_and_one_with_the_old_key_is_data(
        like_old in 0..10usize,
        like_new in 0..16usize,
        stop in 0..80usize,
        piece in 1..300usize,
        nonce: [u8; 16],
    ) {
        let (mut link, host, old) = port();
        let new = ResetKey::new(*b"A newer key here");
        let old_text = old.to_bytes();
        let hostname = core::str::from_utf8(&old_text[..like_old]).unwrap();
        let mut bytes = Vec::new();
        hello(&mut bytes);
        renew(&mut bytes, 5, new, hostname);
        let stream = StreamId::new(6).unwrap();
        let mut payload = old.reset([8; 16]).to_vec();
        payload.extend(&new.to_bytes()[..like_new]);
        payload.resize(80, b'x');
        let channel = vmcell_wire::Channel::Stdin;
        // No key is long enough to complete this frame.
        bytes.extend(encode::data_header(stream, channel, 200).unwrap());
        payload.truncate(stop);
        bytes.extend(&payload);
        bytes.extend(new.reset(nonce));
        hello(&mut bytes);
        ping(&mut bytes, 7);
        let mut expected = vec![Note::Hello, Note::Open(5)];
        if stop > 0 {
            expected.push(Note::Data(payload));
        }
        expected.extend([
            Note::Over(LinkError::Reset(nonce)),
            Note::Hello,
            Note::Open(7),
        ]);
        prop_assert_eq!(received(&mut link, &host, &bytes, piece), expected);
    }

    /// A request on one link changes the key of the others, which may hold
    /// bytes back just then.
    #[test]
    fn a_key_that_changes_between_two_pieces_loses_no_byte(
        at in 0..240usize,
        piece in 1..100usize,
        nonce: [u8; 16],
    ) {
        let (mut link, host, old) = port();
        let new = ResetKey::new(*b"a key to another");
        let mut bytes = Vec::new();
        hello(&mut bytes);
        let payload: Vec<u8> = old.to_bytes()[..13].iter().copied().cycle().take(100).collect();
        let stream = StreamId::new(6).unwrap();
        let channel = vmcell_wire::Channel::Stdin;
        bytes.extend(encode::data_header(stream, channel, payload.len()).unwrap());
        bytes.extend(&payload);
        let mut before = bytes;
        let mut after = before.split_off(at.min(before.len()));
        after.extend(new.reset(nonce));
        let mut notes = received(&mut link, &host, &before, piece);
        link.session.change_reset_key(new.to_bytes());
        for note in received(&mut link, &host, &after, piece) {
            match (note, notes.last_mut()) {
                (Note::Data(more), Some(Note::Data(all))) => all.extend(more),
                (note, _) => notes.push(note),
            }
        }
        let over = Note::Over(LinkError::Reset(nonce));
        prop_assert_eq!(notes, vec![Note::Hello, Note::Data(payload), over]);
    }
}

#[test]
fn a_socket_ignores_a_new_key() {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (ours, host) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let mut link = Link::new(LinkId(0), ours, Medium::Socket);
    let key = ResetKey::new([7; 16]);
    let mut bytes = Vec::new();
    hello(&mut bytes);
    renew(&mut bytes, 5, key, "cell");
    renew(&mut bytes, 6, key, "cell");
    ping(&mut bytes, 7);
    link.session.change_reset_key(key.to_bytes());
    let opened = [5, 6, 7].map(Note::Open);
    let expected = [&[Note::Hello][..], &opened].concat();
    assert_eq!(received(&mut link, &host, &bytes, 1000), expected);
}

#[test]
fn the_first_host_needs_no_reset_and_the_one_after_a_hang_up_neither() {
    let (mut link, host, _) = port();
    let mut bytes = Vec::new();
    hello(&mut bytes);
    assert_eq!(received(&mut link, &host, &bytes, 1000), [Note::Hello]);
    drop(host);
    link.on_ready();
    let outcome = link.receive(&mut [0; 64], |_, _| Ok(()));
    assert_eq!(outcome, Err(LinkError::Disconnected));
    assert!(link.can_restart_session());
}
