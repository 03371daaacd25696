use alloc::vec::Vec;

use super::{
    class::Class,
    program::{Assertion, Fragment, Instruction, Program, ProgramTooLarge},
};

/// What is wrong with an expression, and at which character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParseError {
    pub(super) position: usize,
    pub(super) message: &'static str,
}

/// The maximum nesting of groups.
const MAX_DEPTH: usize = 100;

/// The largest count of a repetition.
const MAX_COUNT: u32 = 1000;

pub(super) fn parse(pattern: &str) -> Result<Program, ParseError> {
    let mut parser = Parser {
        characters: pattern.chars().collect(),
        position: 0,
        groups: Vec::new(),
        group: Group::default(),
        classes: Vec::new(),
    };
    while parser.element()? {}
    if let Some(outer) = parser.groups.last() {
        return Err(ParseError {
            position: outer.opened,
            message: "the group is not closed",
        });
    }
    let group = core::mem::take(&mut parser.group);
    let mut fragment = parser.check_size(group.finish())?;
    let done = Fragment::of(Instruction::Match);
    parser.check_size(fragment.append(&done))?;
    Ok(Program {
        instructions: fragment.into_instructions(),
        classes: parser.classes,
    })
}

pub(super) struct Parser {
    pub(super) characters: Vec<char>,
    pub(super) position: usize,
    /// The groups around the current one.
    groups: Vec<EnclosingGroup>,
    pub(super) group: Group,
    classes: Vec<Class>,
}

struct EnclosingGroup {
    group: Group,
    opened: usize,
}

/// A group that is being parsed.
#[derive(Default)]
pub(super) struct Group {
    /// The alternatives before the current one.
    alternatives: Option<Fragment>,
    current: Fragment,
    /// The start of what a repetition would repeat.
    last: Option<usize>,
    pub(super) ignores_case: bool,
}

impl Group {
    fn finish(self) -> Result<Fragment, ProgramTooLarge> {
        match self.alternatives {
            None => Ok(self.current),
            Some(alternatives) => alternatives.or(&self.current),
        }
    }
}

