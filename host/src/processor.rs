//! The processor of this machine, on which an accelerated guest depends.

use crate::sparse::Digest;

/// Returns the model and a digest of the features of the processor.
pub(crate) fn description() -> String {
    describe(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn describe(processor: &str) -> String {
    let value = |name: &str| {
        let line = processor.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        });
        line.unwrap_or_default()
    };
    let mut features: Vec<_> = value("flags").split_whitespace().collect();
    features.sort_unstable();
    let digest = Digest::of_bytes(features.join(" ").as_bytes()).to_string();
    format!(
        "{}, family {}, model {}, stepping {}, features {}",
        value("model name"),
        value("cpu family"),
        value("model"),
        value("stepping"),
        digest.get(..16).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_count_and_their_order_does_not() {
        let text = |flags| {
            describe(&format!(
                "cpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nstepping: 7\nflags\t\t: {flags}\n"
            ))
        };
        assert!(
            text("fpu sse")
                .starts_with("Some CPU @ 2 GHz, family 6, model 85, stepping 7, features ")
        );
        assert_eq!(text("fpu sse"), text("sse fpu"));
        assert_ne!(text("fpu sse"), text("fpu sse avx"));
        assert_eq!(describe(""), describe("nonsense"));
    }
}
