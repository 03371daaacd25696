use super::{display::Display, modes::Mouse, palette};

/// What programs ask for, and what they are told.
impl Display {
    /// `CSI 5 n` and `CSI 6 n`: how are you, and where is the cursor?
    pub(super) fn tell_status(&mut self, what: usize, prefix: &str) {
        match what {
            5 if prefix.is_empty() => self.replies.push("\x1b[0n"),
            6 => {
                let row = self.row_told().saturating_add(1);
                let column = self.cursor.column.saturating_add(1);
                self.replies.push(&format!("\x1b[{prefix}{row};{column}R"));
            }
            _ => {}
        }
    }

    /// `CSI c`: a VT220 that knows colours.
    pub(super) fn tell_primary_attributes(&mut self) {
        self.replies.push("\x1b[?62;22c");
    }

    /// `CSI > c`: of no version that anybody works around.
    pub(super) fn tell_secondary_attributes(&mut self) {
        self.replies.push("\x1b[>1;10;0c");
    }

    /// `CSI = c`: without a number of its own.
    pub(super) fn tell_unit(&mut self) {
        self.replies.push("\x1bP!|00000000\x1b\\");
    }

    /// `CSI > q`: by name.
    pub(super) fn tell_name(&mut self) {
        self.replies.push("\x1bP>|vmcell\x1b\\");
    }

    /// `CSI 18 t`: how large?
    pub(super) fn tell_size(&mut self) {
        let (rows, columns) = (self.rows(), self.columns());
        self.replies.push(&format!("\x1b[8;{rows};{columns}t"));
    }

    /// `CSI ? … $ p`: is this private mode set?
    pub(super) fn tell_private_mode(&mut self, mode: usize) {
        let set = match mode {
            1 => Some(self.modes.application_cursor_keys),
            6 => Some(self.cursor.origin),
            7 => Some(self.autowrap),
            25 => Some(self.cursor_visible),
            47 | 1047 | 1049 => Some(self.modes.alternate_screen),
            66 => Some(self.modes.application_keypad),
            1000 => Some(self.modes.mouse == Mouse::Clicks),
            1002 => Some(self.modes.mouse == Mouse::Drags),
            1003 => Some(self.modes.mouse == Mouse::Moves),
            1004 => Some(self.modes.focus),
            2004 => Some(self.modes.bracketed_paste),
            _ => None,
        };
        let state = told(set);
        self.replies.push(&format!("\x1b[?{mode};{state}$y"));
    }

    /// `CSI … $ p`: is this mode set?
    pub(super) fn tell_mode(&mut self, mode: usize) {
        let set = match mode {
            4 => Some(self.inserts),
            20 => Some(self.newline),
            _ => None,
        };
        let state = told(set);
        self.replies.push(&format!("\x1b[{mode};{state}$y"));
    }

    /// `OSC 10 ; ?` and `OSC 11 ; ?`: what are the usual colours?
    pub(super) fn tell_colour(&mut self, which: u8, bell: bool) {
        let [red, green, blue] = match which {
            10 => palette::FOREGROUND,
            _ => palette::BACKGROUND,
        };
        let end = if bell { "\x07" } else { "\x1b\\" };
        self.replies.push(&format!(
            "\x1b]{which};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}"
        ));
    }

    /// `DCS + q` and `DCS $ q`: capabilities and settings, of which none is told.
    pub(super) fn refuse_capability(&mut self) {
        self.replies.push("\x1bP0+r\x1b\\");
    }

    pub(super) fn refuse_setting(&mut self) {
        self.replies.push("\x1bP0$r\x1b\\");
    }
}

/// DECRPM: 0 is unknown, 1 set, 2 not set.
fn told(set: Option<bool>) -> u8 {
    match set {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}
