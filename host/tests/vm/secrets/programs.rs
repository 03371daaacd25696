//! The programs that get a secret, and how what they print is read.

use vmcell::{
    Command, ExecEvent, Offsets, ReadFrom,
    service::ServiceSpec,
    terminal::{TerminalOptions, TerminalSize},
};

use super::{VALUE, masked, shell, token};
use crate::start;

#[tokio::test]
async fn a_service_gets_a_secret_again_when_it_is_restarted() {
    let vm = start().await;
    let command = Command::shell("printf '%s\\n' \"$TOKEN\" | tee -a /run/log; exec sleep 1000")
        .secret_env("TOKEN", &token());
    let spec = ServiceSpec::new(command);
    let service = vm.services().start("web", spec.clone()).await.unwrap();
    // Equal secrets make equal services.
    let same = vm.services().ensure_started("web", spec).await.unwrap();
    assert_eq!(same.name(), service.name());
    let lines = |count| format!("until [ $(wc -l < /run/log) = {count} ]; do sleep 0.1; done");
    shell(&vm, &lines(1)).await;
    service.restart().await.unwrap();
    shell(&vm, &lines(2)).await;
    let both = format!("{0}\n{0}\n", masked());
    assert_eq!(shell(&vm, "cat /run/log").await, both);
    assert_eq!(service.logs().all().text().await.unwrap(), both);
    let rest = service.logs().since(5).text().await.unwrap();
    assert_eq!(rest, both[5..]);
    service.stop().await.unwrap();
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_terminal_shows_no_secret_however_it_is_drawn() {
    let vm = start().await;
    let folder = tempfile::tempdir().unwrap();
    let command = Command::new("/bin/sh").secret_env("TOKEN", &token());
    let options = TerminalOptions::command(command)
        .size(TerminalSize::new(40, 20).unwrap())
        .record(folder.path());
    let terminal = vm.terminals().open(options).await.unwrap();
    for line in [
        "printf '%s\\n' \"$TOKEN\"",
        // With colours between the letters, and a letter after the other from the end.
        "printf %s \"$TOKEN\" | sed 's/./&\\x1b[1m/g'; echo",
        "printf '\\033[2J\\033[3;9H%s\\033[3;1H%s\\033[6;1H' \"${TOKEN#correct-}\" correct-",
        "printf %s \"$TOKEN\" | base64",
    ] {
        terminal.run(line).await.unwrap();
    }
    let screen = terminal.screen();
    assert!(screen.text().contains(&masked()), "{}", screen.text());
    let shown = [
        screen.text(),
        screen.to_svg(),
        terminal.scrollback(1000).join("\n"),
        terminal.asciicast(),
    ];
    terminal.terminate().await.unwrap();
    for text in shown {
        let dense: String = text.split_whitespace().collect();
        assert!(!dense.contains(VALUE), "{text}");
    }
    super::traces::assert_no_trace(folder.path());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn output_is_masked_from_wherever_it_is_read() {
    let vm = start().await;
    let line = "printf 'before %s after' \"$TOKEN\"";
    let command = Command::shell(line)
        .secret_env("TOKEN", &token())
        .tag("once");
    vm.spawn(command).await.unwrap().wait().await.unwrap();
    let whole = format!("before {} after", masked());
    for offset in 0..=whole.len() {
        let from = ReadFrom::Offsets(Offsets {
            stdout: offset as u64,
            stderr: 0,
        });
        let mut stream = vm.processes().attach("once", from).unwrap();
        let mut read = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            match event {
                ExecEvent::Stdout(bytes) => read.extend_from_slice(&bytes),
                ExecEvent::Gap { .. } => panic!("nothing is missing"),
                _ => {}
            }
        }
        assert_eq!(String::from_utf8(read).unwrap(), whole[offset..]);
        assert_eq!(stream.offsets().stdout, whole.len() as u64);
    }
    vm.kill().await.unwrap();
}
