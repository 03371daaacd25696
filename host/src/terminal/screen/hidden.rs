/// Whether a character shows nothing itself and changes what others show: it
/// reorders them, breaks lines, or carries text that no person can see. Such
/// characters never get onto a screen. Joiners and variations may: without them
/// many scripts and emoji fall apart.
pub(super) fn is_hidden(character: char) -> bool {
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
