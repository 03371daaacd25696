//! For arbitrary input and any split of it, the decoder does not panic, does not
//! buffer more than arrived, and returns the same items; and the scanner finds the
//! same marks as a naive search.
//!
//! The input is read as
//!
//! ```text
//! byte   0      1 .. 1+n                  rest
//!        n      sizes of the first n      the bytes of the link
//!               chunks, zero included
//! ```
//!
//! and the bytes after the last size are one more chunk. The first 16 bytes of the
//! link are also the mark that the scanner searches for in the others.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_wire::{
    Channel, Decoder, Item, Peer, StreamId, WireError,
    limits::MAX_PAYLOAD,
    reset::{RESET_PART, ResetKey, Scanned, Scanner},
};

fuzz_target!(|input: &[u8]| {
    let Some((&count, rest)) = input.split_first() else {
        return;
    };
    let Some((sizes, bytes)) = rest.split_at_checked(count.into()) else {
        return;
    };
    for peer in [Peer::Host, Peer::Guest] {
        let whole = Decoded::via_decoder(peer, [bytes]);
        assert_eq!(whole, Decoded::via_decoder(peer, chunks(sizes, bytes)));
        assert_eq!(whole, Decoded::via_decoder(peer, bytes.chunks(1)));
        assert_eq!(whole, Decoded::with_direct_data(peer, chunks(sizes, bytes)));
    }
    // With fewer distinct values a fuzzer finds marks, and prefixes of them,
    // without guessing 16 bytes.
    for mask in [0xff, 0x03, 0x01] {
        let masked: Vec<u8> = bytes.iter().map(|byte| byte & mask).collect();
        if let Some((mark, bytes)) = masked.split_first_chunk() {
            for mark in [*mark, ResetKey::new(*mark).to_bytes()] {
                let chunks = chunks(sizes, bytes);
                check_scanner(mark, bytes, &chunks, false);
                check_scanner(mark, bytes, &chunks, true);
            }
        }
    }
});

/// Checks that after each chunk the scanner has returned everything but the
/// longest suffix that is a prefix of the mark, and that too if it is released.
fn check_scanner(mark: [u8; RESET_PART], bytes: &[u8], chunks: &[&[u8]], release: bool) {
    let mut scanner = Scanner::new(mark);
    let is_mark = |window: &[u8]| window == mark;
    // The offset after the last mark, or 0.
    let mut since = 0;
    let mut out = 0;
    let mut arrived = 0;
    for chunk in chunks {
        let mut input = *chunk;
        arrived += chunk.len();
        loop {
            match scanner.scan(&mut input) {
                Scanned::Other(other) => {
                    assert!(release || !other.is_empty(), "a piece of nothing");
                    assert_eq!(bytes.get(out..out + other.len()), Some(other));
                    out += other.len();
                }
                Scanned::Mark => {
                    let at = bytes[since..].windows(RESET_PART).position(is_mark);
                    let start = since + at.expect("there is no mark");
                    since = start + RESET_PART;
                    assert!(out == start || release && (start..since).contains(&out));
                    out = since;
                }
                Scanned::Nothing => break,
            }
        }
        assert!(input.is_empty(), "the scanner stopped before the end");
        assert_eq!(scanner.held(), arrived - out);
        let open = &bytes[since..arrived];
        assert!(!open.windows(RESET_PART).any(is_mark), "a mark was missed");
        if release {
            assert_eq!(scanner.release(), &bytes[out..arrived]);
            out = arrived;
        } else {
            let held = (0..RESET_PART)
                .rev()
                .find(|&count| open.ends_with(&mark[..count]));
            assert_eq!(Some(scanner.held()), held);
        }
    }
}

fn chunks<'a>(sizes: &[u8], mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for &size in sizes {
        let (chunk, rest) = bytes.split_at(bytes.len().min(size.into()));
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

/// The results of a decoder, independent of how the input was split.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    items: Vec<DecodedItem>,
    /// Whether the last item is an incomplete data frame.
    inside_data: bool,
    error: Option<WireError>,
    /// The missing part of the last frame.
    pending: Option<(StreamId, Channel, usize)>,
}

#[derive(Debug, PartialEq)]
enum DecodedItem {
    /// The part of a data frame that has arrived.
    Data(StreamId, Channel, Vec<u8>),
    /// Any other item, as its `Debug` text, which contains every field.
    Control(String),
}

impl Decoded {
    /// Passes all bytes to the decoder, as the agent does.
    fn via_decoder<'a>(peer: Peer, chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::decode(peer, chunks, |_, _, _| {})
    }

    /// Reads the missing part of a data frame directly from the link, as the host
    /// does with large frames.
    fn with_direct_data<'a>(peer: Peer, chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::decode(peer, chunks, |decoded, decoder, input| {
            let Some((stream, channel, remaining)) = decoder.pending_data() else {
                return;
            };
            let (taken, rest) = input.split_at(input.len().min(remaining));
            *input = rest;
            if !taken.is_empty() {
                decoder.received(taken.len());
                decoded.add_data(stream, channel, taken);
                decoded.inside_data = decoder.pending_data().is_some();
            }
        })
    }

    fn decode<'a>(
        peer: Peer,
        chunks: impl IntoIterator<Item = &'a [u8]>,
        before_each_item: impl Fn(&mut Self, &mut Decoder, &mut &'a [u8]),
    ) -> Self {
        let mut decoded = Self::default();
        let mut decoder = Decoder::new(peer);
        let mut arrived = 0;
        for chunk in chunks {
            arrived += chunk.len();
            let mut input = chunk;
            loop {
                before_each_item(&mut decoded, &mut decoder, &mut input);
                match decoder.decode(&mut input) {
                    Ok(Some(item)) => decoded.add(item),
                    Ok(None) => break,
                    Err(error) => {
                        decoded.error = Some(error);
                        return decoded;
                    }
                }
                decoded.inside_data = decoder.pending_data().is_some();
            }
            assert!(input.is_empty(), "the decoder stopped before the end");
            // A vector doubles its capacity, independent of what a header claims.
            let most = arrived.min(MAX_PAYLOAD as usize);
            assert!(
                decoder.buffer_capacity() <= 2 * most + 64,
                "held {}",
                decoder.buffer_capacity()
            );
        }
        decoded.pending = decoder.pending_data();
        decoded
    }

    fn add(&mut self, item: Item<'_>) {
        match item {
            Item::Data {
                stream,
                channel,
                bytes,
            } => self.add_data(stream, channel, bytes),
            control => self
                .items
                .push(DecodedItem::Control(format!("{control:?}"))),
        }
    }

    fn add_data(&mut self, stream: StreamId, channel: Channel, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "data of nothing");
        match self.items.last_mut() {
            Some(DecodedItem::Data(last_stream, last_channel, so_far)) if self.inside_data => {
                assert_eq!((*last_stream, *last_channel), (stream, channel));
                so_far.extend_from_slice(bytes);
            }
            _ => self
                .items
                .push(DecodedItem::Data(stream, channel, bytes.to_vec())),
        }
    }
}
