use super::{charset::Charset, display::Display, modes::MouseTracking, sequence::Sequence, sgr};

/// Executes control characters, and the sequences of ECMA-48, the VT220 and xterm
/// that current programs use.
///
/// Deliberately not supported: sequences that write to a clipboard, move or resize
/// a window, report a title, answer back text, load fonts or images, or fill the
/// whole screen.
impl Display {
    pub(super) fn execute(&mut self, byte: u8) {
        match byte {
            0x08 => self.move_to_column(self.cursor.column.saturating_sub(1)),
            b'\t' => self.move_to_column(self.tabs.next_stop(self.cursor.column, 1)),
            b'\n' | 0x0b | 0x0c => self.line_feed(),
            b'\r' => self.move_to_column(0),
            0x0e => self.cursor.shift(true),
            0x0f => self.cursor.shift(false),
            _ => {}
        }
    }

    /// Executes an escape sequence: ESC, intermediates, and a final byte.
    pub(super) fn escape(&mut self, intermediates: &[u8], byte: u8) {
        match (intermediates, byte) {
            ([], b'7') => self.save_cursor(),
            ([], b'8') => self.restore_cursor(),
            ([], b'=') => self.modes.application_keypad = true,
            ([], b'>') => self.modes.application_keypad = false,
            ([], b'D') => self.index(),
            ([], b'E') => {
                self.index();
                self.move_to_column(0);
            }
            ([], b'H') => self.tabs.set(self.cursor.column),
            ([], b'M') => self.reverse_index(),
            ([], b'Z') => self.report_primary_attributes(),
            ([], b'c') => self.reset(),
            ([b'('], set) => self.cursor.designate(false, Charset::from_final_byte(set)),
            ([b')'], set) => self.cursor.designate(true, Charset::from_final_byte(set)),
            _ => {}
        }
    }

    /// Executes a control sequence: CSI, parameters, intermediates, and a final
    /// byte.
    pub(super) fn csi(&mut self, sequence: &Sequence, byte: u8) {
        let first = sequence.parameter(0);
        match (sequence.intermediates(), byte) {
            (Some([]), _) => self.standard_csi(sequence, byte),
            (Some([b'?']), b'h') => self.set_private_modes(sequence, true),
            (Some([b'?']), b'l') => self.set_private_modes(sequence, false),
            (Some([b'?']), b'J') => self.erase_display(first),
            (Some([b'?']), b'K') => self.erase_row(first),
            (Some([b'?']), b'n') => self.report_status(first, "?"),
            (Some([b'>']), b'c') => self.report_secondary_attributes(),
            (Some([b'>']), b'q') => self.report_version(),
            (Some([b'=']), b'c') => self.report_unit_id(),
            (Some([b'!']), b'p') => self.soft_reset(),
            (Some([b'$']), b'p') => self.report_mode(first),
            (Some([b'?', b'$']), b'p') => self.report_private_mode(first),
            _ => {}
        }
    }

    fn standard_csi(&mut self, sequence: &Sequence, byte: u8) {
        let first = sequence.parameter(0);
        let count = sequence.first_or_one();
        match byte {
            b'@' => self.insert_blanks(count),
            b'A' => self.up(count),
            b'B' | b'e' => self.down(count),
            b'C' | b'a' => self.move_to_column(self.cursor.column.saturating_add(count)),
            b'D' => self.move_to_column(self.cursor.column.saturating_sub(count)),
            b'E' => {
                self.down(count);
                self.move_to_column(0);
            }
            b'F' => {
                self.up(count);
                self.move_to_column(0);
            }
            b'G' | b'`' => self.move_to_column(count.saturating_sub(1)),
            b'H' | b'f' => {
                self.move_to_row(count.saturating_sub(1));
                self.move_to_column(sequence.parameter(1).saturating_sub(1));
            }
            b'I' => self.move_to_column(self.tabs.next_stop(self.cursor.column, count)),
            b'J' => self.erase_display(first),
            b'K' => self.erase_row(first),
            b'L' => self.insert_rows(count),
            b'M' => self.delete_rows(count),
            b'P' => self.delete_characters(count),
            b'S' => self.scroll_up(self.region.clone(), count),
            // With more parameters it is mouse tracking.
            b'T' if sequence.number_count() == 1 => self.scroll_down(self.region.clone(), count),
            b'X' => self.erase_characters(count),
            b'Z' => self.move_to_column(self.tabs.previous_stop(self.cursor.column, count)),
            b'b' => self.repeat(count),
            b'c' if first == 0 => self.report_primary_attributes(),
            b'd' => self.move_to_row(count.saturating_sub(1)),
            b'g' if first == 0 => self.tabs.clear(self.cursor.column),
            b'g' if first == 3 => self.tabs.clear_all(),
            b'h' => self.set_modes(sequence, true),
            b'l' => self.set_modes(sequence, false),
            b'm' => sgr::apply(&mut self.cursor.style, sequence),
            b'n' => self.report_status(first, ""),
            b'r' => {
                let last = match sequence.parameter(1) {
                    0 => self.rows(),
                    last => last,
                };
                self.set_region(count.saturating_sub(1), last.saturating_sub(1));
            }
            b's' => self.save_cursor(),
            b't' if first == 18 => self.report_size(),
            b't' if first == 22 => self.title.save(),
            b't' if first == 23 => self.title.restore(),
            b'u' => self.restore_cursor(),
            _ => {}
        }
    }

