//! Everything that is looked for, in order.

use std::pin::Pin;

use super::{
    crash, exec, files, leftovers, lifecycle, ports, reconnect, scene::Scene, services, streams,
    terminals, trees, unmet::Seen,
};

/// Something that a user of a VM counts on.
pub(super) struct Behaviour {
    pub(super) group: &'static str,
    /// What is to be seen, in words.
    pub(super) name: &'static str,
    pub(super) look: Look,
}

/// Looks whether it is so.
pub(super) type Look = fn(Scene) -> Looking;

type Looking = Pin<Box<dyn Future<Output = Seen> + Send>>;

type Group = (&'static str, &'static [(&'static str, Look)]);

/// All of them. The first one fails if no VM starts.
pub(super) fn all() -> impl Iterator<Item = Behaviour> {
    GROUPS.iter().flat_map(|(group, behaviours)| {
        behaviours.iter().map(|(name, look)| Behaviour {
            group,
            name,
            look: *look,
        })
    })
}

const GROUPS: &[Group] = &[
    (
        "lifecycle",
        &[
            ("it starts, runs and has an id", |scene| {
                Box::pin(lifecycle::runs(scene))
            }),
            ("health tells backend, agent and round trip", |scene| {
                Box::pin(lifecycle::health(scene))
            }),
            ("two at once are strangers", |scene| {
                Box::pin(lifecycle::strangers(scene))
            }),
            ("destroying twice does nothing", |scene| {
                Box::pin(lifecycle::destroyed_twice(scene))
            }),
            ("use after destroy is a typed error", |scene| {
                Box::pin(lifecycle::used_after_destroy(scene))
            }),
        ],
    ),
    (
        "exec",
        &[
            ("arguments are no shell", |scene| {
                Box::pin(exec::arguments_are_no_shell(scene))
            }),
            ("a line of shell is one", |scene| {
                Box::pin(exec::shell(scene))
            }),
            ("a nonzero exit is a result", |scene| {
                Box::pin(exec::nonzero_exit(scene))
            }),
            ("a missing program is a typed error", |scene| {
                Box::pin(exec::missing_program(scene))
            }),
            ("environment and folder", |scene| {
                Box::pin(exec::surroundings(scene))
            }),
            ("a timeout ends it and keeps what it printed", |scene| {
                Box::pin(exec::timeout(scene))
            }),
            ("a dropped future ends it", |scene| {
                Box::pin(exec::cancelled(scene))
            }),
            ("a background process is found again", |scene| {
                Box::pin(exec::background(scene))
            }),
        ],
    ),
    (
        "streams",
        &[
            ("events come in order", |scene| {
                Box::pin(streams::order(scene))
            }),
            ("standard input and its end arrive", |scene| {
                Box::pin(streams::stdin(scene))
            }),
            ("much output arrives byte for byte", |scene| {
                Box::pin(streams::much(scene))
            }),
            ("who reads slowly loses nothing", |scene| {
                Box::pin(streams::backpressure(scene))
            }),
        ],
    ),
    (
        "files",
        &[
            ("write, read and parts", |scene| {
                Box::pin(files::write_and_read(scene))
            }),
            ("stat, exists, digest and usage", |scene| {
                Box::pin(files::stat(scene))
            }),
            ("list, glob and walk", |scene| Box::pin(files::list(scene))),
            ("rename, copy, links and removal", |scene| {
                Box::pin(files::rename_and_copy(scene))
            }),
            ("mode, owner and time", |scene| {
                Box::pin(files::attributes(scene))
            }),
            ("watching tells of changes", |scene| {
                Box::pin(files::watch(scene))
            }),
            ("a missing file and a way out are typed errors", |scene| {
                Box::pin(files::refusals(scene))
            }),
            ("trees go in and come out the same", |scene| {
                Box::pin(trees::round_trip(scene))
            }),
            ("manifests tell what changed", |scene| {
                Box::pin(trees::changes(scene))
            }),
            ("patches are applied", |scene| Box::pin(trees::patch(scene))),
        ],
    ),
    (
        "sessions",
        &[
            ("a terminal is a terminal", |scene| {
                Box::pin(terminals::terminal(scene))
            }),
            ("a service becomes ready, logs and stops", |scene| {
                Box::pin(services::service(scene))
            }),
            ("a port is dialled and published", |scene| {
                Box::pin(ports::port(scene))
            }),
            ("a stream goes on over a new link", |scene| {
                Box::pin(reconnect::stream(scene))
            }),
        ],
    ),
    (
        "crash",
        &[
            ("of the VMM: a typed error within a second", |scene| {
                Box::pin(crash::vmm(scene))
            }),
            ("of the program: nothing is left", |scene| {
                Box::pin(crash::program(scene))
            }),
        ],
    ),
    (
        "leftovers",
        &[
            ("none after stop", |scene| {
                Box::pin(leftovers::after_stop(scene))
            }),
            ("none after drop", |scene| {
                Box::pin(leftovers::after_drop(scene))
            }),
        ],
    ),
];
