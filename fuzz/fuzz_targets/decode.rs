//! Whatever bytes arrive, and however they are cut, the decoder neither panics
//! nor holds more than arrived, and says the same; and the scanner finds what a
//! plain search finds.
//!
//! The input is read as
//!
//! ```text
//! byte   0      1 .. 1+n                  rest
//!        n      sizes of the first n      the bytes of the link
//!               chunks, zero included
//! ```
//!
//! and what is behind the last size is one more chunk. The first 16 bytes of the
//! link are also the mark that the scanner looks for in the others.
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
        let whole = Heard::through_decoder(peer, [bytes]);
        assert_eq!(whole, Heard::through_decoder(peer, chunks(sizes, bytes)));
        assert_eq!(whole, Heard::through_decoder(peer, bytes.chunks(1)));
        assert_eq!(
            whole,
            Heard::with_data_past_decoder(peer, chunks(sizes, bytes))
        );
    }
    // With fewer values a fuzzer comes across marks, and beginnings of them,
    // without having to guess 16 bytes.
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

/// After each chunk everything is out but the longest end of the bytes that is
/// a beginning of the mark, and that too if it is released.
fn check_scanner(mark: [u8; RESET_PART], bytes: &[u8], chunks: &[&[u8]], release: bool) {
    let mut scanner = Scanner::new(mark);
    let is_mark = |window: &[u8]| window == mark;
    // Behind the last mark, or at the start.
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

/// Everything that came out of a decoder, with nothing left that depends on
/// where the bytes were cut.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    said: Vec<Said>,
    /// Whether the last thing said is a data frame of which more may come.
    inside_data: bool,
    error: Option<WireError>,
    /// What the last frame still lacks.
    pending: Option<(StreamId, Channel, usize)>,
}

#[derive(Debug, PartialEq)]
enum Said {
    /// All of a data frame that has arrived.
    Data(StreamId, Channel, Vec<u8>),
    /// Anything else. Its debug text shows every field.
    Control(String),
}

impl Heard {
    /// The decoder gets all bytes, as the agent does it.
    fn through_decoder<'a>(peer: Peer, chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::listen(peer, chunks, |_, _, _| {})
    }

    /// The reader takes what is missing of a data frame from the link itself,
    /// as the host does it with large ones.
    fn with_data_past_decoder<'a>(peer: Peer, chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::listen(peer, chunks, |heard, decoder, input| {
            let Some((stream, channel, remaining)) = decoder.pending_data() else {
                return;
            };
            let (taken, rest) = input.split_at(input.len().min(remaining));
            *input = rest;
            if !taken.is_empty() {
                decoder.received(taken.len());
                heard.add_data(stream, channel, taken);
                heard.inside_data = decoder.pending_data().is_some();
            }
        })
    }

    fn listen<'a>(
        peer: Peer,
        chunks: impl IntoIterator<Item = &'a [u8]>,
        before_each_item: impl Fn(&mut Self, &mut Decoder, &mut &'a [u8]),
    ) -> Self {
        let mut heard = Self::default();
        let mut decoder = Decoder::new(peer);
        let mut arrived = 0;
        for chunk in chunks {
            arrived += chunk.len();
            let mut input = chunk;
            loop {
                before_each_item(&mut heard, &mut decoder, &mut input);
                match decoder.decode(&mut input) {
                    Ok(Some(item)) => heard.add(item),
                    Ok(None) => break,
                    Err(error) => {
                        heard.error = Some(error);
                        return heard;
                    }
                }
                heard.inside_data = decoder.pending_data().is_some();
            }
            assert!(input.is_empty(), "the decoder stopped before the end");
            // A vector doubles; it never follows what a header claims.
            let most = arrived.min(MAX_PAYLOAD as usize);
            assert!(decoder.held() <= 2 * most + 64, "held {}", decoder.held());
        }
        heard.pending = decoder.pending_data();
        heard
    }

    fn add(&mut self, item: Item<'_>) {
        match item {
            Item::Data {
                stream,
                channel,
                bytes,
            } => self.add_data(stream, channel, bytes),
            control => self.said.push(Said::Control(format!("{control:?}"))),
        }
    }

    fn add_data(&mut self, stream: StreamId, channel: Channel, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "data of nothing");
        match self.said.last_mut() {
            Some(Said::Data(last_stream, last_channel, so_far)) if self.inside_data => {
                assert_eq!((*last_stream, *last_channel), (stream, channel));
                so_far.extend_from_slice(bytes);
            }
            _ => self.said.push(Said::Data(stream, channel, bytes.to_vec())),
        }
    }
}
