use alloc::string::String;

use super::{
    class::Class,
    parse::{Escaped, Parser, Wrong},
};

impl Parser {
    /// A class, from behind its bracket.
    pub(super) fn class(&mut self) -> Result<Class, Wrong> {
        let opened = self.place.saturating_sub(1);
        let inverted = self.eat("^");
        let mut class = Class::default();
        let mut is_first = true;
        loop {
            let Some(character) = self.next() else {
                let what = "the class is not closed";
                return Err(Wrong {
                    place: opened,
                    what,
                });
            };
            let from = match character {
                ']' if !is_first => break,
                '[' if self.eat(":") => {
                    class.join(self.named_class()?);
                    is_first = false;
                    continue;
                }
                '[' => return Err(self.wrong("a bracket in a class is \\[")),
                '&' | '~' if self.peek() == Some(character) => {
                    return Err(self.wrong("classes are not computed with"));
                }
                // It stands for itself at the beginning and at the end.
                '-' if !is_first && self.peek() != Some(']') => {
                    return Err(self.wrong("a hyphen in a class is \\-"));
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

    /// The last byte of a range that begins with this one: `a-z`. One byte is a
    /// range too.
    fn range_end(&mut self, from: u8) -> Result<u8, Wrong> {
        let next = self.place.saturating_add(1);
        let follows = self.characters.get(next).copied();
        if self.peek() != Some('-') || matches!(follows, None | Some(']')) {
            return Ok(from);
        }
        self.place = next;
        let to = match self.next() {
            Some('\\') => self.escaped()?,
            Some(character) if !matches!(character, '[' | '-') => self.in_class(character)?,
            _ => return Err(self.wrong("the range makes no sense")),
        };
        match to {
            Escaped::Byte(to) if to >= from => Ok(to),
            _ => Err(self.wrong("the range makes no sense")),
        }
    }

    fn in_class(&self, character: char) -> Result<Escaped, Wrong> {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => Ok(Escaped::Byte(byte)),
            _ => Err(self.wrong("a class has characters of ASCII only")),
        }
    }

    /// A class with a name, from behind its colon.
    fn named_class(&mut self) -> Result<Class, Wrong> {
        let inverted = self.eat("^");
        let rest = self.characters.get(self.place..).unwrap_or_default();
        let name: String = rest
            .iter()
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        self.place = self.place.saturating_add(name.len());
        match Class::named(&name) {
            Some(class) if self.eat(":]") => Ok(if inverted { class.inverted() } else { class }),
            _ => Err(self.wrong("there is no such class")),
        }
    }
}
