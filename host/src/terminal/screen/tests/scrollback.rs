use std::fmt::Write;

use super::{emulate, size};
use crate::terminal::screen::Emulator;

fn numbers(last: u32) -> String {
    (1..=last).fold(String::new(), |mut text, number| {
        let _ = write!(text, "\r\n{number}");
        text
    })
}

#[test]
fn lines_that_leave_at_the_top_are_kept_in_order() {
    let emulator = emulate(80, 5, numbers(100));
    assert_eq!(emulator.text(), "96\n97\n98\n99\n100");
    assert_eq!(emulator.scrollback(3), ["93", "94", "95"]);
    assert_eq!(emulator.scrollback(usize::MAX).len(), 96);
    assert_eq!(emulator.scrollback(0), [""; 0]);
}

#[test]
fn only_the_last_lines_are_kept() {
    let mut emulator = Emulator::new(size(80, 5), 10);
    emulator.feed(numbers(100).as_bytes());
    assert_eq!(emulator.scrollback(usize::MAX).len(), 10);
    assert_eq!(emulator.scrollback(1), ["95"]);
    let mut without = Emulator::new(size(80, 5), 0);
    without.feed(numbers(100).as_bytes());
    assert!(without.scrollback(usize::MAX).is_empty());
}

#[test]
fn clearing_it_leaves_the_screen_as_it_is() {
    let mut emulator = emulate(80, 5, numbers(100));
    let before = emulator.screen();
    emulator.clear_scrollback();
    assert!(emulator.scrollback(200).is_empty());
    assert_eq!(emulator.screen(), before);
    assert!(emulator.take_replies().is_empty());
    emulator.feed(b"\r\nnext");
    assert_eq!(emulator.scrollback(200), ["96"]);
}

#[test]
fn the_alternate_screen_and_regions_below_the_top_leave_nothing_behind() {
    let text = numbers(50);
    assert!(
        emulate(80, 5, format!("\x1b[?1049h{text}"))
            .scrollback(9)
            .is_empty()
    );
    assert!(
        emulate(80, 5, format!("\x1b[2;5r\x1b[5;1H{text}"))
            .scrollback(9)
            .is_empty()
    );
    let below = emulate(80, 5, format!("\x1b[5;1Hstatus\x1b[1;4r{text}"));
    assert_eq!(below.scrollback(1), ["46"]);
    assert_eq!(below.text(), "47\n48\n49\n50\nstatus");
}
