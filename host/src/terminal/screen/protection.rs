use super::display::Display;

/// Which cells are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Erasure {
    /// All.
    All,
    /// Those that are not protected.
    Unprotected,
}

/// Protecting characters from selective erasing.
impl Display {
    /// Protects the characters that are written from now on, or no longer
    /// (DECSCA).
    pub(super) fn set_protection(&mut self, which: usize) {
        self.has_protection = true;
        match which {
            0 | 2 => self.cursor.protected = false,
            1 => self.cursor.protected = true,
            _ => {}
        }
    }

    /// Returns what selective erasing erases. Without protection it is the same as
    /// erasing, which is cheaper.
    pub(super) fn selective(&self) -> Erasure {
        match self.has_protection {
            true => Erasure::Unprotected,
            false => Erasure::All,
        }
    }
}
