//! Credit is never lost and never exceeded, whatever the order of events.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::{
    Channel, WireError,
    credit::{ReceiveWindow, SendWindow},
    limits::MAX_WINDOW,
};

proptest! {
    #[test]
    fn a_reader_that_keeps_reading_gets_everything(
        window in 1..5000u32,
        pieces in prop::collection::vec((1..4000u32, 1..4000u32), 1..200),
    ) {
        let mut sender = SendWindow::new(Channel::Stdout, window);
        let mut receiver = ReceiveWindow::new(Channel::Stdout, window);
        let mut buffered = 0;
        for (wanted, read) in pieces {
            let sent = sender.take(wanted);
            receiver.arrived(sent).unwrap();
            buffered += sent;
            prop_assert!(buffered <= window);

            let read = read.min(buffered);
            buffered -= read;
            if let Some(grant) = receiver.consumed(read) {
                sender.granted(grant).unwrap();
            }
            // No deadlock: an empty receiver means that the sender may send.
            prop_assert!(buffered > 0 || sender.available() > 0);
        }
    }

    #[test]
    fn lost_links_neither_lose_credit_nor_add_to_it(
        window in 1..5000u32,
        pieces in prop::collection::vec((1..4000u32, 1..4000u32, prop::bool::weighted(0.2)), 1..200),
    ) {
        let mut sender = SendWindow::new(Channel::Stdout, window);
        let mut receiver = ReceiveWindow::new(Channel::Stdout, window);
        let mut buffered = 0;
        for (wanted, read, lost) in pieces {
            let sent = sender.take(wanted);
            if lost {
                // These bytes are lost, and granted credit may be too; bytes that
                // were received but not read fill the window.
                let free = window - buffered;
                sender = SendWindow::new(Channel::Stdout, free);
                receiver = ReceiveWindow::resumed(Channel::Stdout, window, free);
            } else {
                receiver.arrived(sent).unwrap();
                buffered += sent;
            }
            prop_assert!(buffered <= window);

            let read = read.min(buffered);
            buffered -= read;
            if let Some(grant) = receiver.consumed(read) {
                sender.granted(grant).unwrap();
            }
            prop_assert!(buffered > 0 || sender.available() > 0);
        }
    }
}

#[test]
fn an_overrun_is_noticed() {
    let mut receiver = ReceiveWindow::new(Channel::Stderr, 10);
    receiver.arrived(10).unwrap();
    assert_eq!(
        receiver.arrived(1),
        Err(WireError::Overrun(Channel::Stderr))
    );
}

#[test]
fn credit_past_the_largest_window_is_noticed() {
    let mut sender = SendWindow::new(Channel::Stdin, MAX_WINDOW);
    assert_eq!(
        sender.granted(1),
        Err(WireError::CreditOverflow(Channel::Stdin))
    );
    assert_eq!(
        sender.granted(u32::MAX),
        Err(WireError::CreditOverflow(Channel::Stdin))
    );
}
