//! The manuals of the programs against their options.

use std::collections::BTreeSet;

use crate::{
    page::Page,
    program::{DISK_TOOL, Program, VMCELL, mentioned_options},
};

#[test]
fn the_manual_of_vmcell_has_all_its_commands_and_options() {
    check(VMCELL, &Page::read("docs/cli.md"));
}

#[test]
fn the_manual_of_vmcell_disk_has_all_its_commands_and_options() {
    check(DISK_TOOL, &Page::read("docs/disk-tool.md"));
}

/// Each command has a section, which mentions its options unless a section about options does; and there are no others.
fn check(program: Program, page: &Page) {
    let sections = page.sections();
    let about_options = sections
        .iter()
        .filter(|section| section.heading.starts_with("Options "));
    let shared: BTreeSet<_> = about_options
        .flat_map(|section| mentioned_options(section.text))
        .collect();
    let mut all = BTreeSet::new();
    for command in program.commands() {
        let heading = format!("{} {command}", program.name);
        let section = sections.iter().find(|section| section.heading == heading);
        let section = section.unwrap_or_else(|| panic!("{} has no section {heading}", page.path));
        let mentioned = mentioned_options(section.text);
        let options = program.options(&command);
        let missing = options.iter().filter(|option| {
            // One sentence for both programs: see their sections about JSON.
            *option != "--json" && !mentioned.contains(*option) && !shared.contains(*option)
        });
        let missing: Vec<_> = missing.collect();
        assert!(
            missing.is_empty(),
            "{}, {heading}: {missing:?} missing",
            page.path
        );
        all.extend(options);
    }
    // The examples of one manual may call the other program.
    all.extend(VMCELL.options("run"));
    let mentioned = mentioned_options(&page.text);
    let unknown: Vec<_> = mentioned.difference(&all).collect();
    assert!(
        unknown.is_empty(),
        "{}: {unknown:?} do not exist",
        page.path
    );
}
