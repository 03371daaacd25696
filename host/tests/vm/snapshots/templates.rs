//! Templates, and VMs that start from them.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use vmcell::{
    Command, LinkKind, Template, Vm, files::ManifestOptions, service::ServiceSpec,
    terminal::TerminalOptions,
};

use super::{builder, text};
use crate::clock::assert_clock_matches;

#[tokio::test]
async fn a_template_is_made_once_and_started_many_times() {
    let made = Arc::new(AtomicUsize::new(0));
    let get = |key: &str| {
        let made = made.clone();
        Template::builder(builder())
            .prepare(key, move |vm| {
                made.fetch_add(1, Ordering::Relaxed);
                async move {
                    vm.files().write("/root/file", "prepared").await?;
                    vm.spawn(Command::new("sleep").arg("100000").tag("sleeper"))
                        .await?;
                    Ok(())
                }
            })
            .get()
    };
    let key = format!("test {:?}", Instant::now());
    // Two at once: one waits for the other.
    let (first, second) = tokio::join!(get(&key), get(&key));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert_eq!(first.path(), second.path());
    let vms = [first.start(), second.start(), first.start()];
    for vm in futures_util::future::join_all(vms).await {
        let vm = vm.unwrap();
        assert_eq!(vm.files().read("/root/file").await.unwrap(), b"prepared");
        let sleeper = vm.processes().get("sleeper").await.unwrap();
        assert!(sleeper.is_some());
    }
    assert!(Template::remove(first.name()).await.unwrap());
    assert!(!Template::remove(first.name()).await.unwrap());
    // What was loaded before still works.
    first.start().await.unwrap();
}

#[tokio::test]
async fn a_warm_start_needs_no_boot_and_settings_are_kept() {
    let warm = || builder().warm(true);
    let mut boot_ids = HashSet::new();
    for number in 0..3 {
        let name = format!("warm-{number}");
        let vm = warm()
            .id(format!("{name}-{}", std::process::id()))
            .hostname(&name)
            .start()
            .await
            .unwrap();
        assert_eq!(text(&vm, "hostname").await, name);
        assert_clock_matches(&vm).await;
        let boot_id = text(&vm, "cat /proc/sys/kernel/random/boot_id").await;
        assert!(boot_ids.insert(boot_id));
    }
    // What cannot be started from a template boots.
    let link = warm().link(LinkKind::HybridVsock).start().await.unwrap();
    assert_eq!(text(&link, "hostname").await, "vmcell");
}

#[tokio::test]
async fn a_hundred_vms_of_a_template_at_once_have_nothing_in_common() {
    let program = "exec 3</dev/urandom; while read line; do dd bs=64 count=1 <&3 2>/dev/null | \
                   sha256sum; done > /run/random < /run/asked";
    let template =
        Template::builder(builder()).prepare("reads random numbers", move |vm| async move {
            vm.exec(["mkfifo", "/run/asked"]).await?;
            vm.spawn(Command::shell(program)).await?;
            Ok(())
        });
    let template = template.get().await.unwrap();
    let vms = futures_util::future::join_all((0..100).map(|_| template.start())).await;
    let mut seen = HashSet::new();
    for vm in vms {
        let vm = vm.unwrap();
        // A program that ran before, the kernel's generator, and names.
        let script = "echo > /run/asked & head -c 4096 /dev/urandom | sha256sum; hostname; \
                      cat /proc/sys/kernel/random/boot_id; \
                      until [ -s /run/random ]; do sleep 0.01; done; cat /run/random";
        let lines = text(&vm, script).await;
        assert_eq!(lines.lines().count(), 4, "{lines}");
        for line in lines.lines() {
            assert!(seen.insert(line.to_owned()), "{line} was seen before");
        }
        assert!(seen.insert(vm.id().to_owned()));
    }
}

