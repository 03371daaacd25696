//! How this machine gets packages: what its administrator has told apt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Tools;

/// Where sources are, see sources.list(5).
const SOURCES: &str = "/etc/apt/sources.list";
const MORE_SOURCES: &str = "/etc/apt/sources.list.d";

/// Options that decide whether packages arrive, see apt.conf(5) and apt-transport-http(1).
const OPTIONS: [&str; 6] = [
    "Acquire::http::",
    "Acquire::https::",
    "Acquire::Check-Valid-Until",
    "Acquire::ForceIPv4",
    "Acquire::ForceIPv6",
    "Acquire::Retries",
];

/// Proxies go into the environment, since they may hold passwords and command lines are public.
const PROXIES: [(&str, &str); 2] = [
    ("Acquire::http::Proxy", "http_proxy"),
    ("Acquire::https::Proxy", "https_proxy"),
];

/// What apt is told on this machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Apt {
    /// Options as apt.conf(5) writes them.
    pub(super) options: Vec<String>,
    /// Environment variables that name proxies.
    pub(super) proxies: Vec<(&'static str, String)>,
}

impl Apt {
    /// Asks `apt-config`. Where that does not answer, there is nothing to know.
    pub(super) fn of_this_machine(tools: &Tools) -> Self {
        let dump = tools
            .tool_of("apt", "apt-config")
            .ok()
            .and_then(|mut tool| {
                tool.command
                    .args(["dump", "--no-empty", "--format", "%F %v%n"]);
                tool.command.output().ok()
            });
        dump.map_or_else(Self::default, |dump| {
            Self::parse(&String::from_utf8_lossy(&dump.stdout))
        })
    }

    fn parse(dump: &str) -> Self {
        let mut apt = Self::default();
        for (key, value) in dump.lines().filter_map(|line| line.split_once(' ')) {
            // It may also say that there is none, which no variable can.
            let proxy = PROXIES
                .iter()
                .find(|(option, _)| *option == key && value.contains("://"));
            if let Some((_, variable)) = proxy {
                apt.proxies.push((variable, value.to_owned()));
            } else if OPTIONS.iter().any(|option| key.starts_with(option)) && !value.contains('"') {
                apt.options.push(format!("{key} \"{value}\";"));
            }
        }
        apt
    }
}

/// The files of this machine that say where the packages of a suite are.
pub(super) fn sources_of(suite: &str) -> Vec<PathBuf> {
    let more = fs::read_dir(MORE_SOURCES).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = more.map(|entry| entry.path()).collect();
    files.sort();
    let files = [PathBuf::from(SOURCES)].into_iter().chain(files);
    files.filter(|file| has_sources_of(file, suite)).collect()
}

fn has_sources_of(file: &Path, suite: &str) -> bool {
    let is_read_by_apt = matches!(
        file.extension().and_then(|extension| extension.to_str()),
        Some("list" | "sources")
    );
    is_read_by_apt && fs::read_to_string(file).is_ok_and(|text| tells_of(&text, suite))
}

/// Whether one of the sources is the suite's: another distribution, or only an addition to this
/// one, does not have the packages that an environment begins with.
fn tells_of(text: &str, suite: &str) -> bool {
    let mut words = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace);
    let has_main = words.clone().any(|word| word == "main");
    has_main && words.any(|word| word == suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_sources_are_understood() {
        let old = "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n";
        let new = "Types: deb\nURIs: http://mirror.example/debian\n\
                   Suites: bookworm bookworm-updates\nComponents: main\n";
        assert!(tells_of(old, "bookworm") && tells_of(new, "bookworm"));
        assert!(!tells_of(old, "trixie") && !tells_of(new, "book"));
    }

    #[test]
    fn what_is_commented_out_or_foreign_does_not_count() {
        let others = [
            "",
            " # deb http://mirror.example/debian bookworm main\n",
            "deb http://mirror.example/docker bookworm stable\n",
            "deb http://mirror.example/pgdg bookworm-pgdg main\n",
        ];
        for text in others {
            assert!(!tells_of(text, "bookworm"), "{text}");
        }
    }

    #[test]
    fn of_all_options_those_that_fetch_are_taken() {
        let dump = "APT::Architecture amd64\n\
                    Acquire::Check-Valid-Until false\n\
                    Acquire::http::Proxy http://name:password@proxy.example:3128\n\
                    Acquire::http::Proxy::mirror.example DIRECT\n\
                    Acquire::https::Proxy false\n\
                    Acquire::https::User-Agent a \"quoted\" name\n\
                    Acquire::Languages:: none\n\
                    DPkg::Post-Invoke:: rm -rf /\n";
        let apt = Apt::parse(dump);
        let options = [
            "Acquire::Check-Valid-Until \"false\";",
            "Acquire::http::Proxy::mirror.example \"DIRECT\";",
            "Acquire::https::Proxy \"false\";",
        ];
        assert_eq!(apt.options, options);
        let proxy = "http://name:password@proxy.example:3128".to_owned();
        assert_eq!(apt.proxies, [("http_proxy", proxy)]);
    }
}
