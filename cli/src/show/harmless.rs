/// Replaces control characters but newline and tab, also across chunks, so that
/// nothing that passes can drive a terminal.
#[derive(Debug, Default)]
pub struct Harmless {
    /// The last byte may begin a control character of two bytes: U+0080 to
    /// U+009F are C2 80 to C2 9F.
    after_c2: bool,
}

impl Harmless {
    /// What of these bytes may be printed now.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if std::mem::take(&mut self.after_c2) {
                match byte {
                    0x80..=0x9f => {
                        passed.push(b'?');
                        continue;
                    }
                    _ => passed.push(0xc2),
                }
            }
            match byte {
                0xc2 => self.after_c2 = true,
                b'\n' | b'\t' | 0x20..=0x7e | 0x80.. => passed.push(byte),
                _ => passed.push(b'?'),
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_passes_can_drive_a_terminal() {
        let mut filter = Harmless::default();
        assert_eq!(filter.pass(b"a\tb\n\x1b[31m\r\x07\x7f"), b"a\tb\n?[31m???");
        assert_eq!(filter.pass("schön €\n".as_bytes()), "schön €\n".as_bytes());
        // U+009B starts a control sequence as ESC [ does.
        assert_eq!(filter.pass("\u{9b}31m".as_bytes()), b"?31m");
        // The same in two chunks, and a harmless character in two chunks.
        assert_eq!(filter.pass(b"x\xc2"), b"x");
        assert_eq!(filter.pass(b"\x9by\xc2"), b"?y");
        assert_eq!(filter.pass(b"\xa7"), "§".as_bytes());
    }
}
