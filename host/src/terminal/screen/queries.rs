use super::{display::Display, modes::MouseTracking, palette};

/// Replies to the queries of programs.
impl Display {
    /// `CSI 5 n` and `CSI 6 n`: device status and cursor position.
    pub(super) fn report_status(&mut self, what: usize, prefix: &str) {
        match what {
            5 if prefix.is_empty() => self.replies.push("\x1b[0n"),
            6 => {
                let row = self.reported_row().saturating_add(1);
                let column = self.reported_column().saturating_add(1);
                self.replies.push(&format!("\x1b[{prefix}{row};{column}R"));
            }
            _ => {}
        }
    }

    /// `CSI c`: a VT220 with colours.
    pub(super) fn report_primary_attributes(&mut self) {
        self.replies.push("\x1b[?62;22c");
    }

    /// `CSI > c`: a version for which no program has a workaround.
    pub(super) fn report_secondary_attributes(&mut self) {
        self.replies.push("\x1b[>1;10;0c");
    }

    /// `CSI = c`: a unit id of zeros.
    pub(super) fn report_unit_id(&mut self) {
        self.replies.push("\x1bP!|00000000\x1b\\");
    }

    /// `CSI > q`: the name of the emulator.
    pub(super) fn report_version(&mut self) {
        self.replies.push("\x1bP>|vmcell\x1b\\");
    }

    /// `CSI 18 t`: the size in rows and columns.
    pub(super) fn report_size(&mut self) {
        let (rows, columns) = (self.rows(), self.columns());
        self.replies.push(&format!("\x1b[8;{rows};{columns}t"));
    }

    /// `CSI ? … $ p`: whether a private mode is set.
    pub(super) fn report_private_mode(&mut self, mode: usize) {
        let set = match mode {
            1 => Some(self.modes.application_cursor_keys),
            6 => Some(self.cursor.origin_mode),
            7 => Some(self.autowrap),
            25 => Some(self.cursor_visible),
            47 | 1047 | 1049 => Some(self.modes.alternate_screen),
            66 => Some(self.modes.application_keypad),
            69 => Some(self.margins.left_right_mode),
            1000 => Some(self.modes.mouse == MouseTracking::Clicks),
            1002 => Some(self.modes.mouse == MouseTracking::Drags),
            1003 => Some(self.modes.mouse == MouseTracking::Motion),
            1004 => Some(self.modes.focus_events),
            2004 => Some(self.modes.bracketed_paste),
            _ => None,
        };
        let state = mode_state(set);
        self.replies.push(&format!("\x1b[?{mode};{state}$y"));
    }

    /// `CSI … $ p`: whether a mode is set.
    pub(super) fn report_mode(&mut self, mode: usize) {
        let set = match mode {
            4 => Some(self.insert_mode),
            20 => Some(self.newline_mode),
            _ => None,
        };
        let state = mode_state(set);
        self.replies.push(&format!("\x1b[{mode};{state}$y"));
    }

    /// `OSC 10 ; ?` and `OSC 11 ; ?`: the default colours.
    pub(super) fn report_colour(&mut self, which: u8, ended_by_bell: bool) {
        let [red, green, blue] = match which {
            10 => palette::FOREGROUND,
            _ => palette::BACKGROUND,
        };
        let end = if ended_by_bell { "\x07" } else { "\x1b\\" };
        self.replies.push(&format!(
            "\x1b]{which};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}"
        ));
    }

    /// `DCS + q` and `DCS $ q`: capabilities and settings; none are reported.
    pub(super) fn refuse_capability(&mut self) {
        self.replies.push("\x1bP0+r\x1b\\");
    }

    pub(super) fn refuse_setting(&mut self) {
        self.replies.push("\x1bP0$r\x1b\\");
    }
}

/// Returns the value of DECRPM: 0 unknown, 1 set, 2 reset.
fn mode_state(set: Option<bool>) -> u8 {
    match set {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}
