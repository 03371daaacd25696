use zeroize::Zeroizing;

/// A secret, and the state of the search for it in a stream.
///
/// Two streams are searched: all bytes, and the visible bytes only, so that
/// control sequences between its letters are ignored. The algorithm is
/// Knuth-Morris-Pratt, which processes each byte once, as it arrives.
pub(super) struct Secret {
    bytes: Zeroizing<Vec<u8>>,
    /// The failure function: for each prefix, the length of the longest proper
    /// prefix that is also its suffix.
    borders: Zeroizing<Vec<usize>>,
    /// The secret as visible characters.
    letters: Zeroizing<Vec<char>>,
    /// How many of the last bytes match the beginning of the secret.
    pub(super) matched_bytes: usize,
    /// How many of the last visible bytes do.
    pub(super) matched_visible: usize,
}

/// Shorter secrets are masked only until the next input, and only where their
/// letters are adjacent. Otherwise every later `a` would be masked.
const MIN_PERSISTENT_LENGTH: usize = 4;

impl Secret {
    /// Creates a secret of at least one byte.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut secret = Self {
            bytes: Zeroizing::new(bytes.to_vec()),
            borders: Zeroizing::new(vec![0]),
            letters: Zeroizing::new(letters(bytes)),
            matched_bytes: 0,
            matched_visible: 0,
        };
        let mut border = 0;
        for byte in bytes.iter().skip(1) {
            border = secret.advance(border, *byte);
            secret.borders.push(border);
        }
        secret
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn letters(&self) -> &[char] {
        &self.letters
    }

    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_short(&self) -> bool {
        self.length() < MIN_PERSISTENT_LENGTH
    }

    /// Processes the next byte. Returns whether it completes the secret.
    pub(super) fn feed(&mut self, byte: u8) -> bool {
        let matched = self.advance(self.matched_bytes, byte);
        self.matched_bytes = self.partial_match(matched);
        matched == self.length()
    }

    /// Processes the next visible byte. Returns whether it completes the secret.
    pub(super) fn feed_visible(&mut self, byte: u8) -> bool {
        if self.is_short() {
            return false;
        }
        let matched = self.advance(self.matched_visible, byte);
        self.matched_visible = self.partial_match(matched);
        matched == self.length()
    }

    /// Discards partial matches, because bytes are missing.
    pub(super) fn restart(&mut self) {
        self.matched_bytes = 0;
        self.matched_visible = 0;
    }

    /// Returns how many of the matched bytes can be the beginning of a new match.
    fn partial_match(&self, matched: usize) -> usize {
        match matched == self.length() {
            true => self.borders.last().copied().unwrap_or(0),
            false => matched,
        }
    }

    /// Returns how many bytes match after one more byte.
    fn advance(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(matched) == Some(&byte) {
                return matched + 1;
            }
            match matched
                .checked_sub(1)
                .and_then(|last| self.borders.get(last))
            {
                Some(border) => matched = *border,
                None => return 0,
            }
        }
    }
}

fn letters(bytes: &[u8]) -> Vec<char> {
    let text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
    text.chars().filter(|letter| !letter.is_control()).collect()
}
