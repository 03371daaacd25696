/// The options of an instruction: `--NAME=VALUE`.
pub(super) struct Flags(Vec<(String, String)>);

impl Flags {
    /// Splits arguments into the options at their beginning, and the rest.
    pub(super) fn split(arguments: &str) -> Result<(Self, &str), String> {
        let mut flags = Vec::new();
        let mut rest = arguments;
        while let Some(flag) = rest.strip_prefix("--") {
            let (flag, after) = flag.split_once(char::is_whitespace).unwrap_or((flag, ""));
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            if flags.iter().any(|(known, _)| known == name) {
                return Err(format!("--{name} is given twice"));
            }
            flags.push((name.to_owned(), value.to_owned()));
            rest = after.trim_start();
        }
        Ok((Self(flags), rest))
    }

    /// Takes the value of one.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(index) = self.0.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        match self.0.swap_remove(index) {
            (_, value) if value.is_empty() => Err(format!("--{name} has no value")),
            (_, value) => Ok(Some(value)),
        }
    }

    /// Refuses those that nobody has taken.
    pub(super) fn finish(self, keyword: &str) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("{keyword} --{name} is not known here")),
        }
    }
}
