use zeroize::Zeroizing;

/// A secret, and how much of it the last bytes of a stream are.
///
/// Two streams are searched: all bytes as they come, and those alone that can be
/// seen, so that control sequences between its letters do not matter. The search
/// is that of Knuth, Morris and Pratt: a byte is looked at once, whenever it
/// comes.
pub(super) struct Secret {
    bytes: Zeroizing<Vec<u8>>,
    /// For each length of a beginning: how long the longest shorter beginning is
    /// that it ends with.
    borders: Zeroizing<Vec<usize>>,
    /// The same as people see it.
    letters: Zeroizing<Vec<char>>,
    /// How many of the last bytes match.
    pub(super) matched_bytes: usize,
    /// How many of the last bytes that can be seen match.
    pub(super) matched_visible: usize,
}

/// Shorter secrets are hidden only until the next input, and only where nothing
/// stands between their letters: every later `a` would vanish otherwise.
const MIN_PERSISTENT_LENGTH: usize = 4;

impl Secret {
    /// Of bytes, of which there is at least one.
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

    /// Takes the next byte. Returns whether all of it has come.
    pub(super) fn feed(&mut self, byte: u8) -> bool {
        let matched = self.advance(self.matched_bytes, byte);
        self.matched_bytes = self.partial_match(matched);
        matched == self.length()
    }

    /// Takes the next byte that can be seen.
    pub(super) fn feed_visible(&mut self, byte: u8) -> bool {
        if self.is_short() {
            return false;
        }
        let matched = self.advance(self.matched_visible, byte);
        self.matched_visible = self.partial_match(matched);
        matched == self.length()
    }

    /// Bytes are missing: what comes next continues nothing.
    pub(super) fn restart(&mut self) {
        self.matched_bytes = 0;
        self.matched_visible = 0;
    }

    /// How many of the bytes that match may be the beginning of another one.
    fn partial_match(&self, matched: usize) -> usize {
        match matched == self.length() {
            true => self.borders.last().copied().unwrap_or(0),
            false => matched,
        }
    }

    /// How many bytes match with one more.
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
