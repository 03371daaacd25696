use alloc::string::String;

use super::{
    class::Class,
    parse::{Escaped, ParseError, Parser},
};

impl Parser {
    /// Parses a class after its opening bracket.
    pub(super) fn class(&mut self) -> Result<Class, ParseError> {
        let opened = self.position.saturating_sub(1);
        let inverted = self.eat("^");
        let mut class = Class::default();
        let mut is_first = true;
        loop {
            let Some(character) = self.next() else {
                let message = "the class is not closed";
                return Err(ParseError {
                    position: opened,
                    message,
                });
            };
            let from = match character {
                ']' if !is_first => break,
                '[' if self.eat(":") => {
                    class.join(self.named_class()?);
                    is_first = false;
                    continue;
                }
                '[' => return Err(self.error("write a bracket in a class as \\[")),
                '&' | '~' if self.peek() == Some(character) => {
                    return Err(self.error("set operations on classes are not supported"));
                }
                // It is literal at the beginning and at the end.
                '-' if !is_first && self.peek() != Some(']') => {
                    return Err(self.error("write a hyphen in a class as \\-"));
                }
                '\\' => self.escaped()?,
                character => self.in_class(character)?,
            };
            is_first = false;
            match from {
                Escaped::Class(more) => class.join(more),
                Escaped::Byte(from) => {
                    let to = self.range_end(from)?;
                    class.join(Class::of(from..=to));
                }
            }
        }
        if self.group.ignores_case {
            class = class.in_both_cases();
        }
        Ok(if inverted { class.inverted() } else { class })
    }

    /// Parses the rest of a range like `a-z` and returns its last byte. A
    /// single byte is a range too.
    fn range_end(&mut self, from: u8) -> Result<u8, ParseError> {
        let next = self.position.saturating_add(1);
        let follows = self.characters.get(next).copied();
        if self.peek() != Some('-') || matches!(follows, None | Some(']')) {
            return Ok(from);
        }
        self.position = next;
        let to = match self.next() {
            Some('\\') => self.escaped()?,
            Some(character) if !matches!(character, '[' | '-') => self.in_class(character)?,
            _ => return Err(self.error("the range is invalid")),
        };
        match to {
            Escaped::Byte(to) if to >= from => Ok(to),
            _ => Err(self.error("the range is invalid")),
        }
    }

    fn in_class(&self, character: char) -> Result<Escaped, ParseError> {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => Ok(Escaped::Byte(byte)),
            _ => Err(self.error("a class may contain ASCII characters only")),
        }
    }

    /// Parses a named class after its opening colon.
    fn named_class(&mut self) -> Result<Class, ParseError> {
        let inverted = self.eat("^");
        let rest = self.characters.get(self.position..).unwrap_or_default();
        let name: String = rest
            .iter()
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        self.position = self.position.saturating_add(name.len());
        match Class::named(&name) {
            Some(class) if self.eat(":]") => Ok(if inverted { class.inverted() } else { class }),
            _ => Err(self.error("there is no such class")),
        }
    }
}
