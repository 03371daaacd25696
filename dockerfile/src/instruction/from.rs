use super::Flags;

/// `FROM IMAGE [AS NAME]`
#[derive(Clone, Debug)]
pub(crate) struct FromInstruction {
    pub(crate) platform: Option<String>,
    pub(crate) image: String,
    /// The name of the stage, in small letters.
    pub(crate) name: Option<String>,
}

impl FromInstruction {
    pub(super) fn parse(mut flags: Flags, arguments: &str) -> Result<Self, String> {
        let platform = flags.take("platform")?;
        flags.finish("FROM")?;
        let words: Vec<_> = arguments.split_whitespace().collect();
        let (image, name) = match words[..] {
            [image] => (image, None),
            [image, word, name] if word.eq_ignore_ascii_case("as") => (image, Some(name)),
            _ => return Err("expected FROM IMAGE, or FROM IMAGE AS NAME".to_owned()),
        };
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_letter)
        };
        if let Some(bad) = name.filter(|name| !is_name(name)) {
            return Err(format!("{bad:?} is no name of a stage"));
        }
        Ok(Self {
            platform,
            image: image.to_owned(),
            name: name.map(str::to_ascii_lowercase),
        })
    }
}
