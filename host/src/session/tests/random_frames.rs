//! Random frames and bytes.

use super::*;

/// Frames that are nearly valid, which get further than random bytes.
fn nearly_a_frame() -> impl Strategy<Value = Vec<u8>> {
    let kinds = vec![
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x20, 0x21, 0x22, 0x30, 0x31, 0x32,
        0x40,
    ];
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        // Started, and a gap of one byte.
        Just(vec![0, 9, 9]),
        Just(vec![2, 0, 1]),
        Just(vec![1]),
        any::<u16>().prop_map(|credit| u32::from(credit).to_le_bytes().to_vec()),
    ];
    let length = prop::option::weighted(0.05, any::<u32>());
    (prop::sample::select(kinds), 0..4u8, payload, length).prop_map(
        |(kind, stream, payload, length)| {
            let length = length.unwrap_or(payload.len() as u32);
            let mut frame = length.to_le_bytes().to_vec();
            frame.extend([stream, 0, 0, kind]);
            frame.extend(payload);
            frame
        },
    )
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => nearly_a_frame(),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_a_guest_sends_every_wait_has_an_end(noise in noise()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let all = async {
            let (session, mut guest) = connect().await;
            let mut streams = Vec::new();
            for _ in 0..3 {
                streams.push(open(&session, &mut guest).await);
            }
            guest.send(&noise).await;
            drop(guest);
            let mut error = session.link_error();
            let error = error.wait_for(Option::is_some).await.unwrap().unwrap();
            for stream in &mut streams {
                let (bytes, end) = read_to_end(stream).await;
                assert!(bytes.len() <= noise.len());
                // An exit may have been miscounted before the link was lost.
                let miscounted = LinkError::Violation(WireError::Malformed);
                assert!(end.err().is_none_or(|told| told == error || told == miscounted));
                assert!(!stream.input().write(Bytes::from_static(&[0; 100_000])).await);
            }
            assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Link(error));
        };
        // The session is stuck if this does not end soon.
        let in_time = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), all).await
        });
        prop_assert!(in_time.is_ok(), "somebody waits forever");
    }
}
