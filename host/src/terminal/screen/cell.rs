use super::{
    cursor::Pen,
    style::{Colour, Style},
};

/// How many combining marks a character keeps. More are dropped, to bound the
/// memory.
const MAX_MARKS: usize = 3;

/// One cell of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    character: char,
    marks: [char; MAX_MARKS],
    pub(super) style: Style,
    placement: Placement,
}

/// Which part of a character is in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The left half of a wide character.
    Left,
    /// The right half of a wide character. The left half holds its text.
    Right,
}

/// Which part of a character is in a cell, and whether selective erasing spares
/// it. Both are in one byte, which keeps a cell at 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Placement {
    Whole = 0,
    Left = 1,
    Right = 2,
    ProtectedWhole = 4,
    ProtectedLeft = 5,
    ProtectedRight = 6,
}

const NO_MARK: char = '\0';

impl Cell {
    #[inline]
    pub(super) const fn new(character: char, pen: Pen, part: Part) -> Self {
        let placement = match (part, pen.protected) {
            (Part::Whole, false) => Placement::Whole,
            (Part::Left, false) => Placement::Left,
            (Part::Right, false) => Placement::Right,
            (Part::Whole, true) => Placement::ProtectedWhole,
            (Part::Left, true) => Placement::ProtectedLeft,
            (Part::Right, true) => Placement::ProtectedRight,
        };
        Self {
            character,
            marks: [NO_MARK; MAX_MARKS],
            style: pen.style,
            placement,
        }
    }

    pub(super) fn blank(background: Colour) -> Self {
        let pen = Pen {
            style: Style::blank(background),
            protected: false,
        };
        Self::new(' ', pen, Part::Whole)
    }

    #[inline]
    pub(super) fn part(&self) -> Part {
        match self.placement {
            Placement::Whole | Placement::ProtectedWhole => Part::Whole,
            Placement::Left | Placement::ProtectedLeft => Part::Left,
            Placement::Right | Placement::ProtectedRight => Part::Right,
        }
    }

    /// Returns whether selective erasing spares it.
    pub(super) fn is_protected(&self) -> bool {
        matches!(
            self.placement,
            Placement::ProtectedWhole | Placement::ProtectedLeft | Placement::ProtectedRight
        )
    }

    /// Returns the same cell with another character.
    #[inline]
    pub(super) fn with_character(self, character: char) -> Self {
        Self { character, ..self }
    }

    /// Replaces the text by one character of one column.
    pub(super) fn replace(&mut self, character: char) {
        let pen = Pen {
            style: self.style,
            protected: self.is_protected(),
        };
        *self = Self::new(character, pen, Part::Whole);
    }

    pub(super) fn add_mark(&mut self, mark: char) {
        if let Some(free) = self.marks.iter_mut().find(|kept| **kept == NO_MARK) {
            *free = mark;
        }
    }

    /// Returns the character, then its marks. Empty for a right half.
    pub(super) fn characters(&self) -> impl Iterator<Item = char> {
        let marks = self.marks.into_iter().take_while(|mark| *mark != NO_MARK);
        let all = std::iter::once(self.character).chain(marks);
        all.filter(|_| self.part() != Part::Right)
    }

    pub(super) fn push_to(&self, text: &mut String) {
        match (self.part(), self.marks) {
            (Part::Right, _) => {}
            (_, [NO_MARK, ..]) => text.push(self.character),
            _ => text.extend(self.characters()),
        }
    }

    pub(super) fn character(&self) -> char {
        self.character
    }

    /// Returns how many columns the character takes, 0 for a right half.
    pub(super) fn columns(&self) -> usize {
        match self.part() {
            Part::Whole => 1,
            Part::Left => 2,
            Part::Right => 0,
        }
    }

    /// Returns whether it shows nothing but its background.
    pub(super) fn is_blank(&self) -> bool {
        self.character == ' ' && self.marks[0] == NO_MARK
    }
}
