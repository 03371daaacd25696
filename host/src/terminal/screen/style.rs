/// A colour, as the program specified it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's default.
    #[default]
    Default,
    /// One of 256: the eight basic ones, their bright variants, a cube of 216, and
    /// 24 greys.
    Palette(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// The style of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The colour of the character.
    pub foreground: Colour,
    /// The colour behind it.
    pub background: Colour,
    /// Bold.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined, in any underline style.
    pub underline: bool,
    /// With foreground and background swapped.
    pub reverse: bool,
    /// Not visible.
    pub hidden: bool,
    /// Struck through.
    pub struck: bool,
}

impl Style {
    /// Returns the style of a cell without a character.
    pub(super) fn blank(background: Colour) -> Self {
        Self {
            background,
            ..Self::default()
        }
    }
}
