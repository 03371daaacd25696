/// Lines of a Dockerfile that are the input of a command, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HereDocument {
    /// The word that ends it.
    pub(crate) name: String,
    /// Its lines as they are written.
    pub(crate) content: String,
    /// Whether variables in it are expanded: its word is not quoted.
    pub(crate) expands: bool,
    /// Whether tabs at the beginning of its lines do not count.
    strips_tabs: bool,
}

impl HereDocument {
    /// Returns the one that a word begins (`<<EOF`, `<<-EOF`, `<<'EOF'`, `3<<EOF`).
    pub(super) fn begun_by(word: &str) -> Option<Self> {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = word.strip_prefix("<<")?;
        let (rest, strips_tabs) = match rest.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let unquoted = |quote: char| rest.strip_prefix(quote)?.strip_suffix(quote);
        let quoted = unquoted('"').or_else(|| unquoted('\''));
        let name = quoted.unwrap_or(rest);
        if name.is_empty() || name.contains(['<', '"', '\'']) {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            content: String::new(),
            expands: quoted.is_none(),
            strips_tabs,
        })
    }

    /// Reads its lines, up to the one that ends it. Returns whether there is one.
    pub(super) fn read<'a>(&mut self, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> bool {
        for (_, line) in lines {
            if self.stripped(line) == self.name {
                return true;
            }
            self.content.push_str(line);
            self.content.push('\n');
        }
        false
    }

    fn stripped<'a>(&self, line: &'a str) -> &'a str {
        match self.strips_tabs {
            true => line.trim_start_matches('\t'),
            false => line,
        }
    }

    /// Returns what a command reads from it.
    pub(crate) fn text(&self) -> String {
        let lines = self.content.lines();
        let lines = lines.map(|line| [self.stripped(line), "\n"]);
        lines.flatten().collect()
    }
}
