/// A character set that a program has selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Charset {
    /// Characters are not mapped.
    #[default]
    Ascii,
    /// The special graphics of the VT100, with which many programs draw boxes.
    LineDrawing,
    /// The British variant of ASCII.
    British,
}

impl Charset {
    pub(super) fn from_final(last: char) -> Self {
        match last {
            '0' => Self::LineDrawing,
            'A' => Self::British,
            _ => Self::Ascii,
        }
    }

    #[inline]
    pub(super) fn map(self, character: char) -> char {
        match self {
            Self::Ascii => character,
            Self::LineDrawing => line_drawing(character),
            Self::British if character == '#' => '£',
            Self::British => character,
        }
    }
}

fn line_drawing(character: char) -> char {
    match character {
        '_' => ' ',
        '`' => '◆',
        'a' => '▒',
        'b' => '␉',
        'c' => '␌',
        'd' => '␍',
        'e' => '␊',
        'f' => '°',
        'g' => '±',
        'h' => '␤',
        'i' => '␋',
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'o' => '⎺',
        'p' => '⎻',
        'q' => '─',
        'r' => '⎼',
        's' => '⎽',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'y' => '≤',
        'z' => '≥',
        '{' => 'π',
        '|' => '≠',
        '}' => '£',
        '~' => '·',
        other => other,
    }
}
