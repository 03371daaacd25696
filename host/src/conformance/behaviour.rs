//! All behaviours that are checked, in order.

use std::pin::Pin;

use super::{
    check::CheckResult, context::CheckContext, crash, exec, files, leftovers, lifecycle, ports,
    reconnect, services, streams, terminals, trees,
};

/// A behaviour that users of a VM rely on.
pub(super) struct Behaviour {
    pub(super) group: &'static str,
    /// The expected behaviour, in words.
    pub(super) name: &'static str,
    pub(super) check: Check,
}

/// Checks a behaviour.
pub(super) type Check = fn(CheckContext) -> CheckFuture;

type CheckFuture = Pin<Box<dyn Future<Output = CheckResult> + Send>>;

type Group = (&'static str, &'static [(&'static str, Check)]);

/// Returns all of them. The first one fails if no VM starts.
pub(super) fn all() -> impl Iterator<Item = Behaviour> {
    GROUPS.iter().flat_map(|(group, behaviours)| {
        behaviours.iter().map(|(name, check)| Behaviour {
            group,
            name,
            check: *check,
        })
    })
}

const GROUPS: &[Group] = &[
    (
        "lifecycle",
        &[
            ("it starts, runs and has an id", |cx| {
                Box::pin(lifecycle::runs(cx))
            }),
            ("health reports backend, agent and round trip", |cx| {
                Box::pin(lifecycle::health(cx))
            }),
            ("two VMs at once are isolated", |cx| {
                Box::pin(lifecycle::isolation(cx))
            }),
            ("destroying twice does nothing", |cx| {
                Box::pin(lifecycle::destroyed_twice(cx))
            }),
            ("use after destroy is a typed error", |cx| {
                Box::pin(lifecycle::used_after_destroy(cx))
            }),
        ],
    ),
    (
        "exec",
        &[
            ("arguments are not interpreted by a shell", |cx| {
                Box::pin(exec::no_shell(cx))
            }),
            ("a shell line runs in a shell", |cx| {
                Box::pin(exec::shell(cx))
            }),
            ("a nonzero exit is a result", |cx| {
                Box::pin(exec::nonzero_exit(cx))
            }),
            ("a missing program is a typed error", |cx| {
                Box::pin(exec::missing_program(cx))
            }),
            ("environment and working directory", |cx| {
                Box::pin(exec::environment(cx))
            }),
            ("a timeout ends it and keeps what it printed", |cx| {
                Box::pin(exec::timeout(cx))
            }),
            ("a dropped future ends it", |cx| {
                Box::pin(exec::cancelled(cx))
            }),
            ("a background process is found again", |cx| {
                Box::pin(exec::background(cx))
            }),
        ],
    ),
    (
        "streams",
        &[
            ("events come in order", |cx| Box::pin(streams::order(cx))),
            ("standard input and its end arrive", |cx| {
                Box::pin(streams::stdin(cx))
            }),
            ("large output arrives byte for byte", |cx| {
                Box::pin(streams::large_output(cx))
            }),
            ("a slow reader loses nothing", |cx| {
                Box::pin(streams::backpressure(cx))
            }),
        ],
    ),
    (
        "files",
        &[
            ("write, read and parts", |cx| {
                Box::pin(files::write_and_read(cx))
            }),
            ("stat, exists, digest and usage", |cx| {
                Box::pin(files::stat(cx))
            }),
            ("list, glob and walk", |cx| Box::pin(files::list(cx))),
            ("rename, copy, links and removal", |cx| {
                Box::pin(files::rename_and_copy(cx))
            }),
            ("mode, owner and time", |cx| Box::pin(files::attributes(cx))),
            ("watching reports changes", |cx| Box::pin(files::watch(cx))),
            ("a missing file and an escape are typed errors", |cx| {
                Box::pin(files::refusals(cx))
            }),
            ("trees go in and come out the same", |cx| {
                Box::pin(trees::round_trip(cx))
            }),
            ("manifests show what changed", |cx| {
                Box::pin(trees::changes(cx))
            }),
            ("patches are applied", |cx| Box::pin(trees::patch(cx))),
        ],
    ),
    (
        "sessions",
        &[
            ("a terminal runs a shell", |cx| {
                Box::pin(terminals::terminal(cx))
            }),
            ("a service becomes ready, logs and stops", |cx| {
                Box::pin(services::service(cx))
            }),
            ("a port is dialled and published", |cx| {
                Box::pin(ports::port(cx))
            }),
            ("a stream continues over a new link", |cx| {
                Box::pin(reconnect::stream(cx))
            }),
        ],
    ),
    (
        "crash",
        &[
            ("of the VMM: a typed error within a second", |cx| {
                Box::pin(crash::vmm(cx))
            }),
            ("of the program: nothing is left", |cx| {
                Box::pin(crash::program(cx))
            }),
        ],
    ),
    (
        "leftovers",
        &[
            ("none after stop", |cx| Box::pin(leftovers::after_stop(cx))),
            ("none after drop", |cx| Box::pin(leftovers::after_drop(cx))),
        ],
    ),
];
