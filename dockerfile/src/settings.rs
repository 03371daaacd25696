use std::collections::BTreeMap;
use std::path::Path;

use vmcell_rootfs::oci::Defaults;

use crate::{
    instruction::{Instruction, parse_ports},
    syntax::{Quotes, expand},
};

/// What the instructions of a stage have set so far.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) defaults: Defaults,
    /// The values of ARGs, which do not outlive the build.
    arguments: BTreeMap<String, String>,
    /// Whether this file has a CMD: an ENTRYPOINT drops that of the base.
    has_command: bool,
    escape: char,
}

/// Values of ARGs from outside of a stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct OuterArguments {
    /// What the caller gives.
    pub(crate) given: BTreeMap<String, String>,
    /// What the ARGs before the first FROM say.
    pub(crate) global: BTreeMap<String, String>,
}

/// ARGs with values that nobody declares.
pub(crate) const PLATFORM: [(&str, &str); 8] = [
    ("TARGETPLATFORM", "linux/amd64"),
    ("TARGETOS", "linux"),
    ("TARGETARCH", "amd64"),
    ("TARGETVARIANT", ""),
    ("BUILDPLATFORM", "linux/amd64"),
    ("BUILDOS", "linux"),
    ("BUILDARCH", "amd64"),
    ("BUILDVARIANT", ""),
];

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Settings {
    /// Those of an image. As with other builders, it has a PATH from now on.
    pub(crate) fn new(defaults: Defaults, escape: char) -> Self {
        let mut settings = Self {
            defaults,
            arguments: BTreeMap::new(),
            has_command: false,
            escape,
        };
        if settings.variable("PATH").is_none() {
            settings.defaults.env.push(format!("PATH={PATH}"));
        }
        settings
    }

    /// Begins a stage that goes on from another.
    pub(crate) fn inherit(&mut self) {
        self.has_command = false;
    }

    /// Returns the value of a variable: ENV goes before ARG.
    fn variable(&self, name: &str) -> Option<String> {
        let set = self.defaults.variables().find(|(known, _)| *known == name);
        let set = set.map(|(_, value)| value.to_owned());
        set.or_else(|| self.arguments.get(name).cloned())
    }

    /// Expands the variables of a text.
    pub(crate) fn expand(&self, text: &str) -> Result<String, String> {
        self.expand_with(text, Quotes::Remove)
    }

    pub(crate) fn expand_with(&self, text: &str, quotes: Quotes) -> Result<String, String> {
        expand(text, self.escape, quotes, &|name| self.variable(name))
    }

    /// Returns the variables of commands.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|(name, value)| (name.clone(), value.clone()));
        let set = self.defaults.variables();
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // The last one counts.
        arguments.chain(set).collect()
    }

    pub(crate) fn directory(&self) -> &str {
        self.defaults.working_dir.as_deref().unwrap_or("/")
    }

    /// Returns an absolute path, from one that starts in the working directory.
    pub(crate) fn absolute(&self, path: &str) -> String {
        let joined = Path::new("/").join(self.directory()).join(path);
        let mut parts: Vec<&str> = Vec::new();
        for part in joined.to_str().unwrap_or(path).split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                _ => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    /// Follows an instruction that changes no file.
    pub(crate) fn apply(
        &mut self,
        instruction: &Instruction,
        outer: &OuterArguments,
    ) -> Result<(), String> {
        match instruction {
            Instruction::Env(pairs) => {
                for (name, value) in self.expanded(pairs)? {
                    let prefix = format!("{name}=");
                    let others = |line: &String| !line.starts_with(&prefix);
                    self.defaults.env.retain(others);
                    self.defaults.env.push(format!("{name}={value}"));
                }
            }
            Instruction::Label(pairs) => {
                let labels = self.expanded(pairs)?;
                self.defaults.labels.extend(labels);
            }
            Instruction::Arg(arguments) => {
                for (name, default) in arguments {
                    let default = default.as_deref().map(|default| self.expand(default));
                    let default = default.transpose()?;
                    let given = outer.given.get(name).cloned();
                    let value = given
                        .or(default)
                        .or_else(|| outer.global.get(name).cloned());
                    if let Some(value) = value {
                        self.arguments.insert(name.clone(), value);
                    }
                }
            }
            Instruction::Expose(words) => {
                for word in words {
                    let word = self.expand(word)?;
                    self.defaults.exposed_ports.extend(parse_ports(&word)?);
                }
                self.defaults.exposed_ports.sort();
                self.defaults.exposed_ports.dedup();
            }
            Instruction::WorkDirectory(path) => {
                let path = self.not_empty(path, "WORKDIR")?;
                self.defaults.working_dir = Some(self.absolute(&path));
            }
            Instruction::User(user) => {
                self.defaults.user = Some(self.not_empty(user, "USER")?);
            }
            Instruction::Entrypoint(form) => {
                self.defaults.entrypoint = form.argv();
                if !self.has_command {
                    self.defaults.command.clear();
                }
            }
            Instruction::Command(form) => {
                self.defaults.command = form.argv();
                self.has_command = true;
            }
            Instruction::From(_) | Instruction::Run(_) | Instruction::Copy(_) => {}
        }
        Ok(())
    }

    fn expanded(&self, pairs: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| Ok((self.expand(name)?, self.expand(value)?)))
            .collect()
    }

    fn not_empty(&self, text: &str, keyword: &str) -> Result<String, String> {
        match self.expand(text)? {
            text if text.is_empty() => Err(format!("{keyword} needs an argument")),
            text => Ok(text),
        }
    }
}
