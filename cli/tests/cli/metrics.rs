//! `vmcell metrics` and `vmcell top`.

use std::fs;

use rustix::process::Signal;

use crate::{
    shared_vm::SharedVm,
    user::User,
    vmcell::{Vmcell, eventually},
};

#[test]
fn metrics_are_printed_as_a_table_as_json_for_prometheus_and_as_a_picture() {
    let vm = SharedVm::start("metrics");
    let ended = vm.cli("metrics", []).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    let mut lines = ended.stdout().lines();
    let header: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        header.join(" "),
        "TIME CPU MEMORY DISK PROCESSES RECEIVED SENT"
    );
    assert!(lines.next().unwrap().contains('%'));

    for (tier, resolution) in [("10m", 1), ("2h", 10), ("24h", 120)] {
        let json = vm.cli("metrics", ["--tier", tier, "--json"]).finish();
        let json = json.json();
        assert_eq!(json["sandbox_id"], vm.id.as_str());
        assert_eq!(json["tier"], tier);
        assert_eq!(json["resolution_seconds"], resolution);
        let sample = &json["samples"][0];
        assert!(sample["memory_bytes"].as_u64().unwrap() > 1 << 20, "{json}");
        assert!(sample["disk_bytes"].is_u64(), "{json}");
        assert!(sample.get("processes").is_some(), "{json}");
        assert!(sample["time"].as_str().unwrap().ends_with('Z'), "{json}");
    }

    let ended = vm.cli("metrics", ["--prometheus"]).finish();
    let value = format!("\nvmcell_memory_bytes{{vm=\"{}\"}} ", vm.id);
    assert!(ended.stdout().contains(&value), "{ended:?}");
    assert!(ended.stdout().contains("# TYPE vmcell_processes gauge\n"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("charts.svg");
    let ended = vm
        .cli("metrics", ["--svg", path.to_str().unwrap()])
        .finish();
    assert_eq!((ended.code(), ended.stdout()), (0, ""));
    let written = fs::read_to_string(&path).unwrap();
    let printed = vm.cli("metrics", ["--svg", "-"]).finish();
    for svg in [&*written, printed.stdout()] {
        let document = roxmltree::Document::parse(svg).unwrap();
        let title = document.root_element().first_element_child().unwrap();
        assert_eq!(title.text(), Some(&*vm.id));
    }
}

#[test]
fn top_shows_what_each_vm_uses_and_the_busiest_first() {
    let idle = SharedVm::start("top-idle");
    let busy = SharedVm::start("top-busy");
    busy.spawn("busy", ["sh", "-c", "while :; do :; done"]);
    let is_above = || {
        let ended = Vmcell::new(["top"]).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
        let row = |id: &str| {
            let mut lines = ended.stdout().lines();
            lines.position(|line| line.starts_with(id)).unwrap()
        };
        row(&busy.id) < row(&idle.id)
    };
    assert!(eventually(is_above));
    let json = Vmcell::new(["top", "--json"]).finish().json();
    for vm in [&idle, &busy] {
        let mut vms = json["vms"].as_array().unwrap().iter();
        let found = vms.find(|it| it["id"] == vm.id.as_str()).unwrap();
        assert_eq!(found["state"], "running");
        assert!(found["sample"]["cpu_percent"].is_number(), "{found}");
        assert!(found["sample"]["elapsed_seconds"].as_f64().unwrap() > 0.5);
    }
}

#[test]
fn on_a_terminal_there_are_charts_and_top_goes_on_until_it_is_quit() {
    let vm = SharedVm::start("charts");
    let mut user = User::run(["metrics", &vm.id]);
    user.sees("processor: ");
    user.sees("memory: ");
    let charts = user.sees("now\r\n");
    assert!(charts.contains('\u{2588}'), "{charts}");
    assert_eq!(user.finish().code, 0);
    for key in ["q", "\x03"] {
        let mut user = User::run(["top"]);
        user.sees("\x1b[?1049h\x1b[?25l");
        for _ in 0..2 {
            user.sees("\x1b[HID ");
            user.sees(&vm.id);
            user.sees("q quits");
        }
        assert!(!user.echoes());
        user.types(key);
        user.sees("\x1b[?25h\x1b[?1049l");
        assert_eq!(user.finish().code, 0);
    }
    let mut user = User::run(["top"]);
    user.sees(&vm.id);
    user.signals(Signal::TERM);
    user.sees("\x1b[?1049l");
    assert_eq!(user.finish().code, 143);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let ended = Vmcell::new(["metrics", "no-such-vm", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], "no-such-vm");
    for options in [
        &["--tier", "1h"][..],
        &["--json", "--svg", "-"],
        &["--prometheus", "--tier", "2h"],
    ] {
        let ended = Vmcell::new(["metrics", "vm"].iter().chain(options)).finish();
        assert_ne!(ended.code(), 0, "{options:?}");
    }
    let ended = Vmcell::new(["metrics", "vm", "--tier", "1h"]).finish();
    assert!(
        ended.stderr.contains("expected 10m, 2h or 24h"),
        "{ended:?}"
    );
}
