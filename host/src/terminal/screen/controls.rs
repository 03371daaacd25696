use super::{charset::Charset, display::Display, modes::MouseTracking, protection::Erasure, sgr};
use crate::terminal::sequence::Sequence;

/// Executes control characters, and the sequences of ECMA-48, the VT420 and xterm
/// that current programs use.
///
/// Deliberately not supported: sequences that write to a clipboard, move or resize
/// a window, report a title, answer back text, or load fonts or images.
impl Display {
    pub(super) fn execute(&mut self, control: char) {
        self.last_char = None;
        match control {
            '\x08' => self.back(1),
            '\t' => self.tab_forward(1),
            '\n' | '\x0b' | '\x0c' => self.line_feed(),
            '\r' => self.carriage_return(),
            '\x0e' => self.cursor.shift(1),
            '\x0f' => self.cursor.shift(0),
            _ => {}
        }
    }

    /// Executes an escape sequence: ESC, perhaps an intermediate, and a final
    /// character.
    pub(super) fn escape(&mut self, intermediate: Option<char>, last: char) {
        self.last_char = None;
        match (intermediate, last) {
            (None, '6') => self.back_index(),
            (None, '7') => self.save_cursor(),
            (None, '8') => self.restore_cursor(),
            (None, '9') => self.forward_index(),
            (None, '=') => self.modes.application_keypad = true,
            (None, '>') => self.modes.application_keypad = false,
            (None, 'D') => self.index(),
            (None, 'E') => {
                self.index();
                self.carriage_return();
            }
            (None, 'H') => self.tabs.set(self.cursor.column),
            (None, 'M') => self.reverse_index(),
            (None, 'N') => self.cursor.single_shift(2),
            (None, 'O') => self.cursor.single_shift(3),
            (None, 'Z') => self.report_primary_attributes(),
            (None, 'c') => self.reset(),
            (None, 'n') => self.cursor.shift(2),
            (None, 'o') => self.cursor.shift(3),
            (Some('#'), '8') => self.show_alignment_pattern(),
            (Some('('), set) => self.cursor.designate(0, Charset::from_final(set)),
            (Some(')'), set) => self.cursor.designate(1, Charset::from_final(set)),
            (Some('*'), set) => self.cursor.designate(2, Charset::from_final(set)),
            (Some('+'), set) => self.cursor.designate(3, Charset::from_final(set)),
            _ => {}
        }
    }

    /// Executes a control sequence: CSI, parameters, intermediates, and a final
    /// character.
    pub(super) fn csi(&mut self, sequence: &Sequence, last: char) {
        let first = sequence.first();
        let count = first.max(1);
        let last_char = self.last_char.take();
        match (sequence.intermediates(), last) {
            (Some([]), 'b') => {
                if let Some(last_char) = last_char {
                    self.repeat(last_char, count);
                }
            }
            (Some([]), _) => self.standard_csi(sequence, first, last),
            (Some(['?']), 'h') => self.set_private_modes(sequence, true),
            (Some(['?']), 'l') => self.set_private_modes(sequence, false),
            (Some(['?']), 'J') => self.erase_display(first, self.selective()),
            (Some(['?']), 'K') => self.erase_row(first, self.selective()),
            (Some(['?']), 'n') => self.report_status(first, "?"),
            (Some(['>']), 'c') => self.report_secondary_attributes(),
            (Some(['>']), 'q') => self.report_version(),
            (Some(['=']), 'c') => self.report_unit_id(),
            (Some(['!']), 'p') => self.soft_reset(),
            (Some([' ']), '@') => self.scroll_left(count),
            (Some([' ']), 'A') => self.scroll_right(count),
            (Some(['"']), 'q') => self.set_protection(first),
            (Some(['\'']), '}') => self.insert_columns(count),
            (Some(['\'']), '~') => self.delete_columns(count),
            (Some(['$']), 'x') => self.fill_rectangle(sequence),
            (Some(['$']), 'z') => self.erase_rectangle(sequence, Erasure::All),
            (Some(['$']), '{') => self.erase_rectangle(sequence, self.selective()),
            (Some(['$']), 'p') => self.report_mode(first),
            (Some(['?', '$']), 'p') => self.report_private_mode(first),
            _ => {}
        }
    }

    fn standard_csi(&mut self, sequence: &Sequence, first: usize, last: char) {
        let count = first.max(1);
        match last {
            '@' => self.insert_blanks(count),
            'A' => self.up(count),
            'B' => self.down(count),
            'C' => self.forward(count),
            'D' => self.back(count),
            'E' => {
                self.down(count);
                self.carriage_return();
            }
            'F' => {
                self.up(count);
                self.carriage_return();
            }
            'G' | '`' => self.move_to_column(count.saturating_sub(1)),
            'H' | 'f' => {
                self.move_to_row(count.saturating_sub(1));
                self.move_to_column(sequence.parameter(1).saturating_sub(1));
            }
            'I' => self.tab_forward(count),
            'J' => self.erase_display(first, Erasure::All),
            'K' => self.erase_row(first, Erasure::All),
            'L' => self.insert_rows(count),
            'M' => self.delete_rows(count),
            'P' => self.delete_characters(count),
            'S' => self.scroll_up(count),
            // With more parameters it is mouse tracking.
            'T' if sequence.number_count() == 1 => self.scroll_down(count),
            'X' => self.erase_characters(count),
            'Z' => self.tab_back(count),
            'a' => self.move_to_column(self.reported_column().saturating_add(count)),
            'c' if first == 0 => self.report_primary_attributes(),
            'd' => self.move_to_row(count.saturating_sub(1)),
            'e' => self.move_to_row(self.reported_row().saturating_add(count)),
            'g' if first == 0 => self.tabs.clear(self.cursor.column),
            'g' if first == 3 => self.tabs.clear_all(),
            'h' => self.set_modes(sequence, true),
            'l' => self.set_modes(sequence, false),
            'm' => sgr::apply(&mut self.cursor.style, sequence),
            'n' => self.report_status(first, ""),
            'r' => self.set_row_margins(first, sequence.parameter(1)),
            's' if self.margins.left_right_mode => {
                self.set_column_margins(first, sequence.parameter(1));
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
                    self.move_home();
                }
                7 => self.autowrap = on,
                25 => self.cursor_visible = on,
                66 => self.modes.application_keypad = on,
                69 => self.set_left_right_mode(on),
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
                self.erase_all(Erasure::All);
            }
        } else {
            if mode == 1047 && self.modes.alternate_screen {
                self.erase_all(Erasure::All);
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
