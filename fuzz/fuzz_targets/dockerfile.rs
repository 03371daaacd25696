//! For an arbitrary Dockerfile, reading it ends without a panic, and no error text contains
//! control characters. The folder that it copies from has some files.
#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use vmcell_dockerfile::Build;

/// The context, whose Dockerfile is rewritten for each input.
static CONTEXT: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("vmcell-fuzz-dockerfile-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(folder.join("src")).expect("it can be made");
    fs::write(folder.join("src/main.c"), "int main(void) { return 0; }\n").expect("it is there");
    fs::write(folder.join(".dockerignore"), "*.o\n!keep.o\n").expect("it is there");
    folder
});

fuzz_target!(|input: &[u8]| {
    let file = CONTEXT.join("Dockerfile");
    fs::write(&file, input).expect("the folder for temporary files can be written");
    match Build::new(&file).argument("VERSION", "1").plan() {
        Ok(plan) => assert!(plan.images().count() <= input.len()),
        Err(error) => {
            let text = error.to_string();
            let is_control = |character: char| character.is_control() && character != '\n';
            assert!(!text.contains(is_control), "{text:?}");
        }
    }
});
