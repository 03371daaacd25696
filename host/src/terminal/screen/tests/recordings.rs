use std::{fs, path::PathBuf};

use super::{emulate, screen, size};
use crate::terminal::screen::{Emulator, Screen, ScreenHealth};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn recording(name: &str) -> Vec<u8> {
    fs::read(folder().join(name).with_extension("raw")).unwrap()
}

/// Describes a screen in the format of the expected files, which come from tmux.
fn described(screen: &Screen) -> String {
    let shown = if screen.cursor.visible {
        "visible"
    } else {
        "hidden"
    };
    let which = if screen.alternate {
        "alternate"
    } else {
        "main"
    };
    let (row, column) = (screen.cursor.row, screen.cursor.column);
    format!(
        "cursor {row} {column} {shown}\n{which} screen\n{}\n",
        screen.text()
    )
}

/// Every recording, by name.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let raw = paths.filter(|path| path.extension().is_some_and(|extension| extension == "raw"));
    raw.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn recorded_programs_look_the_way_tmux_shows_them() {
    let names = names();
    assert!(names.len() >= 16, "recordings are missing: {names:?}");
    for name in names {
        let expected = fs::read_to_string(folder().join(&name).with_extension("txt")).unwrap();
        assert_eq!(
            described(&screen(80, 24, recording(&name))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn recorded_programs_look_the_same_wherever_they_are_cut() {
    for name in names() {
        let printed = recording(&name);
        let whole = screen(80, 24, &printed);
        for cut in [1, 2, 3, 7, 64, 1000] {
            let pieces = Screen::render(size(80, 24), printed.chunks(cut));
            assert_eq!(pieces, whole, "{name} in pieces of {cut}");
        }
    }
}

#[test]
fn what_vim_and_less_ask_for_is_known() {
    let vim = emulate(80, 24, recording("vim")).modes();
    assert!(vim.alternate_screen && vim.application_cursor_keys);
    let left = emulate(80, 24, recording("vim-quit")).modes();
    assert!(!left.alternate_screen && !left.application_cursor_keys);
    assert!(emulate(80, 24, recording("less")).is_alternate());
}

#[test]
fn a_title_of_bash_is_the_title() {
    assert_eq!(screen(80, 24, recording("bash")).title, "a title");
}

#[test]
fn what_scrolled_away_behind_a_progress_bar_is_kept() {
    let emulator = emulate(80, 24, recording("progress"));
    let lines = emulator.scrollback(200);
    assert!(lines.iter().any(|line| line == "Fetched 42 files"));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("Unpacking package-30 "))
    );
    assert!(!lines.iter().any(|line| line.contains("Progress:")));
}

#[test]
fn a_screen_with_a_gap_is_incomplete_until_it_is_cleared() {
    let vim = recording("vim");
    let mut emulator = Emulator::new(size(80, 24), 0);
    assert_eq!(emulator.screen().health, ScreenHealth::Good);
    emulator.feed(&vim[..1000]);
    emulator.note_gap();
    emulator.feed(&vim[1200..1300]);
    assert_eq!(emulator.screen().health, ScreenHealth::Incomplete);
    emulator.feed(b"\x1b[H\x1b[2J");
    assert_eq!(emulator.screen().health, ScreenHealth::Good);
    emulator.feed(b"\x1b[?1049l");
    assert_eq!(
        emulator.screen().health,
        ScreenHealth::Incomplete,
        "the other one"
    );
    emulator.feed(b"\x1bc");
    assert_eq!(emulator.screen().health, ScreenHealth::Good);
}

#[test]
fn what_comes_behind_a_gap_is_not_taken_for_the_end_of_what_came_before() {
    let mut emulator = emulate(80, 24, "\x1b]0;a title that does not end");
    emulator.note_gap();
    emulator.feed(b"text");
    assert_eq!(emulator.text(), "text");
}
