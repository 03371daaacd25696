//! JSON results.

use serde_json::{Value, json};

use crate::vmcell::Vmcell;

#[test]
fn a_result_has_everything_about_the_command() {
    let script = "echo out; printf 'a\\033b' >&2; exit 3";
    let ended = Vmcell::run(["--json"], ["sh", "-c", script]).finish();
    let result = ended.json();
    assert_eq!(result["exit_code"], json!(3));
    assert_eq!(result["cause"], json!("code"));
    assert_eq!(result["signal"], Value::Null);
    assert_eq!(result["stdout"], json!("out\n"));
    assert_eq!(result["stderr"], json!("a\u{1b}b"));
    assert_eq!(result["timed_out"], json!(false));
    assert!(!result["sandbox_id"].as_str().unwrap().is_empty());
    for output in ["stdout", "stderr"] {
        assert_eq!(result[format!("{output}_dropped_bytes")], json!(0));
    }
    let usage = &result["usage"];
    assert!(usage["wall_seconds"].as_f64().unwrap() > 0.0);
    let busy = |key: &str| usage[key].as_f64().unwrap();
    assert!(busy("user_seconds") + busy("system_seconds") > 0.0);
    assert!(usage["peak_memory_bytes"].as_u64().unwrap() > 0);
    assert_eq!(result["oom_kills"], json!(0));
    assert_eq!(result["outputs_cut"], json!(false));
    assert_eq!(result["tree_ended"], json!(true));
    assert!(result.get("error").is_none());
    assert_eq!((ended.code(), ended.stderr.as_str()), (3, ""));
}

#[test]
fn a_command_that_took_too_long_is_a_result_with_what_it_printed() {
    let options = ["--json", "--timeout-seconds", "5"];
    let ended = Vmcell::run(options, ["sh", "-c", "echo begun; sleep 1000"]).finish();
    let result = ended.json();
    assert_eq!(result["timed_out"], json!(true));
    assert_eq!(result["stdout"], json!("begun\n"));
    assert_eq!(result["exit_code"], Value::Null);
    assert_eq!(result["cause"], json!("timeout"));
    assert_eq!(ended.code(), 124, "{ended:?}");
}

#[test]
fn what_went_wrong_has_a_code_and_words() {
    for (options, program, kind, code, words) in [
        (
            &["--json"][..],
            "no-such-program",
            "exec",
            127,
            "no such file",
        ),
        (&["--json"], "/etc/passwd", "exec", 126, "denied"),
        (
            &["--json", "--mem-mib", "8"],
            "true",
            "invalid",
            125,
            "at least 64",
        ),
        (
            &["--json", "/etc/passwd"],
            "true",
            "bad-file",
            125,
            "not an ext4 image",
        ),
    ] {
        let ended = Vmcell::run(options.iter().copied(), [program]).finish();
        let result = ended.json();
        let error = &result["error"];
        assert_eq!(error["code"], json!(kind), "{result}");
        let message = error["message"].as_str().unwrap().to_lowercase();
        assert!(message.contains(words), "{message:?} for {program}");
        assert!(kind != "exec" || message.contains(program), "{message:?}");
        assert_eq!(result.as_object().unwrap().len(), 1, "{result}");
        assert_eq!(ended.code(), code);
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn the_longest_timeout_is_no_different_from_none() {
    let longest = u64::MAX.to_string();
    for options in [
        &["--timeout-seconds", &longest][..],
        &["--json", "--timeout-seconds", &longest],
    ] {
        let ended = Vmcell::run(options.iter().copied(), ["true"]).finish();
        assert_eq!(ended.code(), 0, "{ended:?}");
    }
}
