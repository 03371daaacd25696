//! The agent in a program that has children and a loop of its own, with all of
//! its features or without some of them.
//!
//! Without the usual harness: the program that embeds the agent is this one again,
//! with a listening socket as its standard input, and must have one thread.
#![allow(clippy::unwrap_used)]

mod children;
#[path = "../agent/client/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod client;
mod features;
mod process_count;
mod process_settings;
mod program;
mod running_program;
mod snapshots;

use std::env;

use program::Mode;

fn main() {
    let mode = env::args().find_map(|argument| Mode::from_argument(&argument));
    if let Some(mode) = mode {
        program::run(mode);
    }
    for mode in [Mode::Apart, Mode::HandedOver] {
        println!("{mode:?}");
        features::what_the_program_does_not_allow_is_not_announced_and_is_rejected(mode);
        features::what_is_not_compiled_in_is_not_announced_and_is_rejected(mode);
        features::a_rejected_request_leaves_the_rest_of_the_link_alone(mode);
        features::what_is_compiled_in_is_served(mode);
        children::commands_and_children_of_the_program_end_with_their_own_status(mode);
        children::commands_inherit_nothing_of_the_program(mode);
        children::many_commands_at_once_leave_nothing_behind(mode);
        children::a_command_that_ends_by_a_signal_reports_it(mode);
        children::a_command_that_cannot_be_executed_leaves_nothing_behind(mode);
        children::a_descendant_outlives_its_command(mode);
        children::a_killed_worker_is_replaced(mode);
    }
    children::the_end_of_a_command_without_pipes_is_noticed();
    children::orphans_that_become_children_of_the_program_are_left_to_it();
    children::commands_end_although_the_program_takes_their_status();
    children::killing_all_leaves_no_child_behind();
    children::a_program_that_ignores_sigchld_is_told_so();
    process_count::processes_are_counted_as_the_kernel_does();
    snapshots::a_new_identity_is_that_of_the_hellos_and_resets_that_follow();
    snapshots::an_identity_that_cannot_be_taken_changes_nothing();
    snapshots::frozen_processes_stand_still_until_they_are_thawed();
    snapshots::a_power_off_lets_frozen_processes_react_to_sigterm();
}
