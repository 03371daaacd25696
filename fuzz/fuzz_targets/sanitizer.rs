//! For arbitrary output and any split of it, what is printed is the same text, cannot drive a
//! terminal, and leaves no colours on.
//!
//! The first byte of the input is the size of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_tree::{ColourPolicy, Sanitizer, printable, printable_name};

fuzz_target!(|input: &[u8]| {
    let Some((&piece, output)) = input.split_first() else {
        return;
    };
    for policy in [
        ColourPolicy::Keep,
        ColourPolicy::Remove,
        ColourPolicy::Replace,
    ] {
        let whole = sanitize(policy, [output]);
        let pieces = output.chunks(usize::from(piece).max(1));
        assert_eq!(whole, sanitize(policy, pieces));
        check(&whole, policy);
    }
    let is_control = |character: char| character.is_control() && !"\n\t".contains(character);
    assert!(!printable(output).contains(is_control));
    assert!(!printable_name(output).contains(char::is_control));
});

fn sanitize<'a>(policy: ColourPolicy, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sanitizer = Sanitizer::new(policy);
    let mut text: String = pieces
        .into_iter()
        .map(|piece| sanitizer.feed(piece))
        .collect();
    text += &sanitizer.finish();
    text
}

/// Checks that only colours and plain text are left.
fn check(text: &str, policy: ColourPolicy) {
    let mut rest = text;
    while let Some(place) = rest.find('\x1b') {
        assert!(matches!(policy, ColourPolicy::Keep), "{text:?}");
        let sequence = rest[place..].strip_prefix("\x1b[");
        let sequence = sequence.unwrap_or_else(|| panic!("not a colour: {text:?}"));
        let end = sequence
            .find(|character: char| !character.is_ascii_digit() && !";:".contains(character));
        let end = end.unwrap_or_else(|| panic!("not a colour: {text:?}"));
        assert!(sequence[end..].starts_with('m'), "not a colour: {text:?}");
        rest = &sequence[end..];
    }
    let is_control = |character: char| character.is_control() && !"\n\t\x1b".contains(character);
    assert!(!text.contains(is_control), "{text:?}");
}
