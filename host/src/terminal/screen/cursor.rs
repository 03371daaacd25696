use super::{charset::Charset, style::Style};

/// How many character sets a program can designate: G0 to G3.
const CHARSETS: usize = 4;

/// The position, style and character set of the next character.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
    /// The last column was written: the next character wraps to a new row.
    pub(super) pending_wrap: bool,
    pub(super) style: Style,
    /// Rows count from the top of the scrolling region, which the cursor cannot
    /// leave (DECOM).
    pub(super) origin_mode: bool,
    /// Selective erasing spares what is written (DECSCA).
    pub(super) protected: bool,
    charsets: [Charset; CHARSETS],
    /// Which character set is in use.
    shift: usize,
    /// Which one is in use for the next character only.
    single_shift: Option<usize>,
    /// The next character may have to be mapped.
    maps: bool,
}

/// What the cursor writes with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pen {
    pub(super) style: Style,
    pub(super) protected: bool,
}

impl Cursor {
    /// Returns a cursor at the same position with all else reset.
    pub(super) fn with_default_attributes(&self) -> Self {
        Self {
            row: self.row,
            column: self.column,
            ..Self::default()
        }
    }

    pub(super) fn pen(&self) -> Pen {
        Pen {
            style: self.style,
            protected: self.protected,
        }
    }

    /// Returns the character set in use, except for a single shift.
    pub(super) fn charset(&self) -> Charset {
        self.charsets.get(self.shift).copied().unwrap_or_default()
    }

    /// Returns whether the next character is written as it is.
    #[inline]
    pub(super) fn is_ascii(&self) -> bool {
        !self.maps
    }

    /// Maps the next character. Ends a single shift.
    #[inline]
    pub(super) fn map(&mut self, character: char) -> char {
        match self.maps {
            true => self.map_shifted(character),
            false => character,
        }
    }

    fn map_shifted(&mut self, character: char) -> char {
        let shift = self.single_shift.take().unwrap_or(self.shift);
        self.update();
        let charset = self.charsets.get(shift).copied().unwrap_or_default();
        charset.map(character)
    }

    /// Sets one of the character sets, G0 to G3 (SCS).
    pub(super) fn designate(&mut self, index: usize, charset: Charset) {
        if let Some(designated) = self.charsets.get_mut(index) {
            *designated = charset;
        }
        self.update();
    }

    /// Uses one of the character sets from now on (LS0 to LS3).
    pub(super) fn shift(&mut self, index: usize) {
        self.shift = index;
        self.update();
    }

    /// Uses one of the character sets for the next character (SS2, SS3).
    pub(super) fn single_shift(&mut self, index: usize) {
        self.single_shift = Some(index);
        self.update();
    }

    fn update(&mut self) {
        self.maps = self.single_shift.is_some() || self.charset() != Charset::Ascii;
    }
}
