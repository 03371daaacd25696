use alloc::vec::Vec;

use super::{
    class::Class,
    program::{Look, Piece, Program, Step, TooLarge},
};

/// What is wrong with an expression, and which character it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) place: usize,
    pub(super) what: &'static str,
}

/// Groups may be so deep in each other.
const MAX_DEPTH: usize = 100;

/// The largest number of a repetition.
const MAX_COUNT: u32 = 1000;

pub(super) fn parse(pattern: &str) -> Result<Program, Wrong> {
    let mut parser = Parser {
        characters: pattern.chars().collect(),
        place: 0,
        groups: Vec::new(),
        group: Group::default(),
        classes: Vec::new(),
    };
    while parser.part()? {}
    if let Some(outer) = parser.groups.last() {
        return Err(Wrong {
            place: outer.opened,
            what: "the group is not closed",
        });
    }
    let group = core::mem::take(&mut parser.group);
    let mut piece = parser.fit(group.finish())?;
    let done = Piece::of(Step::Done);
    parser.fit(piece.append(&done))?;
    Ok(Program {
        steps: piece.into_steps(),
        classes: parser.classes,
    })
}

pub(super) struct Parser {
    pub(super) characters: Vec<char>,
    pub(super) place: usize,
    /// The groups around the one that is read.
    groups: Vec<Outer>,
    pub(super) group: Group,
    classes: Vec<Class>,
}

struct Outer {
    group: Group,
    opened: usize,
}

/// What was read of a group.
#[derive(Default)]
pub(super) struct Group {
    /// The alternatives before this one.
    former: Option<Piece>,
    current: Piece,
    /// Where that begins which a repetition repeats.
    last: Option<usize>,
    pub(super) ignores_case: bool,
}

impl Group {
    fn finish(self) -> Result<Piece, TooLarge> {
        match self.former {
            None => Ok(self.current),
            Some(former) => former.or(&self.current),
        }
    }
}

impl Parser {
    /// Reads one part. Answers whether there was one.
    fn part(&mut self) -> Result<bool, Wrong> {
        let Some(character) = self.next() else {
            return Ok(false);
        };
        match character {
            '(' => self.open()?,
            ')' => self.close()?,
            '|' => self.alternative()?,
            '*' => self.repeat(0, None)?,
            '+' => self.repeat(1, None)?,
            '?' => self.repeat(0, Some(1))?,
            '{' => self.counted()?,
            '[' => {
                let class = self.class()?;
                self.add_class(class)?;
            }
            '.' => self.add_class(Class::of([b'\n']).inverted())?,
            '^' => self.add(&Piece::of(Step::Look(Look::Start)))?,
            '$' => self.add(&Piece::of(Step::Look(Look::End)))?,
            '\\' => self.escape()?,
            character => self.add_literal(character)?,
        }
        Ok(true)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.characters.get(self.place).copied();
        self.place = self.place.saturating_add(usize::from(next.is_some()));
        next
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.characters.get(self.place).copied()
    }

