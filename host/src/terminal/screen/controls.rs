use super::{charset::Charset, display::Display, modes::MouseTracking, sgr};
use crate::terminal::sequence::Sequence;

/// Executes control characters, and the sequences of ECMA-48, the VT220 and xterm
/// that current programs use.
///
/// Deliberately not supported: sequences that write to a clipboard, move or resize
/// a window, report a title, answer back text, load fonts or images, or fill the
/// whole screen.
impl Display {
    pub(super) fn execute(&mut self, control: char) {
        match control {
            '\x08' => self.move_to_column(self.cursor.column.saturating_sub(1)),
            '\t' => self.move_to_column(self.tabs.next_stop(self.cursor.column, 1)),
            '\n' | '\x0b' | '\x0c' => self.line_feed(),
            '\r' => self.move_to_column(0),
            '\x0e' => self.cursor.shift(true),
            '\x0f' => self.cursor.shift(false),
            _ => {}
        }
    }

    /// Executes an escape sequence: ESC, perhaps an intermediate, and a final
    /// character.
    pub(super) fn escape(&mut self, intermediate: Option<char>, last: char) {
        match (intermediate, last) {
            (None, '7') => self.save_cursor(),
            (None, '8') => self.restore_cursor(),
            (None, '=') => self.modes.application_keypad = true,
            (None, '>') => self.modes.application_keypad = false,
            (None, 'D') => self.index(),
            (None, 'E') => {
                self.index();
                self.move_to_column(0);
            }
            (None, 'H') => self.tabs.set(self.cursor.column),
            (None, 'M') => self.reverse_index(),
            (None, 'Z') => self.report_primary_attributes(),
            (None, 'c') => self.reset(),
            (Some('('), set) => self.cursor.designate(false, Charset::from_final(set)),
            (Some(')'), set) => self.cursor.designate(true, Charset::from_final(set)),
            _ => {}
        }
    }

    /// Executes a control sequence: CSI, parameters, intermediates, and a final
    /// character.
    pub(super) fn csi(&mut self, sequence: &Sequence, last: char) {
        let first = sequence.parameter(0);
        match (sequence.intermediates(), last) {
            (Some([]), _) => self.standard_csi(sequence, last),
            (Some(['?']), 'h') => self.set_private_modes(sequence, true),
            (Some(['?']), 'l') => self.set_private_modes(sequence, false),
            (Some(['?']), 'J') => self.erase_display(first),
            (Some(['?']), 'K') => self.erase_row(first),
            (Some(['?']), 'n') => self.report_status(first, "?"),
            (Some(['>']), 'c') => self.report_secondary_attributes(),
            (Some(['>']), 'q') => self.report_version(),
            (Some(['=']), 'c') => self.report_unit_id(),
            (Some(['!']), 'p') => self.soft_reset(),
            (Some(['$']), 'p') => self.report_mode(first),
            (Some(['?', '$']), 'p') => self.report_private_mode(first),
            _ => {}
        }
    }

    fn standard_csi(&mut self, sequence: &Sequence, last: char) {
        let first = sequence.parameter(0);
        let count = sequence.first_or_one();
        match last {
            '@' => self.insert_blanks(count),
            'A' => self.up(count),
            'B' | 'e' => self.down(count),
            'C' | 'a' => self.move_to_column(self.cursor.column.saturating_add(count)),
            'D' => self.move_to_column(self.cursor.column.saturating_sub(count)),
            'E' => {
                self.down(count);
                self.move_to_column(0);
            }
            'F' => {
                self.up(count);
                self.move_to_column(0);
            }
            'G' | '`' => self.move_to_column(count.saturating_sub(1)),
            'H' | 'f' => {
                self.move_to_row(count.saturating_sub(1));
                self.move_to_column(sequence.parameter(1).saturating_sub(1));
            }
            'I' => self.move_to_column(self.tabs.next_stop(self.cursor.column, count)),
            'J' => self.erase_display(first),
            'K' => self.erase_row(first),
            'L' => self.insert_rows(count),
            'M' => self.delete_rows(count),
            'P' => self.delete_characters(count),
            'S' => self.scroll_up(self.region.clone(), count),
            // With more parameters it is mouse tracking.
            'T' if sequence.number_count() == 1 => self.scroll_down(self.region.clone(), count),
            'X' => self.erase_characters(count),
            'Z' => self.move_to_column(self.tabs.previous_stop(self.cursor.column, count)),
            'b' => self.repeat(count),
            'c' if first == 0 => self.report_primary_attributes(),
            'd' => self.move_to_row(count.saturating_sub(1)),
            'g' if first == 0 => self.tabs.clear(self.cursor.column),
            'g' if first == 3 => self.tabs.clear_all(),
            'h' => self.set_modes(sequence, true),
            'l' => self.set_modes(sequence, false),
            'm' => sgr::apply(&mut self.cursor.style, sequence),
            'n' => self.report_status(first, ""),
            'r' => {
                let bottom = match sequence.parameter(1) {
                    0 => self.rows(),
                    bottom => bottom,
                };
                self.set_region(count.saturating_sub(1), bottom.saturating_sub(1));
            }
            's' => self.save_cursor(),
            't' if first == 18 => self.report_size(),
            't' if first == 22 => self.title.save(),
            't' if first == 23 => self.title.restore(),
            'u' => self.restore_cursor(),
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

    /// Executes a device control string, perhaps truncated.
    pub(super) fn dcs(&mut self, command: &[u8]) {
        match command {
            [b'+', b'q', ..] => self.refuse_capability(),
            [b'$', b'q', ..] => self.refuse_setting(),
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
