//! `vmcell env build`, with steps that run in VMs.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use rustix::process::Signal;

use super::Store;
use crate::vmcell::{Ended, Vmcell, eventually};

impl Store {
    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn build<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Ended {
        self.building(options).finish()
    }

    fn building<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Vmcell {
        let arguments = [
            "env",
            "build",
            "--mem-mib",
            "128",
            "-f",
            "context/Dockerfile",
        ];
        self.cli(arguments.into_iter().chain(options))
    }

    /// Runs an environment as it says.
    fn output(&self, name: &str) -> Ended {
        self.cli(["run", name, "--mem-mib", "128"]).finish()
    }

    /// Returns the names of the layers, and of files that should not be there.
    fn layers(&self) -> Vec<String> {
        let folder = self.0.path().join("cache/vmcell/images/layers");
        let entries = fs::read_dir(folder).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

/// Returns the numbers of the steps that were taken from the cache.
fn cached(ended: &Ended) -> Vec<&str> {
    let lines = ended
        .stderr
        .lines()
        .filter(|line| line.ends_with(" (cached)"));
    let numbers = lines.filter_map(|line| line.strip_prefix('[')?.split_once('/'));
    numbers.map(|(number, _)| number).collect()
}

const STAGES: &str = r#"# syntax=docker/dockerfile:1
ARG BASE=base
FROM $BASE AS tools
ARG WORD=hello
ENV GREETING="$WORD world"
WORKDIR /src
COPY . .
RUN echo "$GREETING" > made && ls -A . > listed && id -u >> listed
USER 12:34
RUN cat <<EOF > /tmp/document && \
    # A comment in between.
    cat made
greeting: $GREETING
EOF
RUN <<EOF
#!/bin/busybox ash
echo "$0 $(id -u):$(id -g) $(pwd)" >> /tmp/document
EOF

FROM tools AS unused
RUN exit 1

FROM scratch
COPY --from=tools /bin/busybox /bin/
COPY --from=tools --chown=7:8 --chmod=640 /src/made /out/result
COPY --from=tools /src/listed /tmp/document /out/
COPY <<EOF <<"raw" /out/
$GREETING\$x
EOF
$GREETING
raw
WORKDIR out
EXPOSE 8080 53/udp
LABEL made.by="a test" empty=
ENTRYPOINT ["/bin/busybox"]
CMD ["sh", "-c", "busybox stat -c '%n %a %u:%g' *; for f in *; do busybox cat $f; done"]
"#;

#[test]
fn stages_are_built_and_steps_that_are_unchanged_are_not_done_again() {
    let store = Store::new();
    store.write("context/Dockerfile", STAGES);
    store.write("context/file", "1");
    store.write("context/skip.md", "2");
    store.write("context/.dockerignore", "*.md\n.dockerignore\nDockerfile");
    let built = store.build(["tool"]);
    assert_eq!(built.stdout(), "tool\n", "{built:?}");
    assert!(built.stderr.contains("\nhello world\n"), "{built:?}");
    assert!(cached(&built).is_empty(), "{built:?}");
    store.output("tool").assert_printed(
        "EOF 644 0:0\ndocument 644 12:34\nlisted 644 0:0\nraw 644 0:0\nresult 640 7:8\n\
         $x\n\
         greeting: hello world\n/run/vmcell-build-script 12:34 /src\n\
         file\nlisted\nmade\n0\n\
         $GREETING\n\
         hello world\n",
    );

    let entry = store.list().into_iter().find(|it| it["name"] == "tool");
    let entry = entry.unwrap();
    assert_eq!(entry["kind"], "built");
    assert_eq!(entry["defaults"]["working_dir"], "/out");
    assert_eq!(entry["defaults"]["labels"]["made.by"], "a test");
    let ports: Vec<_> = entry["defaults"]["exposed_ports"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(ports, ["53/udp", "8080/tcp"]);

    // Times do not count, nor what is not copied.
    store.write("context/file", "1");
    store.write("context/skip.md", "3");
    let again = store.build(["again"]);
    assert_eq!(
        cached(&again),
        ["4", "5", "7", "8", "9", "10", "11", "12"],
        "{again:?}"
    );
    // What comes after a change is done again.
    let other = store.build(["other", "--build-arg", "WORD=bye", "--target", "tools"]);
    assert_eq!(cached(&other), ["4"], "{other:?}");
    store.write("context/file", "2");
    let changed = store.build(["changed", "--target", "tools"]);
    assert!(cached(&changed).is_empty(), "{changed:?}");

    // The layers of named environments stay, and those of others do not.
    let before = store.layers();
    assert!(
        before.iter().all(|name| name.ends_with(".qcow2")),
        "{before:?}"
    );
    for name in ["tool", "again", "other"] {
        store
            .cli(["env", "remove", name])
            .finish()
            .assert_printed(&format!("{name}\n"));
    }
    store.cli(["env", "prune"]).finish();
    assert_eq!(store.layers().len(), 4, "{:?}", store.layers());
    let again = store.build(["changed", "--target", "tools"]);
    assert_eq!(cached(&again).len(), 4, "{again:?}");
}

#[test]
fn a_step_that_fails_is_named_and_leaves_nothing() {
    let store = Store::new();
    for (text, expected) in [
        (
            "FROM base\nRUN echo why >&2; exit 3",
            "line 2: `RUN echo why >&2; exit 3` failed: exit code 3",
        ),
        ("FROM base\nUSER nobody-here\nRUN true", "line 3: "),
        (
            "FROM base\nCOPY nothing /x",
            "line 2: \"nothing\" is not in the context",
        ),
        (
            "FROM base\nCOPY hidden /x",
            "line 2: \"hidden\" is not in the context",
        ),
        (
            "FROM base\nCOPY ../secret /x",
            "line 2: \"../secret\" has `..` in it",
        ),
        (
            "FROM base\nCOPY out /x",
            "line 2: out leads out of the context",
        ),
        (
            "FROM base\nCOPY Dockerfile /run/x",
            "line 2: nothing can be kept in /run",
        ),
        (
            "FROM base\nCOPY a* b* /x",
            "line 2: \"b*\" is not in the context",
        ),
        (
            "FROM base AS a\nFROM base\nCOPY --from=a /nothing /x",
            "line 3: \"/nothing\" is not in the image",
        ),
        // The programs of a build reach nothing, unless the caller allows it.
        (
            "FROM base\nRUN wget -T 5 -O- http://example.com/",
            "line 2: `RUN wget",
        ),
        (
            "FROM nosuch.invalid/x/y:1\nRUN true",
            "FROM nosuch.invalid/x/y:1: ",
        ),
    ] {
        store.write("context/Dockerfile", text);
        store.write("context/.dockerignore", "hidden");
        store.write("context/hidden", "1");
        store.write("context/a1", "1");
        store.write("secret", "1");
        let _ = symlink("../secret", store.0.path().join("context/out"));
        let failed = store.build(["bad"]);
        let reason = failed.stderr.lines().last().unwrap_or_default();
        assert!(
            reason.starts_with(&format!("vmcell: {expected}")),
            "{failed:?}"
        );
        assert_eq!(failed.code(), 125);
        assert!(store.layers().is_empty(), "{text}: {:?}", store.layers());
    }
    assert!(store.list().iter().all(|entry| entry["name"] != "bad"));
}

#[test]
fn files_go_where_users_of_containers_expect_them() {
    let store = Store::new();
    store.write("context/one/a", "a");
    store.write("context/one/deep/b", "b");
    store.write("context/two.txt", "two");
    store.write("context/three.txt", "three");
    symlink("a", store.0.path().join("context/one/link")).unwrap();
    pack(&store.0.path().join("context"), "one");
    store.write(
        "context/Dockerfile",
        "FROM base\n\
         RUN mkdir -m 1777 /shared && mkdir -m 700 /d && ln -s /d /l && \
         echo ann:x:77:77::/:/bin/sh >> /etc/passwd\n\
         COPY one /copied\n\
         COPY two.txt /shared\n\
         COPY *.txt /texts/\n\
         COPY two.txt /l/new/name\n\
         COPY --chown=ann two.txt /home/ann/new/\n\
         ADD one.tar.gz /unpacked\n\
         ADD two.txt /unpacked/plain\n\
         CMD find /copied /shared /texts /d /home/ann/new /unpacked -exec stat -c '%n %F %a %u' {} +\n",
    );
    assert_eq!(store.build(["placed"]).stdout(), "placed\n");
    let mut lines: Vec<_> = store
        .output("placed")
        .stdout()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    let expected = [
        "/copied directory 755 0",
        "/copied/a regular file 644 0",
        "/copied/deep directory 755 0",
        "/copied/deep/b regular file 644 0",
        "/copied/link symbolic link 777 0",
        "/d directory 700 0",
        "/d/new directory 755 0",
        "/d/new/name regular file 644 0",
        "/home/ann/new directory 755 77",
        "/home/ann/new/two.txt regular file 644 77",
        "/shared directory 1777 0",
        "/shared/two.txt regular file 644 0",
        "/texts directory 755 0",
        "/texts/three.txt regular file 644 0",
        "/texts/two.txt regular file 644 0",
        "/unpacked directory 755 0",
        "/unpacked/one directory 755 0",
        "/unpacked/one/a regular file 644 0",
        "/unpacked/one/deep directory 755 0",
        "/unpacked/one/deep/b regular file 644 0",
        "/unpacked/one/link symbolic link 777 0",
        "/unpacked/plain regular file 644 0",
    ];
    assert_eq!(lines, expected);
}

/// Packs a folder with the system's own program.
fn pack(folder: &Path, name: &str) {
    let file = format!("{name}.tar.gz");
    let status = Command::new("tar")
        .args(["--owner=0", "--group=0", "-czf", &file, name])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn disks_can_be_larger() {
    let store = Store::new();
    let larger = "df -m / | awk 'END { print ($2 > 3500) }'";
    store.write(
        "context/Dockerfile",
        format!("FROM base\nRUN true\nCMD {larger}\n"),
    );
    let built = store.build(["large", "--disk-mib", "4g"]);
    assert_eq!(built.stdout(), "large\n", "{built:?}");
    store.output("large").assert_printed("1\n");
    let size = ["--mem-mib", "128", "--disk-mib", "4g"];
    let run = |options: &[&str]| {
        let arguments = ["run"].iter().chain(options).chain(&size);
        let command = ["--", "sh", "-c", larger];
        store.cli(arguments.chain(&command).copied()).finish()
    };
    run(&[]).assert_printed("1\n");
    run(&["--disk", "kept.qcow2"]).assert_printed("1\n");
    run(&["--disk", "kept.qcow2"]).assert_failed(125, "keeps its size: leave out --disk-mib");
}

#[test]
fn workspaces_and_tools_run_commands_as_the_environment_says() {
    let store = Store::new();
    store.write(
        "context/Dockerfile",
        "FROM base\nENV WORD='from the image'\nUSER 12:34\nWORKDIR /somewhere\n",
    );
    let built = store.build(["said"]);
    assert_eq!(built.stdout(), "said\n", "{built:?}");
    let line = "echo $WORD; id -u";
    let create = [
        "workspace",
        "create",
        "said",
        "--id",
        "said",
        "--mem-mib",
        "128",
    ];
    let created = store.cli(create).finish();
    assert!(created.status.success(), "{created:?}");
    let exec = ["workspace", "exec", "said", "--", "sh", "-c", line];
    let ran = store.cli(exec).finish();
    store.cli(["workspace", "delete", "said"]).finish();
    ran.assert_printed("from the image\n12\n");

    let request = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"vm_run","arguments":{"environment":"said","mem_mib":128,"command":"echo $WORD; id -u; pwd"}}}
"#;
    let mut server = store.cli(["mcp", "serve"]).start();
    server.write(request.as_bytes());
    server.line();
    let answer: serde_json::Value = serde_json::from_str(&server.line()).unwrap();
    let result = &answer["result"]["structuredContent"];
    assert_eq!(
        result["stdout"], "from the image\n12\n/somewhere\n",
        "{answer}"
    );
    server.close_stdin();
    server.finish();
}

#[test]
fn a_build_that_is_killed_leaves_nothing_that_stays() {
    let store = Store::new();
    store.write(
        "context/Dockerfile",
        "FROM base\nRUN true\nRUN echo begun; sleep 1000\n",
    );
    for signal in [Signal::INT, Signal::KILL] {
        let mut building = store.building(["x"]).start();
        while building.stderr_line() != "begun\n" {}
        // While something is built, nothing is pruned.
        let before = store.layers().len();
        store.cli(["env", "prune"]).finish();
        assert_eq!(store.layers().len(), before);
        building.signal(signal);
        let ended = building.finish();
        assert!(!ended.status.success(), "{ended:?}");
        let partial = |name: &String| name.starts_with(".partial-");
        let is_left = store.layers().iter().any(partial);
        assert_eq!(is_left, signal == Signal::KILL);
        // The VM ends with the program that started it, and its lock with the VM.
        assert!(eventually(|| {
            store.cli(["env", "prune"]).finish();
            store.layers().is_empty()
        }));
    }
}
