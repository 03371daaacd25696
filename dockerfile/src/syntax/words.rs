/// Splits a text at its white space, but not in quotes. The words are as they are written.
pub(crate) fn words(text: &str, escape: char) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            words.extend(start.take().map(|start| &text[start..at]));
            continue;
        }
        start.get_or_insert(at);
        match quote {
            // Nothing has a meaning in single quotes.
            Some('\'') if c != '\'' => {}
            _ if c == escape => {
                chars.next();
            }
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

/// Splits `NAME=VALUE` words. The older `NAME VALUE` has one value, the rest of the line.
pub(crate) fn pairs(text: &str, escape: char) -> Result<Vec<(String, String)>, String> {
    let words = words(text, escape);
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    match words.first() {
        None => Err("expected NAME=VALUE".to_owned()),
        Some(first) if !first.contains('=') => {
            let rest = text.trim_start().split_once(char::is_whitespace);
            let rest = rest.map(|(name, value)| (name, value.trim()));
            let rest = rest.filter(|(_, value)| !value.is_empty());
            let rest = rest.ok_or_else(|| format!("{first:?} has no value"))?;
            Ok(vec![pair(rest)])
        }
        Some(_) => {
            let pairs = words.into_iter().map(|word| {
                let found = word.split_once('=').filter(|(name, _)| !name.is_empty());
                let found = found.ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
                Ok(pair(found))
            });
            pairs.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_escapes_keep_words_together() {
        for (text, expected) in [
            ("a  b\tc ", &["a", "b", "c"][..]),
            (r#"A="x y" B='p q'"#, &[r#"A="x y""#, "B='p q'"]),
            (r"A=x\ y B", &[r"A=x\ y", "B"]),
            (r#""a \" b" c"#, &[r#""a \" b""#, "c"]),
            (r"'a \' b", &[r"'a \'", "b"]),
            ("\"open a", &["\"open a"]),
            ("", &[]),
        ] {
            assert_eq!(words(text, '\\'), expected, "{text}");
        }
    }

    #[test]
    fn pairs_are_old_or_new() {
        let pairs = |text| pairs(text, '\\');
        let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [owned("A", "1"), owned("B", "\"x y\"")];
        assert_eq!(pairs("A=1 B=\"x y\"").unwrap(), expected);
        assert_eq!(pairs("OLD way = it").unwrap(), [owned("OLD", "way = it")]);
        for bad in ["", "ALONE", "A=1 B", "=x"] {
            pairs(bad).unwrap_err();
        }
    }
}
