/// Returns whether a character is safe to print on a terminal: it is not a
/// control character, except newline and tab, and does not reorder or hide
/// others.
pub fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' | '\n' | '\t' => true,
        _ => !character.is_control() && !is_hidden(character),
    }
}

/// Returns whether a character is invisible and changes how others are shown:
/// it reorders them, breaks lines, or carries text that no person can see.
/// Joiners and variation selectors do not count: many scripts and emoji need
/// them.
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

/// Returns the length of the prefix that is printable ASCII.
pub(super) fn ascii_length(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let end = bytes.iter().position(|byte| !is_plain(byte));
    end.unwrap_or(bytes.len())
}
