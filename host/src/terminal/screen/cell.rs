use super::style::{Colour, Style};

/// How many marks (accents and the like) a character keeps. More are dropped, so
/// nobody can pile them up without end.
const MAX_MARKS: usize = 3;

/// One place on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    character: char,
    marks: [char; MAX_MARKS],
    pub(super) style: Style,
    pub(super) part: Part,
}

/// What of a character is in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The left half of a wide one.
    Left,
    /// The right half of a wide one, which the left half speaks for.
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

    /// The character, then its marks. Nothing for the right half of one.
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

    /// In how many places the character is, if it begins here.
    pub(super) fn columns(&self) -> usize {
        match self.part {
            Part::Whole => 1,
            Part::Left => 2,
            Part::Right => 0,
        }
    }

    /// Whether nothing is to be seen of it, its background aside.
    pub(super) fn is_blank(&self) -> bool {
        self.character == ' ' && self.marks[0] == NO_MARK
    }
}