    /// Executes an operating system command: OSC and a string, perhaps truncated.
    pub(super) fn osc(&mut self, command: &[u8], ended_by_bell: bool) {
        match command {
            [b'0' | b'2', b';', title @ ..] => self.title.set(title),
            b"10;?" => self.report_colour(10, ended_by_bell),
            b"11;?" => self.report_colour(11, ended_by_bell),
            _ => {}
        }
    }

    /// Starts a device control string: DCS, parameters, intermediates, and a final
    /// byte that selects the meaning of the string.
    pub(super) fn dcs(&mut self, sequence: &Sequence, byte: u8) {
        match (sequence.intermediates(), byte) {
            (Some([b'+']), b'q') => self.refuse_capability(),
            (Some([b'$']), b'q') => self.refuse_setting(),
            _ => {}
        }
    }

    fn erase_display(&mut self, which: usize) {
        let (row, column) = (self.cursor.row, self.cursor.column);
        match which {
            0 if (row, column) == (0, 0) => self.erase_all(),
            0 => {
                self.erase_in_row(column..usize::MAX);
                self.erase_rows(row.saturating_add(1)..self.rows());
            }
            1 => {
                self.erase_in_row(0..column.saturating_add(1));
                self.erase_rows(0..row);
            }
            2 => self.erase_all(),
            3 => self.scrollback.clear(),
            _ => {}
        }
    }

    fn erase_row(&mut self, which: usize) {
        let column = self.cursor.column;
        match which {
            0 => self.erase_in_row(column..usize::MAX),
            1 => self.erase_in_row(0..column.saturating_add(1)),
            2 => self.erase_in_row(0..usize::MAX),
            _ => {}
        }
    }

    fn set_modes(&mut self, sequence: &Sequence, on: bool) {
        for mode in sequence.parameters().filter_map(<[u16]>::first) {
            match mode {
                4 => self.insert_mode = on,
                20 => self.newline_mode = on,
                _ => {}
            }
        }
    }

    fn set_private_modes(&mut self, sequence: &Sequence, on: bool) {
        for mode in sequence.parameters().filter_map(<[u16]>::first) {
            match mode {
                1 => self.modes.application_cursor_keys = on,
                6 => {
                    self.cursor.origin_mode = on;
                    self.move_to_row(0);
                    self.move_to_column(0);
                }
                7 => self.autowrap = on,
                25 => self.cursor_visible = on,
                66 => self.modes.application_keypad = on,
                1000 => self.set_mouse(MouseTracking::Clicks, on),
                1002 => self.set_mouse(MouseTracking::Drags, on),
                1003 => self.set_mouse(MouseTracking::Motion, on),
                1004 => self.modes.focus_events = on,
                2004 => self.modes.bracketed_paste = on,
                47 | 1047 | 1048 | 1049 => self.set_alternate(*mode, on),
                _ => {}
            }
        }
    }

    /// Sets one of the four modes that select the alternate screen, save the
    /// cursor, or both. 1049 clears the screen when it is set, 1047 when reset.
    fn set_alternate(&mut self, mode: u16, on: bool) {
        let with_cursor = matches!(mode, 1048 | 1049);
        let with_screen = mode != 1048;
        if on {
            if with_cursor {
                self.save_cursor();
            }
            if with_screen {
                self.enter_alternate();
            }
            if mode == 1049 {
                self.erase_all();
            }
        } else {
            if mode == 1047 && self.modes.alternate_screen {
                self.erase_all();
            }
            if with_screen {
                self.leave_alternate();
            }
            if with_cursor {
                self.restore_cursor();
            }
        }
    }

    fn set_mouse(&mut self, mouse: MouseTracking, on: bool) {
        self.modes.mouse = if on { mouse } else { MouseTracking::Off };
    }
}
