//! Whatever bytes arrive, and however they are cut, the decoder neither panics
//! nor holds more than arrived, and says the same.
//!
//! The input is read as
//!
//! ```text
//! byte   0      1 .. 1+n                  rest
//!        n      sizes of the first n      the bytes of the link
//!               chunks, zero included
//! ```
//!
//! and what is behind the last size is one more chunk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_wire::{Channel, Decoder, Item, Peer, StreamId, WireError, limits::MAX_PAYLOAD};

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
});

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
