use vmcell_wire::{
    PackedStrings, Start,
    limits::{MAX_COMMAND, MAX_TAG},
};

/// What identifies a process apart from its ids. The texts are stored inline,
/// so it needs no allocation.
pub(crate) struct Identity {
    /// The random number that the host chose for it.
    pub(crate) ticket: u64,
    pub(crate) uid: u32,
    tag: InlineBytes<MAX_TAG>,
    command: InlineBytes<MAX_COMMAND>,
}

impl Identity {
    pub(crate) fn new(start: &Start<'_>, uid: u32) -> Self {
        Self {
            ticket: start.ticket,
            uid,
            tag: InlineBytes::new(start.tag.as_bytes()),
            command: command_prefix(start.argv),
        }
    }

    pub(crate) fn tag(&self) -> &str {
        core::str::from_utf8(self.tag.as_bytes()).unwrap_or_default()
    }

    pub(crate) fn rename(&mut self, tag: &str) {
        self.tag = InlineBytes::new(tag.as_bytes());
    }

    /// Returns the beginning of its arguments.
    pub(crate) fn command(&self) -> PackedStrings<'_> {
        PackedStrings::from_bytes(self.command.as_bytes()).unwrap_or_default()
    }
}

/// Returns whether a tag is valid: ASCII letters, digits, `.`, `_` and `-`.
pub(crate) fn is_tag(tag: &str) -> bool {
    (1..=MAX_TAG).contains(&tag.len())
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Returns as many whole arguments as fit, or the beginning of the first.
fn command_prefix(argv: PackedStrings<'_>) -> InlineBytes<MAX_COMMAND> {
    let bytes = argv.as_bytes();
    let Some(room) = bytes.get(..MAX_COMMAND) else {
        return InlineBytes::new(bytes);
    };
    match room.iter().rposition(|byte| *byte == 0) {
        Some(last) => InlineBytes::new(room.get(..=last).unwrap_or_default()),
        None => {
            let mut cut = InlineBytes::new(room);
            if let Some(last) = cut.bytes.last_mut() {
                *last = 0;
            }
            cut
        }
    }
}

/// Up to `N` bytes, stored inline.
struct InlineBytes<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> InlineBytes<N> {
    /// Truncates to `N` bytes.
    fn new(from: &[u8]) -> Self {
        let mut bytes = [0; N];
        let length = from.len().min(N);
        for (place, byte) in bytes.iter_mut().zip(from) {
            *place = *byte;
        }
        Self { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use vmcell_wire::PackedStringsBuf;

    use super::*;

    fn shown(arguments: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut argv = PackedStringsBuf::new();
        assert!(arguments.iter().all(|argument| argv.push(argument)));
        let short = command_prefix(argv.as_packed());
        let packed = PackedStrings::from_bytes(short.as_bytes()).unwrap();
        assert!(packed.byte_len() <= MAX_COMMAND);
        packed.iter().map(|text| text.to_bytes().to_vec()).collect()
    }

    #[test]
    fn a_command_is_cut_between_its_arguments() {
        assert_eq!(shown(&[b"echo", b"hi"]), [&b"echo"[..], b"hi"]);
        let long = vec![b'x'; 200];
        assert_eq!(shown(&[b"echo", &long, &long]), [&b"echo"[..], &long]);
    }

    #[test]
    fn a_first_argument_that_is_too_long_is_cut() {
        let long = vec![b'x'; 1000];
        assert_eq!(shown(&[&long]), [vec![b'x'; MAX_COMMAND - 1]]);
        let exact = vec![b'x'; MAX_COMMAND - 1];
        assert_eq!(shown(&[&exact]), [exact]);
    }

    #[test]
    fn a_tag_is_made_of_few_characters() {
        for tag in ["a", "A.b_c-9", &"x".repeat(MAX_TAG)] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", "a b", "ä", "a/b", "a\n", &"x".repeat(MAX_TAG + 1)] {
            assert!(!is_tag(tag), "{tag}");
        }
    }
}
