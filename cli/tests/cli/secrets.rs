//! `--secret-env`: variables of the caller that one command gets.

use crate::vmcell::Vmcell;

const VALUE: &str = "hunter2-hunter2/xyzzy";

#[test]
fn a_command_gets_a_variable_of_the_caller_and_does_not_show_it() {
    let line =
        "echo \"$INNER\"; echo ${OUTER-none}; printf %s \"$INNER\" | wc -c; echo \"$INNER\" >&2";
    let run = Vmcell::run(["--secret-env", "OUTER=INNER"], ["sh", "-c", line]);
    let ended = run.env("OUTER", VALUE).env("VMCELL_LOG", "trace").finish();
    let masked = "*".repeat(VALUE.len());
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.stdout(), format!("{masked}\nnone\n{}\n", VALUE.len()));
    assert!(ended.stderr.contains(&masked), "{ended:?}");
    assert!(!ended.stderr.contains(VALUE), "{ended:?}");
}

#[test]
fn what_is_wrong_is_found_before_anything_boots() {
    for (grant, said) in [
        ("NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE"),
        ("not a name", "name of a secret"),
    ] {
        let run = Vmcell::run(["--secret-env", grant], ["true"]);
        let ended = run.env("VMCELL_KERNEL", "/none").finish();
        ended.assert_failed(125, said);
    }
    let run = Vmcell::run(["--secret-env", "EMPTY"], ["true"]);
    run.env("EMPTY", "").finish().assert_failed(125, "is empty");
}
