//! Markdown pages.

use std::fs;

use crate::root;

/// A page of Markdown.
pub(crate) struct Page {
    /// Its path from the root of the repository on.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A second-level section of a page.
pub(crate) struct Section<'a> {
    /// The heading, empty for what precedes the first one.
    pub(crate) heading: &'a str,
    pub(crate) text: &'a str,
}

impl Page {
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path));
        Self {
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
    }

    /// Returns the code blocks of a language.
    pub(crate) fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                continue;
            };
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if info.split(',').next() == Some(language) {
                blocks.push(block.join("\n"));
            }
        }
        blocks
    }

    pub(crate) fn sections(&self) -> Vec<Section<'_>> {
        let mut sections = vec![];
        for part in self.text.split("\n## ") {
            let (heading, text) = match sections.is_empty() {
                true => ("", part),
                false => part.split_once('\n').unwrap_or((part, "")),
            };
            sections.push(Section { heading, text });
        }
        sections
    }

    /// Returns the anchors of the headings, as GitHub makes them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        let slug = |line: &str| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
            text.chars()
                .filter(kept)
                .collect::<String>()
                .replace(' ', "-")
        };
        headings.map(slug).collect()
    }

    /// Returns the targets of the links.
    pub(crate) fn links(&self) -> Vec<&str> {
        let targets = self.text.split("](").skip(1);
        targets
            .filter_map(|rest| Some(rest.split_once(')')?.0))
            .collect()
    }
}
