/// Returns the bytes that a terminal sends when text is pasted.
///
/// Lines end with a carriage return, as the enter key sends it. All control
/// characters but tab and line ends are removed. With `bracketed`, the text is
/// enclosed in the markers of a bracketed paste, which it therefore cannot end.
pub(crate) fn paste(text: &str, bracketed: bool) -> Vec<u8> {
    let text = text.replace(END, "").replace("\r\n", "\n");
    let text = text.chars().filter_map(|character| match character {
        '\n' | '\r' => Some('\r'),
        '\t' => Some('\t'),
        _ => Some(character).filter(|character| !character.is_control()),
    });
    let mut pasted = String::new();
    match bracketed {
        true => {
            pasted.push_str(BEGIN);
            pasted.extend(text);
            pasted.push_str(END);
        }
        false => pasted.extend(text),
    }
    pasted.into_bytes()
}

const BEGIN: &str = "\x1b[200~";
const END: &str = "\x1b[201~";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_typed_as_with_the_enter_key() {
        assert_eq!(paste("a\nb\r\nc\rd\te", false), b"a\rb\rc\rd\te");
        assert_eq!(paste("a\n", true), b"\x1b[200~a\r\x1b[201~");
    }

    #[test]
    fn a_text_cannot_end_its_own_bracket() {
        for text in [
            "ls\x1b[201~\nrm -rf /\n",
            "ls\x1b[2\x1b[201~01~\nrm",
            "ls\u{9b}201~\nrm",
            "ls\x03\x04rm",
        ] {
            let pasted = paste(text, true);
            let inner = &pasted[BEGIN.len()..pasted.len() - END.len()];
            assert!(!inner.contains(&0x1b), "{inner:?}");
            assert!(!String::from_utf8_lossy(inner).contains('\u{9b}'));
        }
        assert_eq!(paste("a\x1b[201~b", true), b"\x1b[200~ab\x1b[201~");
    }

    proptest! {
        #[test]
        fn whatever_is_pasted_holds_no_key_but_tab_and_enter(text: String, bracketed: bool) {
            let pasted = String::from_utf8(paste(&text, bracketed)).unwrap();
            let inner = match bracketed {
                true => &pasted[BEGIN.len()..pasted.len() - END.len()],
                false => &pasted,
            };
            let keys = |character: char| character.is_control() && !"\t\r".contains(character);
            prop_assert!(!inner.contains(keys));
            let visible = text.replace(END, "");
            let visible = visible.chars().filter(|character| !character.is_control());
            let kept = inner.chars().filter(|character| !character.is_control());
            prop_assert!(visible.eq(kept));
        }
    }
}
