/// What the comments at the top of a Dockerfile say about the rest.
pub(super) struct Directives {
    /// Continues lines, and takes the meaning from what follows.
    pub(super) escape: char,
}

/// The language of the files that this crate reads.
const SYNTAX: &str = "docker/dockerfile";

impl Directives {
    /// Reads the first lines. An error has the number of its line.
    pub(super) fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut directives = Self { escape: '\\' };
        for (index, line) in text.lines().enumerate() {
            let Some((name, value)) = directive(line) else {
                break;
            };
            let refuse = |problem| Err((index + 1, problem));
            match name.to_ascii_lowercase().as_str() {
                "escape" => match value {
                    "\\" => directives.escape = '\\',
                    "`" => directives.escape = '`',
                    _ => return refuse(format!("escape is \\ or `, not {value:?}")),
                },
                "syntax" => {
                    let (image, version) = value.split_once(':').unwrap_or((value, "1"));
                    let is_known = image == SYNTAX || image == "docker.io/docker/dockerfile";
                    if !is_known || !version.starts_with('1') {
                        return refuse(format!("the syntax {value:?} is not known: {SYNTAX}:1 is"));
                    }
                }
                // What Docker's linter warns of.
                "check" => {}
                _ => break,
            }
        }
        Ok(directives)
    }
}

/// Returns the name and the value of `# NAME=VALUE`.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim_start().strip_prefix('#')?.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_name.then_some((name, value.trim()))
}