    /// Goes on if this follows.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.characters.get(self.place..).unwrap_or_default();
        let length = text.chars().count();
        let follows = rest.len() >= length && text.chars().zip(rest).all(|(a, b)| a == *b);
        if follows {
            self.place = self.place.saturating_add(length);
        }
        follows
    }

    /// What was read last is wrong.
    pub(super) fn wrong(&self, what: &'static str) -> Wrong {
        Wrong {
            place: self.place.saturating_sub(1),
            what,
        }
    }

    fn fit<T>(&self, made: Result<T, TooLarge>) -> Result<T, Wrong> {
        made.map_err(|TooLarge| self.wrong("the expression gets too large"))
    }

    fn add(&mut self, piece: &Piece) -> Result<(), Wrong> {
        let begin = self.group.current.len();
        let added = self.group.current.append(piece);
        self.fit(added)?;
        self.group.last = Some(begin);
        Ok(())
    }

    fn add_class(&mut self, mut class: Class) -> Result<(), Wrong> {
        if self.group.ignores_case {
            class = class.in_both_cases();
        }
        let number = u16::try_from(self.classes.len()).unwrap_or(u16::MAX);
        self.classes.push(class);
        self.add(&Piece::of(Step::Class(number)))
    }

    fn add_literal(&mut self, character: char) -> Result<(), Wrong> {
        if self.group.ignores_case && character.is_ascii_alphabetic() {
            let byte = u8::try_from(character).unwrap_or(0);
            return self.add_class(Class::of([byte]));
        }
        if self.group.ignores_case && !character.is_ascii() {
            return Err(self.wrong("case is known of ASCII letters only"));
        }
        let mut bytes = [0; 4];
        let mut piece = Piece::default();
        for byte in character.encode_utf8(&mut bytes).bytes() {
            let added = piece.append(&Piece::of(Step::Byte(byte)));
            self.fit(added)?;
        }
        self.add(&piece)
    }

    fn open(&mut self) -> Result<(), Wrong> {
        let opened = self.place.saturating_sub(1);
        if self.groups.len() >= MAX_DEPTH {
            return Err(self.wrong("groups are too deep in each other"));
        }
        let mut inner = Group {
            ignores_case: self.group.ignores_case,
            ..Group::default()
        };
        if self.eat("?P<") || self.eat("?<") {
            self.name()?;
        } else if self.eat("?i)") {
            self.group.ignores_case = true;
            self.group.last = None;
            return Ok(());
        } else if self.eat("?i:") {
            inner.ignores_case = true;
        } else if self.eat("?-i:") {
            inner.ignores_case = false;
        } else if !self.eat("?:") && self.peek() == Some('?') {
            return Err(self.wrong("there is no such group"));
        }
        let group = core::mem::replace(&mut self.group, inner);
        self.groups.push(Outer { group, opened });
        Ok(())
    }

    /// The name of a group, which nobody asks for.
    fn name(&mut self) -> Result<(), Wrong> {
        let begin = self.place;
        while let Some(character) = self.next() {
            let is_first = self.place == begin.saturating_add(1);
            match character {
                '>' if !is_first => return Ok(()),
                'A'..='Z' | 'a'..='z' | '_' => {}
                '0'..='9' if !is_first => {}
                _ => break,
            }
        }
        Err(self.wrong("the name of the group makes no sense"))
    }

    fn close(&mut self) -> Result<(), Wrong> {
        let Some(outer) = self.groups.pop() else {
            return Err(self.wrong("no group is open"));
        };
        let inner = core::mem::replace(&mut self.group, outer.group);
        let piece = self.fit(inner.finish())?;
        self.add(&piece)
    }

    fn alternative(&mut self) -> Result<(), Wrong> {
        let current = core::mem::take(&mut self.group.current);
        let former = match self.group.former.take() {
            None => current,
            Some(former) => self.fit(former.or(&current))?,
        };
        self.group.former = Some(former);
        self.group.last = None;
        Ok(())
    }

    fn repeat(&mut self, least: u32, most: Option<u32>) -> Result<(), Wrong> {
        let Some(last) = self.group.last else {
            return Err(self.wrong("there is nothing to repeat"));
        };
        // As few as possible is enough as well.
        let _ = self.eat("?");
        let piece = self.group.current.split_off(last);
        let repeated = self.fit(piece.repeated(least, most))?;
        self.add(&repeated)?;
        self.group.last = Some(last);
        Ok(())
    }

    /// `{n}`, `{n,}`, `{n,m}`, from behind the brace.
    fn counted(&mut self) -> Result<(), Wrong> {
        let least = self.number()?;
        let most = match self.next() {
            Some('}') => Some(least),
            Some(',') if self.eat("}") => None,
            Some(',') => {
                let most = self.number()?;
                if self.next() != Some('}') || most < least {
                    return Err(self.wrong("the repetition makes no sense"));
                }
                Some(most)
            }
            _ => return Err(self.wrong("the repetition makes no sense")),
        };
        self.repeat(least, most)
    }

    fn number(&mut self) -> Result<u32, Wrong> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.place = self.place.saturating_add(1);
            let more = number.unwrap_or(0u32).saturating_mul(10);
            number = Some(more.saturating_add(digit));
        }
        match number {
            Some(number) if number <= MAX_COUNT => Ok(number),
            Some(_) => Err(self.wrong("the expression gets too large")),
            None => Err(self.wrong("a number is missing; a brace itself is \\{")),
        }
    }

    /// What stands behind a backslash, outside of a class.
    fn escape(&mut self) -> Result<(), Wrong> {
        let look = match self.peek() {
            Some('b') => Some(Look::Boundary),
            Some('B') => Some(Look::NoBoundary),
            Some('A') => Some(Look::Start),
            Some('z') => Some(Look::End),
            _ => None,
        };
        if let Some(look) = look {
            self.place = self.place.saturating_add(1);
            // `\b{start}` is something else again.
            if self.peek() == Some('{') {
                return Err(self.wrong("this cannot be repeated"));
            }
            return self.add(&Piece::of(Step::Look(look)));
        }
        match self.escaped()? {
            Escaped::Class(class) => self.add_class(class),
            Escaped::Byte(byte) if byte.is_ascii() => self.add_literal(char::from(byte)),
            Escaped::Byte(byte) => self.add(&Piece::of(Step::Byte(byte))),
        }
    }

    pub(super) fn escaped(&mut self) -> Result<Escaped, Wrong> {
        let Some(character) = self.next() else {
            return Err(self.wrong("something is missing behind the \\"));
        };
        if let Some(class) = Class::escaped(character) {
            return Ok(Escaped::Class(class));
        }
        let byte = match character {
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'f' => 0x0c,
            'v' => 0x0b,
            'a' => 0x07,
            'x' => self.hexadecimal()?,
            // `<` and `>` are boundaries of words elsewhere.
            '<' | '>' => return Err(self.wrong("there is no such escape")),
            character if character.is_ascii_punctuation() => {
                u8::try_from(character).unwrap_or(b'\\')
            }
            _ => return Err(self.wrong("there is no such escape")),
        };
        Ok(Escaped::Byte(byte))
    }

    fn hexadecimal(&mut self) -> Result<u8, Wrong> {
        let mut value = 0u8;
        for _ in 0..2 {
            let digit = self.next().and_then(|character| character.to_digit(16));
            let digit = digit.and_then(|digit| u8::try_from(digit).ok());
            let Some(digit) = digit else {
                return Err(self.wrong("\\x has two hexadecimal digits"));
            };
            value = value.wrapping_mul(16).wrapping_add(digit);
        }
        Ok(value)
    }
}

/// What an escape stands for.
pub(super) enum Escaped {
    Byte(u8),
    Class(Class),
}
