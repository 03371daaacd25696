//! Runs the conformance suite on every backend and link of the library.
//!
//! What this machine does not support is skipped; the table shows the reason.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use vmcell::{
    LinkKind, Vm, VmBuilder,
    backend::Backends,
    conformance::{Report, Suite, Table, Verdict, wait_to_be_killed},
};

/// Environment variable: the kind of VM that the killed program starts.
const KIND: &str = "VMCELL_CONFORMANCE_KIND";

/// A backend, and a link of it if it has several.
#[derive(Clone)]
struct Kind {
    backend: String,
    link: Option<LinkKind>,
}

impl Kind {
    fn all() -> Vec<Self> {
        let mut kinds = Vec::new();
        for backend in Backends::new().iter() {
            let links = match backend.name() {
                "qemu" => vec![
                    Some(LinkKind::Serial),
                    Some(LinkKind::HybridVsock),
                    Some(LinkKind::Vsock),
                ],
                _ => vec![None],
            };
            kinds.extend(links.into_iter().map(|link| Self {
                backend: backend.name().to_owned(),
                link,
            }));
        }
        kinds
    }

    fn name(&self) -> String {
        match self.link {
            Some(link) => format!("{}/{link}", self.backend),
            None => self.backend.clone(),
        }
    }

    fn builder(&self) -> VmBuilder {
        let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
        let builder = Vm::builder()
            .image(image)
            .memory_mib(128)
            .backend(&self.backend)
            .allow_host_compat();
        match self.link {
            Some(link) => builder.link(link),
            None => builder,
        }
    }

    fn suite(&self) -> Suite {
        let (builder, name) = (self.clone(), self.name());
        let program = move || {
            let mut program = Command::new(std::env::current_exe().unwrap());
            program
                .args(["a_program_that_is_killed", "--exact", "--nocapture"])
                .env(KIND, &name);
            program
        };
        Suite::new(self.name(), move || builder.builder()).crash_program(program)
    }
}

/// The program that the suite kills: this test program, started again.
#[tokio::test]
async fn a_program_that_is_killed() {
    let Ok(name) = std::env::var(KIND) else {
        return;
    };
    let kind = Kind::all().into_iter().find(|kind| kind.name() == name);
    let vm = kind.unwrap().builder().start().await.unwrap();
    wait_to_be_killed(&vm).await;
}

#[tokio::test]
async fn every_backend_does_what_all_must() {
    if std::env::var_os(KIND).is_some() {
        return;
    }
    let mut reports = Vec::new();
    for kind in Kind::all() {
        reports.push(kind.suite().run().await);
    }
    println!("{}", Table::new(&reports));
    assert!(reports.iter().all(Report::is_good), "see the table");
    // The combination that runs everywhere must not be skipped.
    let everywhere = reports.iter().find(|report| report.name == "qemu/serial");
    let rows = &everywhere.unwrap().rows;
    assert!(rows.iter().all(|row| row.verdict == Verdict::Passed));
}
