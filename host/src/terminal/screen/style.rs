/// A colour, the way a program chose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Whatever the terminal takes when nothing is said.
    #[default]
    Default,
    /// One of 256: the eight basic ones, their bright sisters, a cube of 216, and
    /// 24 greys.
    Palette(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The colour of the character.
    pub foreground: Colour,
    /// The colour behind it.
    pub background: Colour,
    /// Heavier than usual.
    pub bold: bool,
    /// Fainter than usual.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// With a line below, of whatever kind.
    pub underline: bool,
    /// With the two colours changed for each other.
    pub reverse: bool,
    /// Not to be seen.
    pub hidden: bool,
    /// With a line through it.
    pub struck: bool,
}

impl Style {
    /// Of a place without a character.
    pub(super) fn blank(background: Colour) -> Self {
        Self {
            background,
            ..Self::default()
        }
    }
}
