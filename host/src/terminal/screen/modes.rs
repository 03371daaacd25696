/// The terminal modes that a program has set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Pasted text is enclosed in markers.
    pub(crate) bracketed_paste: bool,
    /// Cursor keys send their application sequences (DECCKM).
    pub(crate) application_cursor_keys: bool,
    /// The keypad sends its application sequences (DECNKM).
    pub(crate) application_keypad: bool,
    /// The alternate screen, which has no scrollback, is shown.
    pub(crate) alternate_screen: bool,
    /// Which mouse events are reported.
    pub(crate) mouse: MouseTracking,
    /// Focus changes are reported.
    pub(crate) focus_events: bool,
}

/// Which mouse events a program has requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MouseTracking {
    /// None.
    #[default]
    Off,
    /// Clicks.
    Clicks,
    /// Clicks, and motion while a button is held.
    Drags,
    /// Clicks and all motion.
    Motion,
}
