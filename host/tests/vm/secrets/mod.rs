//! Secrets that commands get, and that nobody reads.

mod programs;
mod traces;

use std::time::Duration;

use vmcell::{Command, ExecEvent, ReadFrom, Vm, secret::Secret};

use crate::start;

const VALUE: &str = "correct-horse/battery+staple=42";

fn token() -> Secret {
    Secret::new("token", VALUE.to_owned()).unwrap()
}

fn masked() -> String {
    "*".repeat(VALUE.len())
}

async fn shell(vm: &Vm, line: &str) -> String {
    let output = vm.exec_command(Command::shell(line)).await.unwrap();
    assert!(output.success(), "{line}: {output:?}");
    output.stdout_text()
}

#[tokio::test]
async fn a_command_gets_a_secret_and_its_output_does_not_show_it() {
    let vm = start().await;
    let line = "printf '%s\n' \"$TOKEN\"; printf %s \"$TOKEN\" | wc -c; \
                printf %s \"$TOKEN\" >&2; printf %s \"$TOKEN\" > /tmp/file";
    let command = Command::shell(line).secret_env("TOKEN", &token());
    let output = vm.exec_command(command).await.unwrap();
    assert_eq!(
        output.stdout_text(),
        format!("{}\n{}\n", masked(), VALUE.len())
    );
    assert_eq!(output.stderr_text(), masked());
    // Nobody else got it, and nobody else shows it.
    assert_eq!(shell(&vm, "echo ${TOKEN-none}").await, "none\n");
    assert_eq!(shell(&vm, "cat /tmp/file").await, masked());
    for line in [
        "base64 -w 0 /tmp/file",
        "printf xx | cat - /tmp/file | base64",
        "xxd -p /tmp/file",
    ] {
        let output = shell(&vm, line).await;
        assert!(
            output.matches('*').count() >= VALUE.len() * 8 / 6 - 1,
            "{line}: {output}"
        );
    }
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_secret_that_comes_letter_by_letter_is_masked_and_the_offsets_are_true() {
    let vm = start().await;
    let line = "i=0; while [ $i -lt 31 ]; do printf %s \"$TOKEN\" | cut -c $((i+1)) | tr -d '\\n'; \
                i=$((i+1)); done; echo; echo end";
    let command = Command::shell(line)
        .secret_env("TOKEN", &token())
        .tag("slow");
    let process = vm.spawn(command).await.unwrap();
    let mut stream = process.attach(ReadFrom::Start).unwrap();
    let mut all = Vec::new();
    while let Some(event) = stream.next().await.unwrap() {
        if let ExecEvent::Stdout(bytes) = event {
            all.extend_from_slice(&bytes);
            assert_eq!(stream.offsets().stdout, all.len() as u64);
        }
    }
    let text = String::from_utf8(all).unwrap();
    assert!(text.ends_with("\nend\n"), "{text}");
    // Each letter may have been waited for. At most the first half is shown then.
    let letters = text.trim_end_matches("\nend\n").trim_end_matches('*');
    let is_half = VALUE.starts_with(letters) && letters.len() <= VALUE.len() / 2;
    assert!(is_half, "{text}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn what_is_not_a_secret_is_not_held_back() {
    let vm = start().await;
    // It ends with the beginning of the secret, and waits then.
    let command = Command::shell("printf 'is it c'; read line; echo $line")
        .secret_env("TOKEN", &token())
        .stdin_stream()
        .timeout(Duration::from_secs(60));
    let mut stream = vm.exec_stream(command).unwrap();
    let mut text = String::new();
    while let Some(event) = stream.next().await.unwrap() {
        if let ExecEvent::Stdout(bytes) = event {
            text += str::from_utf8(&bytes).unwrap();
            if text == "is it c" {
                stream.input().write("yes\n").await;
            }
        }
    }
    assert_eq!(text, "is it cyes\n");
    vm.kill().await.unwrap();
}
