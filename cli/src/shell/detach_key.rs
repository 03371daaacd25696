use vmcell::terminal::{CursorKeys, KeyError, KeyPress};

/// The key that detaches from a terminal.
#[derive(Clone, Debug)]
pub(crate) struct DetachKey {
    /// The byte sequences that it sends, which for some keys depend on the
    /// cursor key mode.
    codes: Vec<Vec<u8>>,
}

impl DetachKey {
    /// No key detaches.
    pub(super) fn none() -> Self {
        Self { codes: Vec::new() }
    }

    pub(super) fn parse(name: &str) -> Result<Self, KeyError> {
        if name.eq_ignore_ascii_case("none") {
            return Ok(Self::none());
        }
        let key: KeyPress = name.parse()?;
        let modes = [CursorKeys::Normal, CursorKeys::Application];
        let codes = modes.map(|mode| key.encode(mode)).into_iter();
        Ok(Self {
            codes: codes.collect::<Result<_, _>>()?,
        })
    }

    /// Returns where in the input the key was pressed. A terminal sends the
    /// bytes of a key at once, so they are never split.
    pub(super) fn find(&self, typed: &[u8]) -> Option<usize> {
        let positions = self.codes.iter().filter_map(|code| {
            let mut windows = typed.windows(code.len());
            windows.position(|window| window == code)
        });
        positions.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_found_where_it_was_pressed() {
        for (name, typed, position) in [
            ("ctrl+]", &b"ab\x1dc\x1d"[..], Some(2)),
            ("ctrl+]", b"ab", None),
            ("ctrl+]", b"", None),
            ("^A", b"\x01", Some(0)),
            ("f12", b"x\x1b[24~", Some(1)),
            ("f12", b"\x1b[23~", None),
            ("up", b"\x1b[A", Some(0)),
            ("up", b"\x1bOA", Some(0)),
            ("none", b"\x1d", None),
        ] {
            let key = DetachKey::parse(name).unwrap();
            assert_eq!(key.find(typed), position, "{name}");
        }
        assert!(DetachKey::parse("no such key").is_err());
        assert!(DetachKey::parse("").is_err());
    }
}