#[tokio::test]
async fn a_failed_preparation_leaves_no_template() {
    let name = format!("failing-{}", std::process::id());
    let failing = || {
        Template::builder(builder())
            .name(&name)
            .prepare("fails", |vm| async move {
                vm.exec(["/no/such/program"]).await?;
                Ok(())
            })
    };
    let error = failing().get().await.unwrap_err();
    assert_eq!(error.code(), "exec", "{error}");
    assert_eq!(Template::find(&name).await.unwrap(), None);
    let error = failing().name("../x").get().await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
}

#[tokio::test]
async fn a_named_template_is_made_again_when_it_is_made_of_something_else_or_damaged() {
    let name = format!("named-{}", std::process::id());
    let get = |content: &'static str| {
        Template::builder(builder())
            .name(&name)
            .prepare(content, move |vm| async move {
                vm.files().write("/root/file", content).await?;
                Ok(())
            })
    };
    let read =
        async |template: &Template| text(&template.start().await.unwrap(), "cat /root/file").await;
    let first = get("one").get().await.unwrap();
    assert_eq!(read(&first).await, "one");
    let second = get("two").get().await.unwrap();
    assert_eq!((first.name(), first.path()), (second.name(), second.path()));
    assert_eq!(read(&second).await, "two");
    let listed = Template::list().await.unwrap();
    let info = listed.iter().find(|info| info.name == name).unwrap();
    assert_eq!((info.vcpus, info.memory_mib), (1, 128));
    assert!(info.bytes > 1 << 20 && info.bytes < 100 << 20, "{info:?}");
    // What was loaded before does not change.
    assert_eq!(read(&first).await, "one");

    let memory = second.path().join("memory");
    let file = std::fs::File::options().write(true).open(&memory).unwrap();
    file.set_len(1 << 20).unwrap();
    // A folder that was touched is loaded, and checked, again.
    std::fs::write(second.path().join("touched"), "").unwrap();
    let third = get("two").get().await.unwrap();
    assert_eq!(read(&third).await, "two");
    assert!(!third.path().join("touched").exists());
    assert!(Template::remove(&name).await.unwrap());
}

/// Their futures move between threads, which the compiler must be able to prove.
#[test]
fn a_preparation_can_use_all_of_the_library() {
    let service = || [("web", ServiceSpec::new(Command::new("httpd")).needs("db"))];
    let _ = Template::builder(builder()).prepare("never run", move |vm| async move {
        vm.files().push("here", "/there").run().await?;
        vm.files().pull("/there", "here").run().await?;
        vm.files().manifest("", ManifestOptions::new()).await?;
        vm.services().start_all(service()).await?;
        vm.terminals()
            .session("shell", TerminalOptions::new())
            .await?
            .run("ls")
            .await?;
        vm.ports().publish(80).await?;
        vm.exec(["true"]).await?;
        vm.snapshot("there").await?;
        Ok(())
    });
}

#[tokio::test]
async fn a_flattened_template_is_a_clean_image_with_all_that_was_prepared() {
    let template = Template::builder(builder()).prepare("writes", |vm| async move {
        // It is only in memory, and more is written while the VM stops.
        let script = "echo prepared > /root/file; \
                      (i=0; while true; do i=$((i+1)); echo $i > /root/$((i % 50)); done) &";
        vm.spawn(Command::shell(script)).await?;
        vm.exec(["sh", "-c", "until [ -e /root/49 ]; do sleep 0.01; done"])
            .await?;
        Ok(())
    });
    let template = template.get().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("flat.ext4");
    template.flatten(&image).await.unwrap();
    let checked = std::process::Command::new("e2fsck")
        .args(["-f", "-n"])
        .arg(&image)
        .output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let vm = Vm::builder()
        .image(&image)
        .memory_mib(128)
        .start()
        .await
        .unwrap();
    assert_eq!(
        text(&vm, "cat /root/file; ls /root/49").await,
        "prepared\n/root/49"
    );
    let error = template.flatten(&image).await.unwrap_err();
    assert_eq!(error.code(), "disk", "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
