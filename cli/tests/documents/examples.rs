//! Shell examples.

use std::fs;

use crate::{pages, program::Program, root, shell};

#[test]
fn every_shell_example_has_commands_and_options_that_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let mut count = 0;
    for page in pages() {
        let blocks = page.blocks("sh");
        for line in blocks.iter().flat_map(|block| block.lines()) {
            for words in shell::commands(line) {
                let checked = match (words[0].as_str(), Program::named(&words[0])) {
                    (_, Some(program)) => program.check(&words[1..]),
                    ("make", _) => check_targets(&makefile, &words[1..]),
                    _ => continue,
                };
                checked.unwrap_or_else(|problem| panic!("{}: {line}: {problem}", page.path));
                count += 1;
            }
        }
    }
    assert!(count > 50, "only {count} examples were found");
}

fn check_targets(makefile: &str, words: &[String]) -> Result<(), String> {
    let targets = words.iter().filter(|word| !word.contains('='));
    let is_missing = |target: &&String| {
        let rule = format!("{target}:");
        !makefile.lines().any(|line| line.starts_with(&rule))
    };
    match targets.into_iter().find(is_missing) {
        None => Ok(()),
        Some(target) => Err(format!("there is no target {target}")),
    }
}
