//! The host's apt configuration: package sources, proxies and download options.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Tools;

/// The files that list package sources, see sources.list(5).
const SOURCES: &str = "/etc/apt/sources.list";
const SOURCES_FOLDER: &str = "/etc/apt/sources.list.d";

/// Options that downloads may depend on, see apt.conf(5) and apt-transport-http(1).
const OPTIONS: [&str; 6] = [
    "Acquire::http::",
    "Acquire::https::",
    "Acquire::Check-Valid-Until",
    "Acquire::ForceIPv4",
    "Acquire::ForceIPv6",
    "Acquire::Retries",
];

/// Options that are passed in the environment: a proxy's URL may contain a password, and every
/// user of the host can read command lines.
const PROXIES: [(&str, &str); 2] = [
    ("Acquire::http::Proxy", "http_proxy"),
    ("Acquire::https::Proxy", "https_proxy"),
];

/// The host's apt options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Apt {
    /// Options in the syntax of apt.conf(5).
    pub(super) options: Vec<String>,
    /// Environment variables that set proxies.
    pub(super) proxies: Vec<(&'static str, String)>,
}

impl Apt {
    /// Reads the options with `apt-config`. Returns no options if it is missing or fails.
    pub(super) fn of_host(tools: &Tools) -> Self {
        let dump = tools.tool("apt", "apt-config").ok().and_then(|mut tool| {
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
            // The value may also be `DIRECT` or `false`, which no variable can express.
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

/// Returns the files of the host that list package sources of a suite.
pub(super) fn source_files(suite: &str) -> Vec<PathBuf> {
    let more = fs::read_dir(SOURCES_FOLDER).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = more.map(|entry| entry.path()).collect();
    files.sort();
    let files = [PathBuf::from(SOURCES)].into_iter().chain(files);
    files.filter(|file| has_sources(file, suite)).collect()
}

fn has_sources(file: &Path, suite: &str) -> bool {
    let is_read_by_apt = matches!(
        file.extension().and_then(|extension| extension.to_str()),
        Some("list" | "sources")
    );
    is_read_by_apt && fs::read_to_string(file).is_ok_and(|text| lists_suite(&text, suite))
}

/// Returns whether the sources include the component `main` of the suite. Sources of another
/// distribution, or of add-on packages only, lack the essential packages.
fn lists_suite(text: &str, suite: &str) -> bool {
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
        assert!(lists_suite(old, "bookworm") && lists_suite(new, "bookworm"));
        assert!(!lists_suite(old, "trixie") && !lists_suite(new, "book"));
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
            assert!(!lists_suite(text, "bookworm"), "{text}");
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
