use super::{HereDocument, directives::Directives, words};
use crate::BuildError;

/// An instruction as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The number of its first line.
    pub(crate) line: usize,
    /// In capitals.
    pub(crate) keyword: String,
    /// The rest, without the ends of lines that continue.
    pub(crate) arguments: String,
    pub(crate) here_documents: Vec<HereDocument>,
}

/// All instructions of a file.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    pub(crate) list: Vec<Statement>,
    /// Takes the meaning from the letter that follows.
    pub(crate) escape: char,
}

impl Statements {
    pub(crate) fn read(text: &str) -> Result<Self, BuildError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let escape = Directives::read(text)
            .map_err(|(line, problem)| BuildError::at(line, problem))?
            .escape;
        let mut lines = text.lines().enumerate();
        let mut list = Vec::new();
        while let Some((index, first)) = lines.next() {
            if is_skipped(first) {
                continue;
            }
            let logical = join(first.trim_start(), &mut lines, escape);
            let (keyword, arguments) = logical
                .split_once(char::is_whitespace)
                .unwrap_or((&logical, ""));
            let mut statement = Statement {
                line: index + 1,
                keyword: keyword.to_ascii_uppercase(),
                arguments: arguments.trim().to_owned(),
                here_documents: Vec::new(),
            };
            statement.read_here_documents(&mut lines, escape)?;
            list.push(statement);
        }
        Ok(Self { list, escape })
    }
}

impl Statement {
    fn read_here_documents<'a>(
        &mut self,
        lines: &mut impl Iterator<Item = (usize, &'a str)>,
        escape: char,
    ) -> Result<(), BuildError> {
        let may_have_them = matches!(self.keyword.as_str(), "RUN" | "COPY" | "ADD");
        if !may_have_them || self.arguments.starts_with('[') {
            return Ok(());
        }
        let words = words(&self.arguments, escape).into_iter();
        for mut document in words.filter_map(HereDocument::begun_by) {
            if !document.read(lines) {
                let problem = format!("no line {:?} ends the here-document", document.name);
                return Err(BuildError::at(self.line, problem));
            }
            self.here_documents.push(document);
        }
        Ok(())
    }
}

/// Whether a line is empty, or a comment.
fn is_skipped(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Joins a line with those that continue it.
fn join<'a>(
    first: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    escape: char,
) -> String {
    let mut joined = String::new();
    let mut part = first;
    loop {
        let Some(continued) = part.trim_end().strip_suffix(escape) else {
            joined.push_str(part);
            return joined;
        };
        joined.push_str(continued);
        match lines.find(|(_, line)| !is_skipped(line)) {
            Some((_, next)) => part = next,
            None => return joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(usize, String, String, Vec<String>)> {
        let statements = Statements::read(text).unwrap().list.into_iter();
        let parts = statements.map(|statement| {
            let documents = statement.here_documents.iter().map(HereDocument::text);
            let documents = documents.collect();
            (
                statement.line,
                statement.keyword,
                statement.arguments,
                documents,
            )
        });
        parts.collect()
    }

    #[test]
    fn lines_are_joined_and_comments_are_not_there() {
        let text = "# syntax=docker/dockerfile:1.7\n\n  from  a\r\n# no\nRUN x \\ \n  # no\n\n  y \\\n\nz\n";
        let run = "x   y z".to_owned();
        let from = (3, "FROM".to_owned(), "a".to_owned(), vec![]);
        assert_eq!(read(text), [from, (5, "RUN".to_owned(), run, vec![])]);
        let text = "# escape=`\nRUN a `\nb\\\nCMD c";
        let lines: Vec<_> = read(text).into_iter().map(|read| read.2).collect();
        assert_eq!(lines, ["a b\\", "c"]);
    }

    #[test]
    fn here_documents_are_read() {
        let text = "RUN cat <<'A B' > x && cat <<-C\n$x\n# kept\nA B\n\ttabs\n\tC\nCOPY <<E f\ne\nE\nRUN <<X\nX\n";
        let read = read(text);
        let documents: Vec<_> = read.into_iter().map(|read| read.3).collect();
        assert_eq!(documents[0], ["$x\n# kept\n", "tabs\n"]);
        assert_eq!(
            documents[1..],
            [vec!["e\n".to_owned()], vec![String::new()]]
        );
        for none in [
            "CMD cat <<EOF",
            "RUN [\"<<EOF\"]",
            "RUN cat <<<word",
            "RUN a<<b",
        ] {
            assert_eq!(Statements::read(none).unwrap().list.len(), 1, "{none}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, expected) in [
            (
                "FROM a\nRUN <<EOF\nx\n",
                "line 2: no line \"EOF\" ends the here-document",
            ),
            ("# escape=x\n", "line 1: escape is \\ or `, not \"x\""),
            (
                "# syntax=other/frontend\n",
                "line 1: the syntax \"other/frontend\" is not known: docker/dockerfile:1 is",
            ),
        ] {
            let error = Statements::read(text).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(FROM |RUN |COPY |<<|EOF|\\\\|#|\n| |[a-z\"'\\[]){0,40}") {
            let _ = Statements::read(&text);
        }
    }
}
