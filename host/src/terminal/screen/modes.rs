/// What a program has asked its terminal for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Pasted text shall be marked as such.
    pub(crate) bracketed_paste: bool,
    /// Arrow keys shall send what applications want.
    pub(crate) application_cursor_keys: bool,
    /// So shall the keypad.
    pub(crate) application_keypad: bool,
    /// The program draws on the screen that has no scrollback.
    pub(crate) alternate_screen: bool,
    /// What the program wants to hear of the mouse.
    pub(crate) mouse: MouseTracking,
    /// The program wants to hear when its window gets or loses the focus.
    pub(crate) focus_events: bool,
}

/// What a program wants to hear of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MouseTracking {
    /// Nothing.
    #[default]
    Off,
    /// Clicks.
    Clicks,
    /// Clicks, and moves while a button is held.
    Drags,
    /// Everything.
    Motion,
}
