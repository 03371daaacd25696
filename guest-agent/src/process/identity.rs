use vmcell_wire::{
    Packed, Start,
    limits::{MAX_COMMAND, MAX_TAG},
};

/// What a process is known by, apart from its numbers. It holds its texts
/// itself, so it costs no allocation.
pub(crate) struct Identity {
    /// The number that the host drew for it.
    pub(crate) ticket: u64,
    pub(crate) uid: u32,
    tag: Short<MAX_TAG>,
    command: Short<MAX_COMMAND>,
}

impl Identity {
    pub(crate) fn new(start: &Start<'_>, uid: u32) -> Self {
        Self {
            ticket: start.ticket,
            uid,
            tag: Short::new(start.tag.as_bytes()),
            command: beginning(start.argv),
        }
    }

    pub(crate) fn tag(&self) -> &str {
        core::str::from_utf8(self.tag.as_bytes()).unwrap_or_default()
    }

    pub(crate) fn rename(&mut self, tag: &str) {
        self.tag = Short::new(tag.as_bytes());
    }

    /// The beginning of its arguments.
    pub(crate) fn command(&self) -> Packed<'_> {
        Packed::from_bytes(self.command.as_bytes()).unwrap_or_default()
    }
}

/// Whether a tag can be printed anywhere and typed by anybody.
pub(crate) fn is_tag(tag: &str) -> bool {
    (1..=MAX_TAG).contains(&tag.len())
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// As many whole arguments as there is room for, or the beginning of the first.
fn beginning(argv: Packed<'_>) -> Short<MAX_COMMAND> {
    let bytes = argv.as_bytes();
    let Some(room) = bytes.get(..MAX_COMMAND) else {
        return Short::new(bytes);
    };
    match room.iter().rposition(|byte| *byte == 0) {
        Some(last) => Short::new(room.get(..=last).unwrap_or_default()),
        None => {
            let mut cut = Short::new(room);
            if let Some(last) = cut.bytes.last_mut() {
                *last = 0;
            }
            cut
        }
    }
}

/// Up to `N` bytes.
struct Short<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Short<N> {
    /// What does not fit is left out.
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

    use vmcell_wire::PackedBuf;

    use super::*;

    fn shown(arguments: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut argv = PackedBuf::new();
        assert!(arguments.iter().all(|argument| argv.push(argument)));
        let short = beginning(argv.as_packed());
        let packed = Packed::from_bytes(short.as_bytes()).unwrap();
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
