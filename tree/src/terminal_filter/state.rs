use std::collections::BTreeSet;

/// A change of the terminal's state. Undone in this order: the alternate screen
/// is left before state that both screens share is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Text is part of a hyperlink.
    Link,
    /// Colours and other text attributes.
    Style,
    /// Another character set.
    CharacterSet,
    /// Insert mode: printed text moves what follows.
    Insertion,
    /// Keypad application mode.
    Keypad,
    /// The mode at this index of [`MODES`].
    Mode(usize),
    /// A scrolling region.
    Margins,
    /// The shape of the cursor.
    CursorShape,
    /// The colour palette.
    Palette,
    /// The default foreground colour.
    Foreground,
    /// The default background colour.
    Background,
    /// The colour of the cursor.
    CursorColour,
    /// The title of the window.
    Title,
}

/// A private mode that programs may change.
struct Mode {
    number: u16,
    /// The value to restore, if the mode has a lasting state.
    normal: Option<bool>,
}

const fn off(number: u16) -> Mode {
    Mode {
        number,
        normal: Some(false),
    }
}

const fn on(number: u16) -> Mode {
    Mode {
        number,
        normal: Some(true),
    }
}

/// A mode without state, or whose state something else restores.
const fn momentary(number: u16) -> Mode {
    Mode {
        number,
        normal: None,
    }
}

/// Whether the cursor blinks.
const CURSOR_BLINK: u16 = 12;

/// Modes that affect drawing, cursor keys, the mouse or bracketed paste. Modes
/// and keyboard protocols that change what other keys send do not pass, because
/// the detach key would not be recognised any more.
const MODES: [Mode; 24] = [
    off(2026), // Synchronized output.
    off(1),    // Application cursor keys.
    off(66),   // Application keypad.
    off(5),    // Reverse video.
    off(6),    // Origin mode.
    on(7),     // Autowrap.
    off(45),   // Reverse wraparound.
    off(69),   // Left and right margins.
    momentary(CURSOR_BLINK),
    off(9), // Mouse reports, in several protocols.
    off(1000),
    off(1002),
    off(1003),
    off(1005),
    off(1006),
    off(1015),
    off(1016),
    off(1004),       // Focus reports.
    off(2004),       // Bracketed paste.
    momentary(1048), // Saved cursor.
    off(47),         // Alternate screen.
    off(1047),
    off(1049),
    on(25), // Cursor visibility.
];

/// All changes that are not undone yet.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeSet<Change>);

impl Changes {
    pub(super) fn record(&mut self, change: Change) {
        self.0.insert(change);
    }

    pub(super) fn clear(&mut self, change: Change) {
        self.0.remove(&change);
    }

    /// Returns whether this change has not been made yet.
    pub(super) fn is_new(&self, change: Change) -> bool {
        !self.0.contains(&change)
    }

    /// Records that a mode was set or reset. Returns `false` if it must not be
    /// changed.
    pub(super) fn record_mode(&mut self, number: u16, on: bool) -> bool {
        let Some(index) = MODES.iter().position(|mode| mode.number == number) else {
            return false;
        };
        let normal = MODES.get(index).and_then(|mode| mode.normal);
        if number == CURSOR_BLINK {
            self.record(Change::CursorShape);
        } else if normal.is_none_or(|normal| normal == on) {
            self.clear(Change::Mode(index));
        } else {
            self.record(Change::Mode(index));
        }
        true
    }

    /// Records a full reset, which undoes everything but the title.
    pub(super) fn reset(&mut self) {
        self.0.retain(|change| *change == Change::Title);
    }

    /// Returns the sequences that undo all changes, and forgets the changes.
    pub(super) fn take_undo_sequences(&mut self) -> Vec<u8> {
        let changes = std::mem::take(&mut self.0);
        changes.into_iter().flat_map(undo).collect()
    }
}

fn undo(change: Change) -> Vec<u8> {
    let sequence: &[u8] = match change {
        Change::Link => b"\x1b]8;;\x1b\\",
        Change::Style => b"\x1b[m",
        Change::CharacterSet => b"\x0f\x1b(B",
        Change::Insertion => b"\x1b[4l",
        Change::Keypad => b"\x1b>",
        Change::Mode(index) => return undo_mode(index),
        // Setting margins moves the cursor.
        Change::Margins => b"\x1b7\x1b[r\x1b8",
        Change::CursorShape => b"\x1b[0 q",
        Change::Palette => b"\x1b]104\x1b\\",
        Change::Foreground => b"\x1b]110\x1b\\",
        Change::Background => b"\x1b]111\x1b\\",
        Change::CursorColour => b"\x1b]112\x1b\\",
        Change::Title => b"\x1b[23;0t",
    };
    sequence.to_vec()
}

fn undo_mode(index: usize) -> Vec<u8> {
    match MODES.get(index) {
        Some(Mode {
            number,
            normal: Some(on),
        }) => {
            let last = if *on { 'h' } else { 'l' };
            format!("\x1b[?{number}{last}").into_bytes()
        }
        _ => Vec::new(),
    }
}
