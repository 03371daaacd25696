//! For arbitrary terminal output and any split of it, the screen is the same,
//! contains no control characters, and can be rendered.
//!
//! The input is read as
//!
//! ```text
//! byte   0          1       2          3 ..
//!        columns    rows    size of    terminal output
//!                           a piece
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell::terminal::{Screen, TerminalSize};

fuzz_target!(|input: &[u8]| {
    let Some((&[columns, rows, piece], printed)) = input.split_first_chunk() else {
        return;
    };
    let size = TerminalSize::clamped((columns % 40).into(), (rows % 12).into());
    let screen = Screen::render(size, [printed]);
    let pieces = printed.chunks(usize::from(piece).max(1));
    assert_eq!(screen, Screen::render(size, pieces));

    assert!(screen.cursor.column < size.columns && screen.cursor.row < size.rows);
    assert_eq!(screen.lines().len(), usize::from(size.rows));
    let mut text = screen.lines().collect::<String>() + &screen.title;
    text.retain(|character| character.is_control() || character == '\u{202e}');
    assert_eq!(text, "");
    for row in 0..size.rows {
        for span in screen.spans(row) {
            assert!(span.column + span.columns <= size.columns);
        }
    }
    let svg = screen.to_svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    let picture = screen.to_picture();
    assert_eq!(picture.rgba.len(), picture.width * picture.height * 4);
});
