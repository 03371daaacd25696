use std::{iter::Peekable, str::Chars};

/// Where the values of variables are looked up.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is done with quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// They keep white space and variables from their meaning, and are removed.
    Remove,
    /// They are letters like others, as in a here-document.
    Keep,
}

/// How deep `${A:-${B:-…}}` may go.
const MAX_DEPTH: usize = 32;

/// Replaces `$NAME`, `${NAME}`, `${NAME:-WORD}` and `${NAME:+WORD}` by their values. What is not
/// set is empty.
pub(crate) fn expand(
    text: &str,
    escape: char,
    quotes: Quotes,
    variables: Variables<'_>,
) -> Result<String, String> {
    let mut expander = Expander {
        text: text.chars().peekable(),
        escape,
        quotes,
        variables,
    };
    expander.until(None, MAX_DEPTH)
}

struct Expander<'a> {
    text: Peekable<Chars<'a>>,
    escape: char,
    quotes: Quotes,
    variables: Variables<'a>,
}

impl Expander<'_> {
    /// Expands up to this letter, or up to the end.
    fn until(&mut self, end: Option<char>, depth: usize) -> Result<String, String> {
        let mut expanded = String::new();
        while let Some(c) = self.text.next() {
            match c {
                _ if end == Some(c) => return Ok(expanded),
                _ if c == self.escape => match self.text.next() {
                    Some(next) => {
                        // Only `\$` means something in a here-document.
                        if self.quotes == Quotes::Keep && next != '$' {
                            expanded.push(c);
                        }
                        expanded.push(next);
                    }
                    None => expanded.push(c),
                },
                '\'' if self.quotes == Quotes::Remove => self.single_quoted(&mut expanded)?,
                '"' if self.quotes == Quotes::Remove => self.double_quoted(&mut expanded, depth)?,
                '$' => self.variable(&mut expanded, depth)?,
                _ => expanded.push(c),
            }
        }
        match end {
            None => Ok(expanded),
            Some(end) => Err(format!("a variable has no {end:?} at its end")),
        }
    }

    fn single_quoted(&mut self, expanded: &mut String) -> Result<(), String> {
        for c in self.text.by_ref() {
            match c {
                '\'' => return Ok(()),
                _ => expanded.push(c),
            }
        }
        Err("a single quote is not closed".to_owned())
    }

    fn double_quoted(&mut self, expanded: &mut String, depth: usize) -> Result<(), String> {
        while let Some(c) = self.text.next() {
            match c {
                '"' => return Ok(()),
                '$' => self.variable(expanded, depth)?,
                _ if c == self.escape => {
                    let escape = self.escape;
                    let is_special = |next: &char| matches!(*next, '"' | '$') || *next == escape;
                    expanded.push(self.text.next_if(is_special).unwrap_or(c));
                }
                _ => expanded.push(c),
            }
        }
        Err("a double quote is not closed".to_owned())
    }

    /// Expands a variable, whose `$` was read.
    fn variable(&mut self, expanded: &mut String, depth: usize) -> Result<(), String> {
        if self.text.next_if_eq(&'{').is_none() {
            let name = self.name();
            match name.is_empty() {
                true => expanded.push('$'),
                false => expanded.push_str(&(self.variables)(&name).unwrap_or_default()),
            }
            return Ok(());
        }
        let name = self.name();
        let value = (self.variables)(&name);
        let mut operator = self.text.next();
        // With a colon, an empty value counts as none.
        let value = match operator {
            Some(':') => {
                operator = self.text.next();
                value.filter(|value| !value.is_empty())
            }
            _ => value,
        };
        let unknown = || format!("${{{name} … }} is not a variable that is known here");
        let depth = depth.checked_sub(1).ok_or_else(unknown)?;
        match operator {
            _ if name.is_empty() => return Err(unknown()),
            Some('}') => expanded.push_str(&value.unwrap_or_default()),
            Some('-') => {
                let word = self.until(Some('}'), depth)?;
                expanded.push_str(&value.unwrap_or(word));
            }
            Some('+') => {
                let word = self.until(Some('}'), depth)?;
                expanded.push_str(value.map_or("", |_| &word));
            }
            Some('?') => {
                let word = self.until(Some('}'), depth)?;
                let value = value.ok_or_else(|| format!("{name} is not set: {word}"))?;
                expanded.push_str(&value);
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        let is_letter = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        while let Some(c) = self.text.next_if(is_letter) {
            name.push(c);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "B" => Some("$A b".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<String, String> {
        expand(text, '\\', Quotes::Remove, &lookup)
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, expected) in [
            ("$A/${A}x$Ax", "one/onex"),
            ("$B", "$A b"),
            ("${NO:-d} ${A:-d} ${EMPTY:-d} ${EMPTY-d}", "d one d "),
            ("${NO:+d}${A:+d}${EMPTY:+d}|${EMPTY+d}", "d|d"),
            ("${NO:-${NO:-${A}}}", "one"),
            (r"\$A \\ \a", r"$A \ a"),
            (r#""$A \" \$ \n" '$A \'"#, r#"one " $ \n $A \"#),
            ("$ $- 5$", "$ $- 5$"),
            ("${A?missing}", "one"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
        for bad in [
            "${A",
            "${}",
            "${A/x/y}",
            "${A%x}",
            "'a",
            "\"a",
            "${NO:?why}",
        ] {
            expanded(bad).unwrap_err();
        }
        expanded(&"${A:-".repeat(1000)).unwrap_err();
    }

    #[test]
    fn a_here_document_keeps_its_quotes() {
        let text = "'$A' \"${A}\" \\$A \\n";
        let kept = expand(text, '\\', Quotes::Keep, &lookup);
        assert_eq!(kept.as_deref(), Ok("'one' \"one\" $A \\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in ".{0,80}") {
            let _ = expanded(&text);
            let _ = expand(&text, '`', Quotes::Keep, &lookup);
        }
    }
}