impl Parser {
    /// Parses the next element. Returns whether there was one.
    fn element(&mut self) -> Result<bool, ParseError> {
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
            '{' => self.counted_repetition()?,
            '[' => {
                let class = self.class()?;
                self.add_class(class)?;
            }
            '.' => self.add_class(Class::of([b'\n']).inverted())?,
            '^' => self.add(&Fragment::of(Instruction::Assert(Assertion::Start)))?,
            '$' => self.add(&Fragment::of(Instruction::Assert(Assertion::End)))?,
            '\\' => self.escape()?,
            character => self.add_literal(character)?,
        }
        Ok(true)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.characters.get(self.position).copied();
        self.position = self.position.saturating_add(usize::from(next.is_some()));
        next
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    /// Consumes `text` if it is next. Returns whether it was.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.characters.get(self.position..).unwrap_or_default();
        let length = text.chars().count();
        let follows = rest.len() >= length && text.chars().zip(rest).all(|(a, b)| a == *b);
        if follows {
            self.position = self.position.saturating_add(length);
        }
        follows
    }

    /// Returns an error at the character that was read last.
    pub(super) fn error(&self, message: &'static str) -> ParseError {
        ParseError {
            position: self.position.saturating_sub(1),
            message,
        }
    }

    fn check_size<T>(&self, made: Result<T, ProgramTooLarge>) -> Result<T, ParseError> {
        made.map_err(|ProgramTooLarge| self.error("the expression gets too large"))
    }

    fn add(&mut self, fragment: &Fragment) -> Result<(), ParseError> {
        let begin = self.group.current.len();
        let added = self.group.current.append(fragment);
        self.check_size(added)?;
        self.group.last = Some(begin);
        Ok(())
    }

    fn add_class(&mut self, mut class: Class) -> Result<(), ParseError> {
        if self.group.ignores_case {
            class = class.in_both_cases();
        }
        let number = u16::try_from(self.classes.len()).unwrap_or(u16::MAX);
        self.classes.push(class);
        self.add(&Fragment::of(Instruction::Class(number)))
    }

    fn add_literal(&mut self, character: char) -> Result<(), ParseError> {
        if self.group.ignores_case && character.is_ascii_alphabetic() {
            let byte = u8::try_from(character).unwrap_or(0);
            return self.add_class(Class::of([byte]));
        }
        if self.group.ignores_case && !character.is_ascii() {
            return Err(self.error("case is ignored for ASCII letters only"));
        }
        let mut bytes = [0; 4];
        let mut fragment = Fragment::default();
        for byte in character.encode_utf8(&mut bytes).bytes() {
            let added = fragment.append(&Fragment::of(Instruction::Byte(byte)));
            self.check_size(added)?;
        }
        self.add(&fragment)
    }

    fn open(&mut self) -> Result<(), ParseError> {
        let opened = self.position.saturating_sub(1);
        if self.groups.len() >= MAX_DEPTH {
            return Err(self.error("groups are nested too deeply"));
        }
        let mut inner = Group {
            ignores_case: self.group.ignores_case,
            ..Group::default()
        };
        if self.eat("?P<") || self.eat("?<") {
            self.group_name()?;
        } else if self.eat("?i)") {
            self.group.ignores_case = true;
            self.group.last = None;
            return Ok(());
        } else if self.eat("?i:") {
            inner.ignores_case = true;
        } else if self.eat("?-i:") {
            inner.ignores_case = false;
        } else if !self.eat("?:") && self.peek() == Some('?') {
            return Err(self.error("there is no such group"));
        }
        let group = core::mem::replace(&mut self.group, inner);
        self.groups.push(EnclosingGroup { group, opened });
        Ok(())
    }

    /// Skips the name of a group, which is not used.
    fn group_name(&mut self) -> Result<(), ParseError> {
        let begin = self.position;
        while let Some(character) = self.next() {
            let is_first = self.position == begin.saturating_add(1);
            match character {
                '>' if !is_first => return Ok(()),
                'A'..='Z' | 'a'..='z' | '_' => {}
                '0'..='9' if !is_first => {}
                _ => break,
            }
        }
        Err(self.error("the name of the group is invalid"))
    }

    fn close(&mut self) -> Result<(), ParseError> {
        let Some(outer) = self.groups.pop() else {
            return Err(self.error("no group is open"));
        };
        let inner = core::mem::replace(&mut self.group, outer.group);
        let fragment = self.check_size(inner.finish())?;
        self.add(&fragment)
    }

    fn alternative(&mut self) -> Result<(), ParseError> {
        let current = core::mem::take(&mut self.group.current);
        let alternatives = match self.group.alternatives.take() {
            None => current,
            Some(alternatives) => self.check_size(alternatives.or(&current))?,
        };
        self.group.alternatives = Some(alternatives);
        self.group.last = None;
        Ok(())
    }

    fn repeat(&mut self, least: u32, most: Option<u32>) -> Result<(), ParseError> {
        let Some(last) = self.group.last else {
            return Err(self.error("there is nothing to repeat"));
        };
        // Whether a match exists does not depend on greediness.
        let _ = self.eat("?");
        let fragment = self.group.current.split_off(last);
        let repeated = self.check_size(fragment.repeated(least, most))?;
        self.add(&repeated)?;
        self.group.last = Some(last);
        Ok(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}` after its opening brace.
    fn counted_repetition(&mut self) -> Result<(), ParseError> {
        let least = self.number()?;
        let most = match self.next() {
            Some('}') => Some(least),
            Some(',') if self.eat("}") => None,
            Some(',') => {
                let most = self.number()?;
                if self.next() != Some('}') || most < least {
                    return Err(self.error("the repetition is invalid"));
                }
                Some(most)
            }
            _ => return Err(self.error("the repetition is invalid")),
        };
        self.repeat(least, most)
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.position = self.position.saturating_add(1);
            let more = number.unwrap_or(0u32).saturating_mul(10);
            number = Some(more.saturating_add(digit));
        }
        match number {
            Some(number) if number <= MAX_COUNT => Ok(number),
            Some(_) => Err(self.error("the expression gets too large")),
            None => Err(self.error("a number is missing; write a brace as \\{")),
        }
    }

    /// Parses an escape outside of a class, after its backslash.
    fn escape(&mut self) -> Result<(), ParseError> {
        let assertion = match self.peek() {
            Some('b') => Some(Assertion::Boundary),
            Some('B') => Some(Assertion::NoBoundary),
            Some('A') => Some(Assertion::Start),
            Some('z') => Some(Assertion::End),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.position = self.position.saturating_add(1);
            // `\b{start}` has another meaning.
            if self.peek() == Some('{') {
                return Err(self.error("this cannot be repeated"));
            }
            return self.add(&Fragment::of(Instruction::Assert(assertion)));
        }
        match self.escaped()? {
            Escaped::Class(class) => self.add_class(class),
            Escaped::Byte(byte) if byte.is_ascii() => self.add_literal(char::from(byte)),
            Escaped::Byte(byte) => self.add(&Fragment::of(Instruction::Byte(byte))),
        }
    }

    pub(super) fn escaped(&mut self) -> Result<Escaped, ParseError> {
        let Some(character) = self.next() else {
            return Err(self.error("something is missing behind the \\"));
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
            // `\<` and `\>` are word boundaries elsewhere.
            '<' | '>' => return Err(self.error("there is no such escape")),
            character if character.is_ascii_punctuation() => {
                u8::try_from(character).unwrap_or(b'\\')
            }
            _ => return Err(self.error("there is no such escape")),
        };
        Ok(Escaped::Byte(byte))
    }

    fn hexadecimal(&mut self) -> Result<u8, ParseError> {
        let mut value = 0u8;
        for _ in 0..2 {
            let digit = self.next().and_then(|character| character.to_digit(16));
            let digit = digit.and_then(|digit| u8::try_from(digit).ok());
            let Some(digit) = digit else {
                return Err(self.error("\\x has two hexadecimal digits"));
            };
            value = value.wrapping_mul(16).wrapping_add(digit);
        }
        Ok(value)
    }
}

/// The meaning of an escape.
pub(super) enum Escaped {
    Byte(u8),
    Class(Class),
}
