//! What is wrong in a Dockerfile is an error with its line, before anything is started.
#![allow(clippy::unwrap_used)]

use std::fs;

use tempfile::TempDir;
use vmcell_dockerfile::{Build, BuildError};

/// Plans a build of a file in a folder of its own.
fn plan(text: &str, configure: impl FnOnce(Build) -> Build) -> Result<Vec<String>, BuildError> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("Dockerfile");
    fs::write(&file, text).unwrap();
    let plan = configure(Build::new(file)).plan()?;
    Ok(plan.images().map(str::to_owned).collect())
}

#[test]
fn what_is_not_known_is_an_error_with_its_line() {
    for (text, expected) in [
        ("", "line 1: the file has no FROM"),
        ("RUN x", "line 1: expected FROM before it"),
        (
            "FROM a\nVOLUME /x",
            "line 2: the instruction VOLUME is not known here",
        ),
        (
            "FROM a\n\n# x\nHEALTHCHECK NONE",
            "line 4: the instruction HEALTHCHECK is not known",
        ),
        (
            "FROM a\nONBUILD RUN x",
            "line 2: the instruction ONBUILD is not known",
        ),
        ("FROM a\nFOO", "line 2: FOO needs an argument"),
        (
            "FROM a\nRUN --mount=type=cache,target=/x y",
            "line 2: RUN --mount is not known here",
        ),
        (
            "FROM a\nRUN --network=host y",
            "line 2: RUN --network=host is not known here",
        ),
        (
            "FROM a\nCOPY --link b c",
            "line 2: COPY --link is not known here",
        ),
        (
            "FROM a\nADD --from=a b c",
            "line 2: ADD --from is not known here",
        ),
        (
            "FROM a\nCOPY --chmod=u+x b c",
            "line 2: --chmod=u+x: expected octal digits",
        ),
        (
            "FROM a\nCOPY b",
            "line 2: COPY needs a source and a destination",
        ),
        (
            "FROM a\nADD https://x/y z",
            "line 2: ADD of \"https://x/y\": only local files",
        ),
        ("FROM a\nUSER --x", "line 2: USER needs an argument"),
        ("FROM a\nENV x", "line 2: \"x\" has no value"),
        ("FROM a b", "line 1: expected FROM IMAGE"),
        ("FROM a AS 1x", "line 1: \"1x\" is no name of a stage"),
        ("FROM a AS x\nFROM b AS X", "line 2: a second stage \"x\""),
        (
            "FROM --platform=linux/arm64 a",
            "line 1: only linux/amd64 is built",
        ),
        ("ARG V\nFROM $V", "line 2: FROM has no image"),
        (
            "FROM a\nCOPY --from=1 b c",
            "line 2: there is no stage 1 before this one",
        ),
        (
            "FROM a\nRUN <<EOF\nx",
            "line 2: no line \"EOF\" ends the here-document",
        ),
    ] {
        let error = plan(text, |build| build).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn what_the_caller_gives_must_be_known() {
    let text = "ARG TAG=1\nFROM a:$TAG AS one\nFROM b AS two\nCOPY --from=one x y\nFROM c";
    let images = |configure: fn(Build) -> Build| plan(text, configure);
    assert_eq!(images(|build| build).unwrap(), ["c"]);
    let two = images(|build| build.target("TWO").argument("TAG", "9"));
    assert_eq!(two.unwrap(), ["a:9", "b"]);
    let error = images(|build| build.target("three")).unwrap_err();
    assert!(matches!(error, BuildError::NoStage { .. }), "{error}");
    let error = images(|build| build.argument("TYPO", "1")).unwrap_err();
    assert!(
        error.to_string().starts_with("no ARG declares \"TYPO\""),
        "{error}"
    );
    let error = Build::new("no/such/Dockerfile").plan().unwrap_err();
    assert!(matches!(error, BuildError::Read { .. }), "{error}");
}

#[test]
fn images_that_nothing_needs_are_not_asked_for() {
    let text = "FROM a AS unused\nFROM b\nCOPY --from=docker.io/library/c /x /y\n\
                FROM scratch\nCOPY --from=1 /z /z";
    assert_eq!(
        plan(text, |build| build).unwrap(),
        ["b", "docker.io/library/c"]
    );
}
