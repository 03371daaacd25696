//! Prompts for passwords and answers.

use vmcell::{
    Command,
    terminal::{Prompt, Status, TerminalOptions},
};

use super::{
    SHORT, TEST_TIMEOUT, open, open_command, open_shell, start_debian, wait_for_status,
    wait_for_text,
};
use crate::start;

const PASSWORD: &str = "correct horse battery";

#[tokio::test]
async fn a_password_is_asked_for_typed_and_nowhere_to_be_seen() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let program = "import getpass\np = getpass.getpass('Key for the vault: ')\n\
                   print('length', len(p))\nprint('it was', p)\n";
    vm.files().write("/tmp/ask.py", program).await.unwrap();
    let reply = terminal.run("python3 /tmp/ask.py").await.unwrap();
    assert_eq!(
        (reply.status, reply.prompt),
        (Status::Password, Prompt::None)
    );
    let reply = terminal.send_password(PASSWORD).await.unwrap();
    assert!(reply.text.contains("length 21"), "{reply:?}");
    // It is masked even where the program prints it.
    assert!(
        reply.text.contains("it was *********************\n"),
        "{reply:?}"
    );
    assert_eq!(reply.status, Status::Ready);
    for text in [terminal.screen().text(), terminal.asciicast()] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    // The word alone does not make it a password prompt.
    let asking = terminal.run("echo -n 'Password: '; read x");
    let reply = asking.await.unwrap();
    assert_eq!(reply.status, Status::Unknown, "{reply:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_password_is_not_echoed_where_everything_else_is() {
    let vm = start().await;
    let terminal = open_command(&vm, "echo ready; read x; echo \"${#x}\"; read y; echo $y").await;
    let ready = wait_for_text(&terminal, "ready").await;
    let typing = terminal.send_password("secret").quiet(SHORT);
    typing.await.unwrap();
    wait_for_text(&terminal, "^6$").await;
    let reply = terminal.read(ready.end).await.unwrap();
    // The line end is not masked.
    assert_eq!(&reply.raw[..], b"\r\n6\r\n");
    // The output that the guest keeps does not hold it either.
    let kept = vm
        .processes()
        .attach(terminal.id(), vmcell::ReadFrom::Start)
        .unwrap();
    terminal.run("visible").quiet(SHORT).await.unwrap();
    let output = kept.wait_with_output().await.unwrap();
    let text = output.stdout_text();
    assert!(!text.contains("secret"), "{text:?}");
    // The echo is on again, so it appears twice.
    assert_eq!(text.matches("visible").count(), 2, "{text:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_question_is_recognised_and_answered() {
    let vm = start().await;
    let script = "printf 'Do you want to continue? [Y/n] '; read answer; echo got:$answer";
    let terminal = open_command(&vm, script).await;
    wait_for_status(&terminal, Status::Confirm).await;
    let reply = terminal.run("y").await.unwrap();
    assert!(reply.text.contains("got:y"), "{reply:?}");
    assert_eq!(reply.status, Status::Eof);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_progress_bar_is_told_once() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let script = r#"for i in 10 40 70 100; do printf '\rloading %d%%' $i; done; echo"#;
    let reply = terminal.run(script).await.unwrap();
    assert!(reply.text.contains("\nloading 100%\n"), "{reply:?}");
    assert!(!reply.text.contains("loading 40%"), "{reply:?}");
    // The bytes are all there.
    let raw = String::from_utf8_lossy(&reply.raw);
    assert!(raw.contains("\rloading 40%\rloading 70%"), "{raw:?}");
    vm.kill().await.unwrap();
}

/// After each letter the program waits for this test, which continues only when
/// the letter is no longer held back.
#[tokio::test]
async fn a_password_that_is_printed_letter_by_letter_is_kept_nowhere() {
    let vm = start().await;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("session");
    let script = r#"stty -echo; printf 'Key: '; read key
        while [ -n "$key" ]; do
            rest=${key#?}; printf %s "${key%"$rest"}"; key=$rest; read go
        done
        echo; echo all printed"#;
    let options = TerminalOptions::command(Command::shell(script)).record(&folder);
    let terminal = open(&vm, options).await;
    let mut live = terminal.follow();
    wait_for_status(&terminal, Status::Password).await;
    terminal
        .send_password("hunter2")
        .quiet(SHORT)
        .await
        .unwrap();
    let mut printed = String::new();
    for number in 1..=7 {
        // Followers see it, so it is no longer held back.
        let visible = |text: &str| text.chars().filter(|letter| !letter.is_control()).count();
        while visible(&printed) < "Key: ".len() + number {
            let bytes = tokio::time::timeout(TEST_TIMEOUT, live.next()).await;
            printed += str::from_utf8(&bytes.unwrap().unwrap()).unwrap();
        }
        terminal.send_input("\n").quiet(SHORT).await.unwrap();
    }
    wait_for_text(&terminal, "all printed").await;
    // What a follower saw before the last letter cannot be withdrawn.
    assert!(printed.ends_with("hunter*"), "{printed:?}");
    terminal.wait().await.unwrap();
    let reply = terminal.read(0).await.unwrap();
    assert!(reply.text.contains("*******\n"), "{reply:?}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let kept = [
        reply.text,
        String::from_utf8(reply.raw.to_vec()).unwrap(),
        terminal.screen().text(),
        read("transcript.log"),
    ];
    for text in kept {
        assert!(text.contains("*******"), "{text:?}");
        assert!(!text.contains("hu"), "{text:?}");
    }
    assert!(
        !terminal.asciicast().contains('u'),
        "{}",
        terminal.asciicast()
    );
    assert!(!read("interaction.jsonl").contains("hunter"));
    vm.kill().await.unwrap();
}
