use super::style::{Colour, Style};

/// How many combining marks a character keeps. More are dropped, to bound the
/// memory.
const MAX_MARKS: usize = 3;

/// One cell of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    character: char,
    marks: [char; MAX_MARKS],
    pub(super) style: Style,
    pub(super) part: Part,
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

const NO_MARK: char = '\0';

impl Cell {
    pub(super) const fn new(character: char, style: Style, part: Part) -> Self {
        Self {
            character,
            marks: [NO_MARK; MAX_MARKS],
            style,
            part,
        }
    }

    pub(super) fn blank(background: Colour) -> Self {
        Self::new(' ', Style::blank(background), Part::Whole)
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
        all.filter(|_| self.part != Part::Right)
    }

    pub(super) fn push_to(&self, text: &mut String) {
        match (self.part, self.marks) {
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
        match self.part {
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
