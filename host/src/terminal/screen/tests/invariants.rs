//! Invariants that hold for any output, and random output that tests them.

use proptest::prelude::*;
use vmcell_tree::is_hidden;

use crate::terminal::screen::{cell::Part, emulator::Emulator, grid::Grid};

/// Checks the invariants that other code relies on.
pub(super) fn assert_invariants(emulator: &Emulator) {
    let size = emulator.size();
    let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
    let display = &emulator.display;
    for grid in [&display.active, &display.inactive] {
        assert_eq!((grid.columns, grid.rows.len()), (columns, rows));
        assert_whole_characters(grid);
        assert!(grid.saved.row < rows && grid.saved.column < columns);
    }
    assert!(display.cursor.row < rows && display.cursor.column < columns);
    let margins = &display.margins;
    assert!(margins.rows.start < margins.rows.end && margins.rows.end <= rows);
    assert!(margins.columns.start < margins.columns.end && margins.columns.end <= columns);
    assert!(margins.left_right_mode || margins.columns == (0..columns));
    let shown = [
        emulator.text().replace('\n', ""),
        display.title.text().into(),
    ];
    let lines = emulator.scrollback(usize::MAX);
    for text in shown.iter().chain(&lines) {
        let printable = |character: char| !character.is_control() && !is_hidden(character);
        assert!(text.chars().all(printable), "{text:?}");
    }
    assert!(display.title.text().chars().count() <= 256);
}

fn assert_whole_characters(grid: &Grid) {
    for row in &grid.rows {
        let parts: Vec<_> = row.cells().iter().map(|cell| cell.part()).collect();
        assert!(parts.len() <= grid.columns);
        for (column, part) in parts.iter().enumerate() {
            let before = column.checked_sub(1).map(|before| parts[before]);
            let after = parts.get(column + 1);
            assert_eq!(*part == Part::Right, before == Some(Part::Left));
            assert!(*part != Part::Left || after == Some(&Part::Right));
        }
    }
}

/// Output with more control sequences than random bytes have.
pub(super) fn printed() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        Just(String::new()),
        (0..12u32).prop_map(|number| number.to_string()),
        Just("65535".to_owned()),
        Just("99999999999".to_owned()),
    ];
    let numbers = prop::collection::vec(number, 0..4).prop_map(|numbers| numbers.join(";"));
    let mode = prop_oneof![
        Just(4u16),
        Just(6),
        Just(7),
        Just(20),
        Just(25),
        Just(47),
        Just(69),
        Just(1047),
        Just(1048),
        Just(1049)
    ];
    let piece = prop_oneof![
        4 => "[a-z ]{0,9}".prop_map(String::into_bytes),
        3 => "[漢字🦀e\u{301}\u{308}\u{202e}\u{200d}é]{0,6}".prop_map(String::into_bytes),
        2 => "[\r\n\t\u{8}\u{b}\u{e}\u{f}]{1,3}".prop_map(String::into_bytes),
        3 => (numbers, "[@-~]").prop_map(|(numbers, last)| format!("\x1b[{numbers}{last}").into_bytes()),
        // Small movements and deletions.
        6 => (1..5u8, "[@PXKGDCb]").prop_map(|(number, last)| format!("\x1b[{number}{last}").into_bytes()),
        2 => (mode, any::<bool>(), any::<bool>()).prop_map(|(mode, private, on)| {
            format!("\x1b[{}{mode}{}", if private { "?" } else { "" }, if on { 'h' } else { 'l' }).into_bytes()
        }),
        1 => (0..9u8, 40..49u8).prop_map(|(style, colour)| format!("\x1b[{style};{colour}m").into_bytes()),
        1 => "\x1b[6789DEHMNOZcno=>]|\x1b[()*+][0AB]|\x1b#8".prop_map(String::into_bytes),
        1 => (1..6u8, 1..10u8).prop_map(|(left, right)| format!("\x1b[?69h\x1b[{left};{right}s").into_bytes()),
        1 => (0..3u8, "\"q|'}|'~| @| A").prop_map(|(number, last)| format!("\x1b[{number}{last}").into_bytes()),
        1 => (0..3u8, "[JK]").prop_map(|(number, last)| format!("\x1b[?{number}{last}").into_bytes()),
        1 => (prop::array::uniform4(0..9u8), "42;|").prop_flat_map(|(numbers, fill)| {
            let numbers = numbers.map(|number| number.to_string()).join(";");
            let last = if fill.is_empty() { "z{" } else { "x" };
            prop::sample::select(last.chars().collect::<Vec<_>>())
                .prop_map(move |last| format!("\x1b[{fill}{numbers}${last}").into_bytes())
        }),
        1 => "\x1b[]PX^_][ -~\u{202e}é]{0,9}(\x07|\x1b\\\\)?".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_is_printed_leaves_a_screen_that_is_sound(
        printed in printed(), columns in 1..9u16, rows in 1..6u16
    ) {
        assert_invariants(&super::emulate(columns, rows, printed));
    }

    #[test]
    fn whatever_bytes_come_they_leave_a_screen_that_is_sound(
        printed in prop::collection::vec(any::<u8>(), 0..400)
    ) {
        assert_invariants(&super::emulate(7, 4, printed));
    }

    #[test]
    fn it_does_not_matter_where_bytes_are_cut(printed in printed(), cut in 1..9usize) {
        let mut emulator = Emulator::new(super::size(8, 4), 1000);
        for piece in printed.chunks(cut) {
            emulator.feed(piece);
        }
        let whole = super::emulate(8, 4, &printed);
        prop_assert_eq!(emulator.screen(), whole.screen());
        prop_assert_eq!(emulator.scrollback(usize::MAX), whole.scrollback(usize::MAX));
        prop_assert_eq!(emulator.modes(), whole.modes());
    }
}
