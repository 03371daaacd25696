//! Commands run by `vmcell run`.

use crate::vmcell::Vmcell;

#[test]
fn hello_is_all_that_is_printed() {
    let ended = Vmcell::run([], ["echo", "hello"]).finish();
    assert_eq!(ended.stdout(), "hello\n");
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.code(), 0);
}

#[test]
fn outputs_come_apart_and_the_exit_code_is_passed_through() {
    let script = "echo out; echo $GREETING >&2; echo $EMPTY. >&2; exit 37";
    let options = ["--env", "GREETING=hi = there", "--env", "EMPTY="];
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    assert_eq!(ended.stdout(), "out\n");
    assert_eq!(ended.stderr, "hi = there\n.\n");
    assert_eq!(ended.code(), 37);
}

#[test]
fn nothing_of_the_hosts_environment_gets_into_the_guest() {
    let ended = Vmcell::run([], ["env"])
        .env("SECRET_OF_THE_HOST", "x")
        .finish();
    assert!(!ended.stdout().contains("SECRET"), "{ended:?}");
    assert_eq!(ended.code(), 0);
}

#[test]
fn a_command_that_a_signal_ends_is_told_as_shells_tell_it() {
    let ended = Vmcell::run([], ["sh", "-c", "kill -SEGV $$"]).finish();
    assert_eq!(ended.code(), 128 + 11, "{ended:?}");
}

#[test]
fn a_megabyte_goes_through_the_guest_unchanged() {
    // A pattern that no shift or repetition leaves unchanged.
    let bytes: Vec<u8> = (0..1_048_576u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut running = Vmcell::run([], ["cat"]).start();
    let writing = running.write_all_and_close(bytes.clone());
    let ended = running.finish();
    writing.join().unwrap();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout == bytes,
        "{} bytes came back",
        ended.stdout.len()
    );
}

#[test]
fn escape_sequences_get_into_a_pipe_as_they_are() {
    let command = ["printf", r"\033[31mred\033[0m\007\302\233\377\000."];
    let ended = Vmcell::run([], command).finish();
    assert_eq!(ended.stdout, b"\x1b[31mred\x1b[0m\x07\xc2\x9b\xff\0.");
}

#[test]
fn processors_and_memory_are_what_was_asked_for() {
    let script = "nproc; grep MemTotal /proc/meminfo";
    let options = ["--vcpu-count", "2", "--mem-mib", "64"];
    let ended = Vmcell::run(options, ["sh", "-c", script]).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let words: Vec<_> = ended.stdout().split_whitespace().collect();
    let ["2", "MemTotal:", memory, "kB"] = words[..] else {
        panic!("{ended:?}");
    };
    assert!(memory.parse::<u32>().unwrap() < 64 * 1024);
}

#[test]
fn an_image_can_be_named_by_its_path() {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    let ended = Vmcell::run([image.to_str().unwrap()], ["true"]).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
}

#[test]
fn two_run_at_once() {
    let script = "cat /proc/sys/kernel/random/boot_id; read line; echo $line";
    let mut both = [0, 1].map(|_| Vmcell::run([], ["sh", "-c", script]).start());
    let boots = both.each_mut().map(|running| running.line());
    assert!(boots[0].len() > 30 && boots[0] != boots[1], "{boots:?}");
    // Both are running now, and wait for input.
    for (mut running, word) in both.into_iter().zip(["one", "two"]) {
        let writing = running.write_all_and_close(format!("{word}\n").into_bytes());
        let ended = running.finish();
        writing.join().unwrap();
        assert_eq!(ended.stdout(), format!("{word}\n"));
        assert_eq!(ended.code(), 0);
    }
}
