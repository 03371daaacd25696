//! Valid items in any pieces, damaged ones, and any bytes.

use proptest::{prelude::*, sample::Index};
use vmcell_wire::{
    Decoder, Header, Item, Peer, Rlimits, RlimitsBuf, WireError, limits::MAX_PAYLOAD,
};

use crate::item::{conversation, write};

/// Decodes until the end or the first error, and checks the size of the buffer.
fn hold_no_more_than_arrived(peer: Peer, bytes: &[u8], step: usize) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(peer);
    for chunk in bytes.chunks(step) {
        let mut input = chunk;
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return Ok(()),
            }
        }
        // A vector doubles its capacity, independent of what a header claims.
        prop_assert!(decoder.buffer_capacity() <= 2 * bytes.len() + 64);
    }
    Ok(())
}

fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[start..end]);
        start = end;
    }
    chunks
}

proptest! {
    #[test]
    fn any_split_decodes_to_what_was_said(
        (peer, conversation) in conversation(),
        cuts in prop::collection::vec(any::<Index>(), 0..40),
    ) {
        let mut bytes = Vec::new();
        for item in &conversation {
            write(item, &mut bytes);
        }
        let mut expected = conversation.iter();
        let mut decoder = Decoder::new(peer);
        // The bytes of the current data frame so far.
        let mut gathered = Vec::new();
        for mut chunk in cut(&bytes, &cuts) {
            while let Some(item) = decoder.decode(&mut chunk).unwrap() {
                let Item::Data { stream, channel, bytes } = item else {
                    prop_assert!(gathered.is_empty());
                    prop_assert_eq!(Some(&item), expected.next());
                    continue;
                };
                gathered.extend_from_slice(bytes);
                if decoder.pending_data().is_none() {
                    let whole = Item::Data { stream, channel, bytes: &gathered };
                    prop_assert_eq!(Some(&whole), expected.next());
                    gathered.clear();
                }
            }
        }
        prop_assert_eq!(None, expected.next());
    }

    #[test]
    fn who_reads_what_is_missing_never_reads_past_a_frame((peer, conversation) in conversation()) {
        let mut decoder = Decoder::new(peer);
        for item in &conversation {
            let mut frame = Vec::new();
            write(item, &mut frame);
            let mut rest = &frame[..];
            while !rest.is_empty() {
                let missing = match decoder.missing() {
                    // Between frames nothing is missing; a header is next.
                    0 => Header::SIZE,
                    missing => missing,
                };
                prop_assert!(missing <= rest.len());
                let (mut chunk, after) = rest.split_at(missing);
                rest = after;
                let item = decoder.decode(&mut chunk).unwrap();
                prop_assert_eq!(item.is_some(), rest.is_empty());
            }
            prop_assert_eq!(decoder.missing(), 0);
        }
    }

    #[test]
    fn any_bytes_never_panic_and_never_hold_more_than_arrived(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        step in 1..200usize,
        from_guest in any::<bool>(),
    ) {
        let peer = if from_guest { Peer::Guest } else { Peer::Host };
        hold_no_more_than_arrived(peer, &bytes, step)?;
    }

    #[test]
    fn damaged_messages_never_panic_and_never_hold_more_than_arrived(
        (peer, conversation) in conversation(),
        damages in prop::collection::vec(any::<(Index, u8)>(), 1..8),
        step in 1..200usize,
    ) {
        let mut bytes = Vec::new();
        for item in &conversation {
            write(item, &mut bytes);
        }
        for (place, damage) in damages {
            if !bytes.is_empty() {
                *place.get_mut(&mut bytes) = damage;
            }
        }
        hold_no_more_than_arrived(peer, &bytes, step)?;
    }

    #[test]
    fn a_hostile_length_allocates_nothing(
        length in prop_oneof![any::<u32>(), 0..=MAX_PAYLOAD],
        kind in prop_oneof![any::<u8>(), 0..=0x07u8, 0x10..=0x33u8],
        id in 0..4u8,
    ) {
        for peer in [Peer::Host, Peer::Guest] {
            let mut decoder = Decoder::new(peer);
            let mut header = length.to_le_bytes().to_vec();
            header.extend_from_slice(&[id, 0, 0, kind]);
            let outcome = decoder.decode(&mut &header[..]).is_ok();
            prop_assert_eq!(decoder.buffer_capacity(), 0);
            prop_assert!(!outcome || length <= MAX_PAYLOAD);
            // Cancel, Ack and the ends have no payload.
            let bare = matches!(kind, 0x05 | 0x06 | 0x20..=0x22);
            prop_assert!(!outcome || !bare || length == 0);
        }
    }

    #[test]
    fn a_message_cut_short_is_refused(
        (peer, conversation) in conversation(),
        stop in any::<Index>(),
    ) {
        for item in conversation {
            let expected = match item {
                // Not an error of the link: it may be a request of a newer host.
                Item::Open { stream, .. } => Ok(Some(Item::OpenUnknown { stream })),
                Item::Hello(_) | Item::Event { .. } | Item::Close { .. } => {
                    Err(WireError::Malformed)
                }
                _ => continue,
            };
            let mut frame = Vec::new();
            write(&item, &mut frame);
            let length = frame.len() - Header::SIZE;
            if length > 1 {
                let shorter = 1 + stop.index(length - 1);
                frame.truncate(Header::SIZE + shorter);
                frame[..4].copy_from_slice(&(shorter as u32).to_le_bytes());
                let mut decoder = Decoder::new(peer);
                prop_assert_eq!(decoder.decode(&mut &frame[..]), expected);
            }
        }
    }

    #[test]
    fn resource_limits_come_whole_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut message = vec![bytes.len() as u8];
        message.extend_from_slice(&bytes);
        let limits = postcard::from_bytes::<Rlimits<'_>>(&message);
        prop_assert_eq!(limits.is_ok(), bytes.len() % 17 == 0);
        if let Ok(limits) = limits {
            let mut again = RlimitsBuf::new();
            limits.iter().for_each(|limit| again.push(limit));
            prop_assert_eq!(again.as_rlimits(), limits);
            prop_assert_eq!(limits.iter().count(), bytes.len() / 17);
        }
    }
}
