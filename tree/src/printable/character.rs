/// Whether a character is safe to print on a terminal: it is no control
/// character but newline and tab, and does not reorder or hide others.
pub fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' | '\n' | '\t' => true,
        _ => !character.is_control() && !is_hidden(character),
    }
}

/// Whether a character shows nothing itself and changes what others show: it
/// reorders them, breaks lines, or carries text that no person can see. Joiners
/// and variation selectors are not among them: without them many scripts and
/// emoji fall apart.
pub fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// How many bytes at the beginning are printable ASCII.
pub(super) fn ascii_length(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let end = bytes.iter().position(|byte| !is_plain(byte));
    end.unwrap_or(bytes.len())
}
