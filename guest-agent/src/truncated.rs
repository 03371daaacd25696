use alloc::string::String;

/// Truncates a text to `room` bytes, with an ellipsis.
pub(crate) fn truncated(text: &str, room: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= room {
        return String::from(text);
    }
    let mut cut = room.saturating_sub(MARK.len());
    while !text.is_char_boundary(cut) {
        cut = cut.saturating_sub(1);
    }
    let mut short = String::from(text.get(..cut).unwrap_or_default());
    short.push_str(MARK);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(truncated("short", 5), "short");
        assert_eq!(truncated("too long", 7), "too ...");
        assert_eq!(truncated("äöüäöü", 8), "äö...");
    }
}
